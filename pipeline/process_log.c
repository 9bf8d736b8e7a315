/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/process_log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/hash_map.h"
#include "base/mem.h"
#include "pipeline/json_text.h"

enum { COMM_BYTES = 16, MAX_PENDING = 1 << 16, MAX_PENDING_BYTES = 8 << 20 };
/* From the record with the command line to the COMM of the same exec. */
enum { PAIR_NS = 10000000 };

/*
 * Half of an exec. Its COMM comes first where the tracepoint is watched, the record with the
 * command line may come first elsewhere; either may be lost.
 */
struct pending {
	uint64_t time_ns;
	uint32_t pid;
	char comm[COMM_BYTES];
	uint8_t *exec; /* the record, NULL when it is the COMM that came */
	uint32_t exec_bytes;
};

struct process_log {
	FILE *out;
	enum process_log_scope scope;
	struct hash_map pending; /* pid → struct pending *, at most MAX_PENDING */
	size_t pending_bytes;	 /* of their records */
	uint64_t n_lines, n_none, n_cut;
	int errno_value; /* of the first write that failed; nothing is written from there on */
};

/* One line; absent parts are NULL or empty. */
struct exec_line {
	uint64_t time_ns;
	uint32_t pid;
	const char *comm;
	const char *argv; /* words, each with its 0 */
	size_t argv_bytes;
	const char *cgroup, *exe;
	uint32_t source; /* enum perf_exec_source */
	bool is_argv_cut;
};

struct process_log *process_log_new(int fd, enum process_log_scope scope)
{
	struct process_log *log = mem_zalloc(1, sizeof(*log));
	log->scope = scope;
	int own = dup(fd);
	log->out = own >= 0 ? fdopen(own, "w") : NULL;
	if (!log->out)
		log->errno_value = errno;
	hash_map_init(&log->pending);
	return log;
}

static void free_one(struct pending *pending)
{
	if (pending)
		mem_free(pending->exec);
	mem_free(pending);
}

static void free_pending(struct process_log *log)
{
	size_t iterator = 0;
	uint64_t pid;
	uint64_t *value;
	while (hash_map_next(&log->pending, &iterator, &pid, &value))
		free_one((struct pending *)(uintptr_t)*value);
	hash_map_clear(&log->pending);
}

void process_log_free(struct process_log *log)
{
	if (!log)
		return;
	free_pending(log);
	hash_map_fini(&log->pending);
	if (log->out)
		fclose(log->out);
	mem_free(log);
}

static const char *source_name(uint32_t source)
{
	switch (source) {
	case PERF_EXEC_FROM_RECORD:
		return "record";
	case PERF_EXEC_FROM_PROC:
		return "proc";
	default:
		return "none";
	}
}

static void write_line(struct process_log *log, const struct exec_line *line)
{
	if (!log->out || log->errno_value)
		return;
	fprintf(log->out, "{\"time_ns\":%" PRIu64 ",\"pid\":%" PRIu32 ",\"comm\":", line->time_ns,
		line->pid);
	json_text_write(log->out, line->comm);
	fputs(",\"argv\":[", log->out);
	struct cursor words = cursor_make(line->argv, line->argv_bytes, false);
	for (bool is_first = true; cursor_left(&words); is_first = false) {
		const char *word = cursor_string(&words, cursor_left(&words));
		if (!word)
			break;
		if (!is_first)
			fputc(',', log->out);
		json_text_write(log->out, word);
	}
	fputs(line->is_argv_cut ? "],\"argv_cut\":true,\"cgroup\":" : "],\"cgroup\":", log->out);
	json_text_write(log->out, line->cgroup && line->cgroup[0] ? line->cgroup : NULL);
	fputs(",\"exe\":", log->out);
	json_text_write(log->out, line->exe && line->exe[0] ? line->exe : NULL);
	fprintf(log->out, ",\"source\":\"%s\"}\n", source_name(line->source));
	if (ferror(log->out))
		log->errno_value = errno;
	log->n_lines++;
	log->n_none += line->source == PERF_EXEC_UNKNOWN;
	log->n_cut += line->is_argv_cut;
}

static struct pending *take_pending(struct process_log *log, uint32_t pid)
{
	uint64_t *value = hash_map_get(&log->pending, pid);
	if (!value)
		return NULL;
	struct pending *pending = (struct pending *)(uintptr_t)*value;
	hash_map_remove(&log->pending, pid);
	log->pending_bytes -= pending->exec_bytes;
	return pending;
}

/* False when the record's fields do not fit its size. */
static bool read_exec(const uint8_t *record, size_t size, struct exec_line *line)
{
	struct cursor c = cursor_make(record, size, false);
	struct perf_record_perfpipe_exec head;
	const uint8_t *bytes = cursor_bytes(&c, sizeof(head));
	if (!bytes)
		return false;
	memcpy(&head, bytes, sizeof(head));
	*line = (struct exec_line){
		.time_ns = head.time_ns,
		.pid = head.pid,
		.argv = (const char *)cursor_bytes(&c, head.argv_bytes),
		.argv_bytes = head.argv_bytes,
		.source = head.source,
		.is_argv_cut = head.is_argv_cut,
	};
	line->cgroup = cursor_string(&c, cursor_left(&c));
	line->exe = cursor_string(&c, cursor_left(&c));
	return cursor_is_ok(&c);
}

/* The other half did not come. Takes pending, which may be NULL. */
static void write_half(struct process_log *log, struct pending *pending)
{
	if (!pending)
		return;
	struct exec_line line = {.time_ns = pending->time_ns,
				 .pid = pending->pid,
				 .comm = pending->comm,
				 .source = PERF_EXEC_UNKNOWN};
	if (pending->exec && read_exec(pending->exec, pending->exec_bytes, &line))
		write_line(log, &line);
	else if (log->scope == PROCESS_LOG_ALL)
		write_line(log, &line);
	free_one(pending);
}

static void write_all_pending(struct process_log *log)
{
	size_t iterator = 0;
	uint64_t pid;
	uint64_t *value;
	while (hash_map_next(&log->pending, &iterator, &pid, &value))
		write_half(log, (struct pending *)(uintptr_t)*value);
	hash_map_clear(&log->pending);
	log->pending_bytes = 0;
}

static struct pending *add_pending(struct process_log *log, uint32_t pid, uint64_t time_ns)
{
	if (log->pending.n >= MAX_PENDING || log->pending_bytes > MAX_PENDING_BYTES)
		write_all_pending(log);
	struct pending *pending = mem_zalloc(1, sizeof(*pending));
	pending->time_ns = time_ns;
	pending->pid = pid;
	*hash_map_put(&log->pending, pid, NULL) = (uint64_t)(uintptr_t)pending;
	return pending;
}

static void add_comm(struct process_log *log, const struct perf_record *record)
{
	struct exec_line line;
	if (record->is_synthetic || !(record->misc & PERF_RECORD_MISC_COMM_EXEC))
		return;
	struct cursor c = cursor_make(record->bytes, record->size, false);
	cursor_skip(&c, sizeof(struct perf_event_header));
	uint32_t pid = cursor_u32(&c);
	cursor_skip(&c, sizeof(uint32_t));
	const char *comm = cursor_string(&c, COMM_BYTES);
	/* Pid 0: outside of our PID namespace, where nothing tells one from the other. */
	if (!cursor_is_ok(&c) || pid == 0)
		return;
	struct pending *pending = take_pending(log, pid);
	if (pending && pending->exec && record->time_ns >= pending->time_ns &&
	    record->time_ns - pending->time_ns <= PAIR_NS &&
	    read_exec(pending->exec, pending->exec_bytes, &line)) {
		line.comm = comm;
		write_line(log, &line);
		free_one(pending);
		return;
	}
	write_half(log, pending);
	pending = add_pending(log, pid, record->time_ns);
	snprintf(pending->comm, sizeof(pending->comm), "%s", comm);
}

static void add_exec(struct process_log *log, const struct perf_record *record)
{
	struct exec_line line;
	if (!read_exec(record->bytes, record->size, &line) || line.pid == 0)
		return;
	struct pending *pending = take_pending(log, line.pid);
	if (pending && !pending->exec) {
		line.comm = pending->comm;
		write_line(log, &line);
		free_one(pending);
		return;
	}
	write_half(log, pending);
	pending = add_pending(log, line.pid, line.time_ns);
	pending->exec = mem_copy(record->bytes, record->size);
	pending->exec_bytes = record->size;
	log->pending_bytes += record->size;
}

static void add_exit(struct process_log *log, const struct perf_record *record)
{
	struct cursor c = cursor_make(record->bytes, record->size, false);
	cursor_skip(&c, sizeof(struct perf_event_header));
	uint32_t pid = cursor_u32(&c);
	cursor_skip(&c, sizeof(uint32_t)); /* ppid */
	uint32_t tid = cursor_u32(&c);
	if (cursor_is_ok(&c) && pid == tid)
		write_half(log, take_pending(log, pid));
}

struct error *process_log_add(void *context, const struct perf_record *records, size_t n)
{
	struct process_log *log = context;
	for (size_t i = 0; i < n; i++) {
		if (records[i].type == PERF_RECORD_COMM)
			add_comm(log, &records[i]);
		else if (records[i].type == PERF_RECORD_PERFPIPE_EXEC)
			add_exec(log, &records[i]);
		else if (records[i].type == PERF_RECORD_EXIT)
			add_exit(log, &records[i]);
	}
	return NULL;
}

struct error *process_log_finish(struct process_log *log)
{
	write_all_pending(log);
	if (!log->errno_value && fflush(log->out) != 0)
		log->errno_value = errno;
	if (!log->errno_value)
		return NULL;
	return error_number(error_errno(log->errno_value, "write"), 702);
}

uint64_t process_log_count(const struct process_log *log)
{
	return log->n_lines;
}

void process_log_count_gaps(const struct process_log *log, uint64_t *n_none_out,
			    uint64_t *n_cut_out)
{
	*n_none_out = log->n_none;
	*n_cut_out = log->n_cut;
}
