/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/pid_filter.h"

#include "base/cursor.h"

void pid_filter_init(struct pid_filter *filter)
{
	*filter = (struct pid_filter){0};
	hash_map_init(&filter->pids);
}

void pid_filter_fini(struct pid_filter *filter)
{
	hash_map_fini(&filter->pids);
	*filter = (struct pid_filter){0};
}

void pid_filter_add(struct pid_filter *filter, uint32_t pid)
{
	hash_map_put(&filter->pids, pid, NULL);
}

static bool has(const struct pid_filter *filter, uint32_t pid)
{
	return hash_map_get(&filter->pids, pid) != NULL;
}

/* pid, ppid, tid …: a child belongs to its parent, and a pid that is used again to a new one. */
static bool take_fork(struct pid_filter *filter, struct cursor c)
{
	uint32_t pid = cursor_u32(&c);
	uint32_t parent_pid = cursor_u32(&c);

	if (!cursor_is_ok(&c))
		return false;
	if (pid != parent_pid && has(filter, parent_pid))
		pid_filter_add(filter, pid);
	else if (pid != parent_pid)
		hash_map_remove(&filter->pids, pid);
	return has(filter, pid);
}

static bool is_wanted(struct pid_filter *filter, const struct perf_record *record)
{
	struct cursor c = cursor_make(record->bytes, record->size, false);

	cursor_skip(&c, sizeof(struct perf_event_header));
	switch (record->type) {
	case PERF_RECORD_FORK:
		return take_fork(filter, c);
	case PERF_RECORD_SAMPLE: {
		cursor_seek(&c, filter->sample_pid_at);
		uint32_t pid = cursor_u32(&c);
		/* What it does before is ours. */
		return cursor_is_ok(&c) && pid != filter->not_started && has(filter, pid);
	}
	case PERF_RECORD_COMM: {
		uint32_t pid = cursor_u32(&c);
		if (pid == filter->not_started && record->misc & PERF_RECORD_MISC_COMM_EXEC)
			filter->not_started = 0;
		return cursor_is_ok(&c) && has(filter, pid);
	}
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_NAMESPACES:
	case PERF_RECORD_PERFPIPE_EXEC: {
		uint32_t pid = cursor_u32(&c);
		/* UINT32_MAX: a mapping of the kernel */
		return cursor_is_ok(&c) && (pid == UINT32_MAX || has(filter, pid));
	}
	default:
		return true;
	}
}

struct error *pid_filter_pass(void *context, const struct perf_record *records, size_t n)
{
	struct pid_filter *filter = context;
	struct error *err = NULL;
	size_t begin = 0;

	/* In runs, as they are. */
	for (size_t i = 0; !err && i <= n; i++) {
		if (i < n && is_wanted(filter, &records[i]))
			continue;
		if (i > begin)
			err = filter->sink(filter->context, records + begin, i - begin);
		begin = i + 1;
	}
	return err;
}
