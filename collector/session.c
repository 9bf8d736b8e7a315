/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/session.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cursor.h"
#include "base/mem.h"
#include "base/stats.h"
#include "collector/record_writer.h"

enum { CPUS_CHECK_INTERVAL_NS = 200000000, WARNING_MAX_BYTES = 512 };

static struct session *from_source(struct record_source *source)
{
	return (struct session *)source;
}

static char *copy_or_null(const char *s)
{
	return s ? mem_copy_string(s) : NULL;
}

void session_warn(struct session *session, int number, const char *why, const char *fix,
		  const char *fmt, ...)
{
	char text[WARNING_MAX_BYTES];
	va_list args;

	if (session->state.n_warnings == SESSION_MAX_WARNINGS)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	session->warnings[session->state.n_warnings++] = (struct collector_warning){
		.number = number,
		.text = mem_copy_string(text),
		.why = copy_or_null(why),
		.fix = copy_or_null(fix),
	};
}

void session_add_tid(struct session *session, pid_t tid)
{
	if (session->n_tids == session->tids_capacity) {
		session->tids_capacity = session->tids_capacity ? session->tids_capacity * 2 : 16;
		session->tids =
			mem_realloc(session->tids, session->tids_capacity, sizeof(*session->tids));
	}
	session->tids[session->n_tids++] = tid;
}

/* --- targets and CPUs --- */

/* In a cgroup's case the side band is of the whole CPU: tasks may be moved in later. */
static struct ring_set_target side_band_target(const struct session *session, pid_t pid,
					       unsigned flags)
{
	bool is_cgroup = flags & PERF_FLAG_PID_CGROUP;

	return (struct ring_set_target){
		.pid = is_cgroup ? -1 : pid,
		.flags = flags & ~(unsigned)PERF_FLAG_PID_CGROUP,
		.first_event = session->n_sampling,
		.n_events = 1,
	};
}

int session_add_target(struct session *session, pid_t pid, unsigned flags, uint32_t *event_out)
{
	struct ring_set_target sampling = {
		.pid = pid, .flags = flags, .n_events = session->n_sampling};
	struct ring_set_target side_band = side_band_target(session, pid, flags);
	int errno_value = 0;

	/*
	 * The side band last and on all CPUs: who sees a FORK record of a thread then knows that
	 * the thread inherited all sampling events.
	 */
	for (uint32_t i = 0; !errno_value && i < session->rings.n_cpus; i++)
		errno_value = ring_set_add(&session->rings, i, &sampling, event_out);
	for (uint32_t i = 0; !errno_value && i < session->rings.n_cpus; i++)
		errno_value = ring_set_add(&session->rings, i, &side_band, event_out);
	return errno_value;
}

static int add_target_on_cpu(struct session *session, uint32_t i, pid_t pid, unsigned flags)
{
	struct ring_set_target sampling = {
		.pid = pid, .flags = flags, .n_events = session->n_sampling};
	struct ring_set_target side_band = side_band_target(session, pid, flags);
	uint32_t event;
	int errno_value = ring_set_add(&session->rings, i, &sampling, &event);

	if (!errno_value)
		errno_value = ring_set_add(&session->rings, i, &side_band, &event);
	return errno_value;
}

static void add_all_on_cpu(struct session *session, uint32_t i)
{
	switch (session->scope) {
	case COLLECTOR_SYSTEM:
		(void)!add_target_on_cpu(session, i, -1, 0);
		break;
	case COLLECTOR_CGROUP:
		(void)!add_target_on_cpu(session, i, session->cgroup_fd, PERF_FLAG_PID_CGROUP);
		break;
	case COLLECTOR_PIDS:
	case COLLECTOR_COMMAND:
		if (session->is_filtered)
			(void)!add_target_on_cpu(session, i, -1, 0);
		/* Threads and children that came since are not known here; those that come
		 * from now on inherit. */
		for (size_t t = 0; t < session->n_tids; t++)
			(void)!add_target_on_cpu(session, i, session->tids[t], 0);
		break;
	}
}

static void list_fds(struct session *session)
{
	const struct ring_set *sets[] = {&session->rings, &session->exec.rings};

	session->fds =
		mem_realloc(session->fds, session->rings.n_cpus + session->exec.rings.n_cpus + 1,
			    sizeof(*session->fds));
	session->n_fds = 0;
	for (size_t s = 0; s < ARRAY_LEN(sets); s++) {
		/* Too many execs: they are collected when something else wakes the caller. */
		if (s == 1 && session->exec.is_asleep)
			continue;
		for (uint32_t i = 0; i < sets[s]->n_cpus; i++)
			session->fds[session->n_fds++] = sets[s]->cpus[i].keeper_fd;
	}
}

static struct error *take_ring(struct session *session, struct ring_cpu *cpu);
static struct error *tell_lost(struct session *session, struct ring_cpu *cpu);

static struct error *remove_cpu(struct session *session, uint32_t i)
{
	uint32_t cpu = session->rings.cpus[i].cpu;
	struct error *err = take_ring(session, &session->rings.cpus[i]);

	if (!err)
		err = tell_lost(session, &session->rings.cpus[i]);
	ring_set_remove_cpu(&session->rings, cpu);
	ring_set_remove_cpu(&session->exec.rings, cpu);
	return err;
}

/* A CPU that went again before its events were open is tried anew at the next check. */
static void add_cpu(struct session *session, uint32_t cpu)
{
	struct error *err = ring_set_add_cpu(&session->rings, cpu);

	if (err) {
		session_warn(session, error_get_number(err), NULL, NULL,
			     "CPU %u is not sampled: %s", cpu, error_text(err));
		error_free(err);
		return;
	}
	add_all_on_cpu(session, session->rings.n_cpus - 1);
	if (!session->exec.is_open)
		return;
	err = ring_set_add_cpu(&session->exec.rings, cpu);
	bool has_command = session->scope == COLLECTOR_COMMAND;
	if (!err && has_command && session->is_filtered)
		(void)!exec_watch_add(&session->exec, session->exec.rings.n_cpus - 1,
				      session->child.pid, 0);
	else if (!err && (session->scope == COLLECTOR_SYSTEM || session->is_filtered))
		(void)!exec_watch_add(&session->exec, session->exec.rings.n_cpus - 1, -1, 0);
	else if (!err && session->scope == COLLECTOR_CGROUP)
		(void)!exec_watch_add(&session->exec, session->exec.rings.n_cpus - 1,
				      session->cgroup_fd, PERF_FLAG_PID_CGROUP);
	for (size_t t = 0; !err && t < session->n_tids; t++)
		(void)!exec_watch_add(&session->exec, session->exec.rings.n_cpus - 1,
				      session->tids[t], 0);
	error_free(err);
}

struct error *session_set_cpus(struct session *session, struct cpu_set *cpus)
{
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < session->rings.n_cpus;) {
		if (cpu_set_has(cpus, session->rings.cpus[i].cpu))
			i++;
		else
			err = remove_cpu(session, i);
	}
	for (uint32_t i = 0; !err && i < cpus->n; i++) {
		if (!cpu_set_has(&session->cpus, cpus->cpus[i]))
			add_cpu(session, cpus->cpus[i]);
	}
	cpu_set_fini(&session->cpus);
	session->cpus = *cpus;
	*cpus = (struct cpu_set){0};
	session->state.n_cpus = session->cpus.n;
	session->state.n_rings = session->rings.n_cpus;
	return err;
}

static struct error *check_cpus(struct session *session, uint64_t now_ns)
{
	struct cpu_set online CLEANUP(cpu_set_fini) = {0};

	if (session->are_cpus_held || now_ns - session->cpus_checked_ns < CPUS_CHECK_INTERVAL_NS)
		return NULL;
	session->cpus_checked_ns = now_ns;
	struct error *err = cpu_set_read_online(&online);
	if (err) {
		/* Goes on with the CPUs it has. */
		error_free(err);
		return NULL;
	}
	return cpu_set_equal(&online, &session->cpus) ? NULL : session_set_cpus(session, &online);
}

/* --- records --- */

struct record_block {
	struct reorder_block block; /* first: the reorder gives this back */
	uint8_t bytes[];
};

static void release_block(struct reorder_block *block)
{
	mem_free(block);
}

static struct record_block *new_block(size_t n)
{
	struct record_block *made = mem_alloc(sizeof(*made) + n);

	made->block = (struct reorder_block){.bytes = n, .is_open = true, .release = release_block};
	return made;
}

static uint64_t field_u64(const uint8_t *p)
{
	uint64_t value;

	memcpy(&value, p, sizeof(value));
	return value;
}

static uint32_t event_of_id(const struct session *session, uint64_t id)
{
	const uint64_t *event = hash_map_get(&session->rings.event_of_id, id);

	return event ? (uint32_t)*event : PERF_EVENT_INDEX_NONE;
}

/* Time and event lie at fixed places: from the start of a sample, from the end of all others. */
static void locate(const struct session *session, struct perf_record *record)
{
	enum { SAMPLE_MIN_BYTES = 48 }; /* header, identifier, ip, tid, time, cpu: always there */
	const struct sample_layout *layout = &session->layout;
	const uint8_t *start = record->bytes;
	const uint8_t *end = start + record->size;

	record->event_index = PERF_EVENT_INDEX_NONE;
	if (record->type == PERF_RECORD_SAMPLE) {
		if (record->size < SAMPLE_MIN_BYTES)
			return;
		record->time_ns = field_u64(start + layout->time_from_start);
		record->event_index =
			event_of_id(session, field_u64(start + layout->id_from_start));
	} else if (record->size >= sizeof(struct perf_event_header) + layout->trailer_bytes) {
		record->time_ns = field_u64(end - layout->time_from_end);
		record->event_index = event_of_id(session, field_u64(end - layout->id_from_end));
	}
}

static bool is_excluded(const struct session *session, const struct perf_record *record)
{
	uint32_t pid;

	if (!session->excluded_pid || record->type != PERF_RECORD_SAMPLE ||
	    record->size < session->layout.tid_from_start + sizeof(pid))
		return false;
	memcpy(&pid, record->bytes + session->layout.tid_from_start, sizeof(pid));
	return pid == (uint32_t)session->excluded_pid;
}

static struct error *take_record(struct session *session, struct ring_cpu *cpu,
				 const struct perf_event_header *header, const uint8_t *bytes,
				 struct reorder_block *block)
{
	enum { LOST_AT = 16, LOST_MIN_BYTES = 24 };
	struct perf_record record = {
		.bytes = bytes, .type = header->type, .size = header->size, .misc = header->misc};

	locate(session, &record);
	if (header->type == PERF_RECORD_LOST && header->size >= LOST_MIN_BYTES)
		cpu->n_lost_told += field_u64(bytes + LOST_AT);
	if (is_excluded(session, &record)) {
		stats_add(STAT_SAMPLES_FILTERED, 1);
		return NULL;
	}
	return reorder_add(&session->reorder, &record, block);
}

/* Copies first and gives the room back at once, so that the kernel never waits for a sink. */
static struct error *take_ring(struct session *session, struct ring_cpu *cpu)
{
	uint64_t n = perf_ring_ready(&cpu->ring);
	struct perf_event_header header;
	const uint8_t *bytes;
	size_t offset = 0;
	struct error *err = NULL;

	if (n == 0)
		return NULL;
	struct record_block *made = new_block(n);
	perf_ring_copy(&cpu->ring, made->bytes, n);
	perf_ring_release(&cpu->ring, n);
	while (!err && (bytes = perf_ring_next(made->bytes, n, &offset, &header)))
		err = take_record(session, cpu, &header, bytes, &made->block);
	reorder_block_close(&made->block);
	return err;
}

static struct error *take_execs(struct session *session, uint64_t now_ns, bool *has_any_out)
{
	struct perf_event_header header;
	const uint8_t *bytes;
	size_t offset = 0;
	struct error *err = NULL;

	*has_any_out = false;
	if (!session->exec.is_open)
		return NULL;
	bool was_asleep = session->exec.is_asleep;
	buf_clear(&session->exec_records);
	exec_watch_drain(&session->exec, now_ns, &session->exec_records);
	if (was_asleep != session->exec.is_asleep)
		list_fds(session);
	size_t n = session->exec_records.size;
	if (n == 0)
		return NULL;
	*has_any_out = true;
	struct record_block *made = new_block(n);
	memcpy(made->bytes, session->exec_records.data, n);
	while (!err && (bytes = perf_ring_next(made->bytes, n, &offset, &header))) {
		struct perf_record record = {
			.bytes = bytes,
			.type = header.type,
			.size = header.size,
			.time_ns = field_u64(bytes +
					     offsetof(struct perf_record_perfpipe_exec, time_ns)),
			.event_index = PERF_EVENT_INDEX_NONE,
		};
		err = reorder_add(&session->reorder, &record, &made->block);
	}
	reorder_block_close(&made->block);
	return err;
}

/* One LOST_SAMPLES record in the name of an event. */
static struct error *add_lost(struct session *session, const struct ring_cpu *cpu, uint32_t event,
			      uint64_t n_lost)
{
	struct buf bytes CLEANUP(buf_fini);
	struct record_writer writer = {.out = &bytes};
	uint64_t now_ns = clock_system.monotonic_ns(clock_system.context);

	buf_init(&bytes, 256);
	record_writer_begin(&writer, PERF_RECORD_LOST_SAMPLES, 0);
	record_writer_u64(&writer, n_lost);
	record_writer_u64(&writer, 0); /* the trailer: pid and tid, time, cpu, identifier */
	record_writer_u64(&writer, now_ns);
	record_writer_u64(&writer, cpu->cpu);
	record_writer_u64(&writer, session->info.events[event].ids[0]);
	struct error *err = record_writer_end(&writer);
	if (err)
		return err;
	struct record_block *made = new_block(bytes.size);
	memcpy(made->bytes, bytes.data, bytes.size);
	struct perf_record record = {
		.bytes = made->bytes,
		.type = PERF_RECORD_LOST_SAMPLES,
		.size = (uint32_t)bytes.size,
		.time_ns = now_ns,
		.event_index = event,
	};
	err = reorder_add(&session->reorder, &record, &made->block);
	reorder_block_close(&made->block);
	return err;
}

/*
 * The kernel writes a LOST record when there is room again; what was lost at the very end is told
 * by read(2) alone. LOST records name the event that came after, so only sums can be compared.
 */
static struct error *tell_lost(struct session *session, struct ring_cpu *cpu)
{
	uint64_t *lost CLEANUP(cleanup_mem) = mem_zalloc(session->info.n_events, sizeof(*lost));
	uint64_t n_total = 0;
	struct error *err = NULL;

	ring_set_read_lost(&session->rings, cpu->cpu, lost);
	for (uint32_t i = 0; i < session->info.n_events; i++)
		n_total += lost[i];
	uint64_t n_left = n_total > cpu->n_lost_told ? n_total - cpu->n_lost_told : 0;
	for (uint32_t i = 0; !err && i < session->info.n_events && n_left; i++) {
		uint64_t n = lost[i] < n_left ? lost[i] : n_left;
		if (n)
			err = add_lost(session, cpu, i, n);
		n_left -= n;
	}
	cpu->n_lost_told = n_total > cpu->n_lost_told ? n_total : cpu->n_lost_told;
	return err;
}

/* What runs already, ahead of everything: a record without a time is not ordered. */
static struct error *send_synthetic(struct session *session, perf_record_sink_fn sink,
				    void *context)
{
	struct perf_record batch[REORDER_BATCH_RECORDS];
	struct perf_event_header header;
	const uint8_t *bytes;
	size_t offset = 0, n = 0;
	struct error *err = NULL;

	while (!err && (bytes = perf_ring_next(session->synthetic.data, session->synthetic.size,
					       &offset, &header))) {
		batch[n++] = (struct perf_record){
			.bytes = bytes,
			.type = header.type,
			.size = header.size,
			.misc = header.misc,
			.event_index = PERF_EVENT_INDEX_NONE,
			.is_synthetic = true,
		};
		if (n == ARRAY_LEN(batch)) {
			err = sink(context, batch, n);
			n = 0;
		}
	}
	if (!err && n)
		err = sink(context, batch, n);
	buf_fini(&session->synthetic);
	return err;
}

static struct error *take_rings(struct session *session)
{
	struct error *err = NULL;

	for (uint32_t i = 0; !err && i < session->rings.n_cpus; i++)
		err = take_ring(session, &session->rings.cpus[i]);
	return err;
}

/* What was there when it began, and no more: rings that fill faster than they are read do not
 * hold the caller. */
static struct error *take_round(struct session *session, uint64_t now_ns)
{
	bool has_execs;
	struct error *err = take_execs(session, now_ns, &has_execs);

	if (!err)
		err = take_rings(session);
	if (err || session->is_stopped)
		return err;
	err = reorder_round(&session->reorder);
	if (err || !has_execs || session->exec.is_asleep)
		return err;
	/*
	 * A round gives out what the one before it held. A new program may be gone, file and all,
	 * before the next wake-up, so what it mapped is given out now.
	 */
	err = take_execs(session, now_ns, &has_execs);
	if (!err)
		err = take_rings(session);
	return err ? err : reorder_round(&session->reorder);
}

static struct error *finish(struct session *session)
{
	struct error *err = NULL;

	for (uint32_t i = 0; !err && !session->is_lost_told && i < session->rings.n_cpus; i++)
		err = tell_lost(session, &session->rings.cpus[i]);
	session->is_lost_told = true;
	return err ? err : reorder_flush(&session->reorder);
}

static struct error *drain(struct record_source *source, perf_record_sink_fn sink, void *context)
{
	struct session *session = from_source(source);
	uint64_t now_ns = clock_system.monotonic_ns(clock_system.context);
	struct error *err = NULL;

	session->filter.sink = sink;
	session->filter.context = context;
	if (session->is_filtered)
		reorder_set_sink(&session->reorder, pid_filter_pass, &session->filter);
	else
		reorder_set_sink(&session->reorder, sink, context);
	if (session->synthetic.size)
		err = send_synthetic(session, sink, context);
	if (!err && session->is_running)
		err = check_cpus(session, now_ns);
	if (!err)
		err = take_round(session, now_ns);
	if (!err && session->is_stopped)
		return finish(session);
	return err ? err : reorder_emit(&session->reorder);
}

static const struct perf_source_info *get_info(struct record_source *source)
{
	return &from_source(source)->info;
}

static void free_info(struct perf_source_info *info)
{
	for (uint32_t i = 0; i < info->n_events; i++) {
		mem_free(info->events[i].name);
		mem_free(info->events[i].ids);
	}
	for (uint32_t i = 0; i < info->n_build_ids; i++)
		mem_free(info->build_ids[i].filename);
	mem_free(info->events);
	mem_free(info->build_ids);
	mem_free(info->hostname);
	mem_free(info->os_release);
	mem_free(info->perf_version);
	mem_free(info->arch);
	mem_free(info->cmdline);
}

static void close_session(struct record_source *source)
{
	struct session *session = from_source(source);

	child_close(&session->child);
	exec_watch_close(&session->exec);
	ring_set_fini(&session->rings);
	reorder_fini(&session->reorder);
	pid_filter_fini(&session->filter);
	free_info(&session->info);
	for (size_t i = 0; i < session->n_pids; i++) {
		if (session->pid_fds[i] >= 0)
			close(session->pid_fds[i]);
	}
	if (session->cgroup_fd >= 0)
		close(session->cgroup_fd);
	for (size_t i = 0; i < session->state.n_warnings; i++) {
		mem_free((char *)session->warnings[i].text);
		mem_free((char *)session->warnings[i].why);
		mem_free((char *)session->warnings[i].fix);
	}
	buf_fini(&session->exec_records);
	buf_fini(&session->synthetic);
	cpu_set_fini(&session->cpus);
	mem_free(session->pids);
	mem_free(session->pid_fds);
	mem_free(session->tids);
	mem_free(session->child_name);
	mem_free(session->fds);
	mem_free(session);
}

const struct record_source_ops session_ops = {
	.kind = "live",
	.drain = drain,
	.info = get_info,
	.close = close_session,
};

/* --- the door --- */

struct error *collector_live_start(struct record_source *source)
{
	struct session *session = from_source(source);
	struct error *err = NULL;

	/* Events of the command's own: the kernel enables them at the exec. */
	if (session->scope != COLLECTOR_COMMAND || session->is_filtered)
		ring_set_ioctl(&session->rings, PERF_EVENT_IOC_ENABLE);
	/* What is opened from now on (hotplug) runs at once. */
	for (uint32_t i = 0; i < session->n_sampling; i++) {
		perf_attr_set(&session->info.events[i].attr, PERF_ATTR_DISABLED, 0);
		perf_attr_set(&session->info.events[i].attr, PERF_ATTR_ENABLE_ON_EXEC, 0);
	}
	session->is_running = true;
	if (session->scope == COLLECTOR_COMMAND)
		err = child_run(&session->child, session->child_name);
	return err;
}

void collector_live_disable(struct record_source *source)
{
	struct session *session = from_source(source);

	ring_set_ioctl(&session->rings, PERF_EVENT_IOC_DISABLE);
	ring_set_ioctl(&session->exec.rings, PERF_EVENT_IOC_DISABLE);
}

struct error *collector_live_stop(struct record_source *source)
{
	struct session *session = from_source(source);

	collector_live_disable(source);
	session->is_running = false;
	session->is_stopped = true;
	return NULL;
}

/* So many of them have to fit into a ring. */
enum { RING_STACKS_MIN = 16 };

bool collector_live_grow_stacks(struct record_source *source)
{
	struct session *session = from_source(source);
	uint32_t old_bytes = session->info.events[0].attr.sample_stack_user;
	uint32_t bytes = old_bytes * 2 < COLLECTOR_STACK_BYTES_MAX ? old_bytes * 2
								   : COLLECTOR_STACK_BYTES_MAX;
	bool is_cgroup = session->scope == COLLECTOR_CGROUP;
	bool is_of_cpus = session->scope == COLLECTOR_SYSTEM || session->is_filtered;

	if (!session->is_running || bytes <= old_bytes || (!is_of_cpus && !is_cgroup) ||
	    (uint64_t)bytes * RING_STACKS_MIN > session->rings.ring_bytes)
		return false;
	/* Other events have other ids. */
	if (session->are_cpus_held)
		return true;
	for (uint32_t i = 0; i < session->n_sampling; i++)
		session->info.events[i].attr.sample_stack_user = bytes;
	ring_set_renew(&session->rings, session->n_sampling, is_cgroup ? PERF_FLAG_PID_CGROUP : 0);
	return true;
}

struct error *collector_live_describe_anew(struct record_source *source)
{
	struct session *session = from_source(source);

	return session->synthetic.size ? NULL : session_scan(session);
}

void collector_live_hold_cpus(struct record_source *source, bool is_held)
{
	from_source(source)->are_cpus_held = is_held;
}

const int *collector_live_fds(struct record_source *source, size_t *n_out)
{
	struct session *session = from_source(source);

	list_fds(session);
	*n_out = session->n_fds;
	return session->fds;
}

pid_t collector_live_child(struct record_source *source)
{
	return from_source(source)->child.pid;
}

static bool is_gone(int pid_fd, pid_t pid)
{
	struct pollfd poll_fd = {.fd = pid_fd, .events = POLLIN};

	if (pid_fd >= 0)
		return poll(&poll_fd, 1, 0) == 1;
	return kill(pid, 0) < 0 && errno == ESRCH;
}

bool collector_live_is_target_gone(struct record_source *source)
{
	struct session *session = from_source(source);

	if (session->scope == COLLECTOR_CGROUP)
		return faccessat(session->cgroup_fd, "cgroup.procs", F_OK, 0) < 0;
	for (size_t i = 0; i < session->n_pids; i++) {
		if (!is_gone(session->pid_fds[i], session->pids[i]))
			return false;
	}
	return session->n_pids > 0;
}

const struct collector_live_state *collector_live_state(struct record_source *source)
{
	struct session *session = from_source(source);

	session->state.warnings = session->warnings;
	session->state.n_execs_seen = session->exec.n_seen;
	session->state.n_execs_argv_record = session->exec.n_argv_record;
	session->state.n_execs_argv_proc = session->exec.n_argv_proc;
	session->state.n_execs_argv_none = session->exec.n_argv_none;
	return &session->state;
}
