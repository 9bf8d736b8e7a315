/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/exec_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/mem.h"
#include "base/stats.h"
#include "collector/event_attr.h"
#include "collector/exec_stack.h"
#include "collector/record_writer.h"
#include "collector/tracepoint.h"

enum {
	STACK_BYTES = 8 << 10,
	RING_BYTES = 512 << 10,	   /* about 60 execs */
	WORDS_MAX_BYTES = 8 << 20, /* texts of one drain */
	SCRATCH_MAX_BYTES = 64 << 10,
	PATH_MAX_BYTES = 4096,
	MAX_PASSES = 4,	      /* drains and reads in turn before what is left stays unread */
	MAX_COMM_PASSES = 15, /* a COMM record comes before its cmdline: about 2 ms in all */
	COMM_PASS_NS = 100000,
	STARTTIME_FIELD = 19, /* of /proc/PID/stat, counted behind the name */
	SECOND_NS = 1000000000,
#if defined(__aarch64__)
	REG_SP = 31, /* PERF_REG_ARM64_SP */
#else
	REG_SP = 7, /* PERF_REG_X86_SP */
#endif
};

struct text {
	size_t at; /* in words */
	size_t size;
};

struct exec_event {
	uint32_t pid, tid;
	uint64_t time_ns;
	struct text stack_argv, proc_argv, cgroup, exe, proc_exe;
	bool is_stack_whole;
	bool is_proc_cut;
	bool is_read; /* /proc was looked at */
};

static void set_tracepoint(struct perf_event_attr *attr, uint64_t id)
{
	*attr = (struct perf_event_attr){
		.type = PERF_TYPE_TRACEPOINT,
		.size = offsetof(struct perf_event_attr, config3),
		.config = id,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER |
			       PERF_SAMPLE_STACK_USER,
		.wakeup_events = 1,
		.sample_regs_user = 1ull << REG_SP,
		.sample_stack_user = STACK_BYTES,
		.clockid = CLOCK_MONOTONIC,
	};
	perf_attr_set(attr, PERF_ATTR_USE_CLOCKID, 1);
	perf_attr_set(attr, PERF_ATTR_SAMPLE_ID_ALL, 1);
}

static void set_comm(struct perf_event_attr *attr)
{
	*attr = (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = offsetof(struct perf_event_attr, config3),
		.config = PERF_COUNT_SW_DUMMY,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU,
		.clockid = CLOCK_MONOTONIC,
	};
	perf_attr_set(attr, PERF_ATTR_USE_CLOCKID, 1);
	perf_attr_set(attr, PERF_ATTR_SAMPLE_ID_ALL, 1);
	perf_attr_set(attr, PERF_ATTR_COMM, 1);
	perf_attr_set(attr, PERF_ATTR_COMM_EXEC, 1);
	perf_attr_set(attr, PERF_ATTR_EXCLUDE_KERNEL, 1);
	perf_attr_set(attr, PERF_ATTR_EXCLUDE_HV, 1);
}

/* Whether the kernel lets this user have the tracepoint at all, tried on ourselves. */
static bool is_permitted(struct exec_watch *watch)
{
	struct perf_event_attr attr = watch->event.attr;
	int fd CLEANUP(cleanup_fd) = event_open(&watch->opener, &attr, 0, -1, 0);

	return fd >= 0 && !watch->opener.is_user_only;
}

static const char *choose_event(struct exec_watch *watch)
{
	uint64_t id = 0;
	const char *why = NULL;
	struct error *err = tracepoint_read_id("sched", "sched_process_exec", &id);

	if (err) {
		why = error_get_code(err) == ERROR_DENIED ? "tracefs may not be read by this user"
							  : "tracefs is not mounted";
		error_free(err);
	} else {
		set_tracepoint(&watch->event.attr, id);
		if (!is_permitted(watch))
			why = "tracepoints may not be used by this user";
	}
	watch->has_tracepoint = !why;
	if (why) {
		watch->opener = (struct event_opener){0};
		set_comm(&watch->event.attr);
		watch->rings.wakeup_bytes = 1;
	} else {
		watch->filename_offset =
			tracepoint_read_field("sched", "sched_process_exec", "filename");
	}
	return why;
}

struct error *exec_watch_open(struct exec_watch *watch, const struct cpu_set *cpus,
			      bool is_inherited, const char **why_out)
{
	struct timespec boot, monotonic;

	*watch = (struct exec_watch){.is_open = true};
	clock_gettime(CLOCK_BOOTTIME, &boot);
	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	watch->boot_offset_ns =
		(boot.tv_sec - monotonic.tv_sec) * SECOND_NS + (boot.tv_nsec - monotonic.tv_nsec);
	ring_set_init(&watch->rings, &watch->opener, &watch->event, 1);
	hash_map_init(&watch->last_of_pid);
	buf_init(&watch->words, WORDS_MAX_BYTES);
	buf_init(&watch->scratch, SCRATCH_MAX_BYTES);
	buf_init(&watch->ring_copy, RING_BYTES);
	*why_out = choose_event(watch);
	perf_attr_set(&watch->event.attr, PERF_ATTR_INHERIT, is_inherited);
	struct error *err = ring_set_open_rings(&watch->rings, cpus, RING_BYTES);
	if (err)
		exec_watch_close(watch);
	return err;
}

void exec_watch_close(struct exec_watch *watch)
{
	if (!watch->is_open)
		return;
	ring_set_fini(&watch->rings);
	hash_map_fini(&watch->last_of_pid);
	buf_fini(&watch->words);
	buf_fini(&watch->scratch);
	buf_fini(&watch->ring_copy);
	mem_free(watch->events);
	mem_free(watch->event.ids);
	*watch = (struct exec_watch){0};
}

int exec_watch_add(struct exec_watch *watch, uint32_t cpu_index, pid_t pid, unsigned flags)
{
	struct ring_set_target target = {.pid = pid, .flags = flags, .n_events = 1};
	uint32_t event;

	return ring_set_add(&watch->rings, cpu_index, &target, &event);
}

/* --- from the rings --- */

static struct text keep_text(struct exec_watch *watch, const char *s, size_t n)
{
	struct text text = {.at = watch->words.size, .size = n};
	struct error *err = buf_append(&watch->words, s, n);

	if (!err)
		return text;
	error_free(err);
	return (struct text){0};
}

static void add_event(struct exec_watch *watch, const struct exec_event *event)
{
	/* Outside of our PID namespace, where nothing tells one process from the other. */
	if (event->pid == 0)
		return;
	if (watch->n_events == watch->events_capacity) {
		watch->events_capacity = watch->events_capacity ? watch->events_capacity * 2 : 64;
		watch->events =
			mem_realloc(watch->events, watch->events_capacity, sizeof(*watch->events));
	}
	bool is_new;
	uint64_t *last = hash_map_put(&watch->last_of_pid, event->pid, &is_new);
	if (is_new || watch->events[*last].time_ns <= event->time_ns)
		*last = watch->n_events;
	watch->events[watch->n_events++] = *event;
	watch->n_seen++;
	watch->n_in_window++;
}

/* The raw data names the file that was exec'ed: a length and an offset in 32 bits (__data_loc). */
static void take_filename(struct exec_watch *watch, struct cursor raw, struct exec_event *event)
{
	struct cursor location = raw;

	if (!watch->filename_offset)
		return;
	cursor_seek(&location, watch->filename_offset);
	uint32_t data_loc = cursor_u32(&location);
	cursor_seek(&raw, data_loc & 0xffff);
	const char *name = cursor_string(&raw, PATH_MAX_BYTES);
	/* Relative to a folder that is not known here. */
	if (name && name[0] == '/' && cursor_is_ok(&location))
		event->exe = keep_text(watch, name, strlen(name));
}

/* perf_event_open(2): the fields of a sample, for set_tracepoint's sample_type. */
static void take_sample(struct exec_watch *watch, struct cursor c)
{
	struct exec_event event = {0};

	cursor_skip(&c, sizeof(uint64_t)); /* identifier */
	event.pid = cursor_u32(&c);
	event.tid = cursor_u32(&c);
	event.time_ns = cursor_u64(&c);
	cursor_skip(&c, sizeof(uint64_t)); /* cpu */
	struct cursor raw = cursor_sub(&c, cursor_u32(&c));
	enum { ABI_NONE, ABI_32, ABI_64 };
	uint64_t abi = cursor_u64(&c);
	struct exec_stack stack = {.is_32_bit = abi == ABI_32};
	if (abi != ABI_NONE)
		stack.sp = cursor_u64(&c);
	uint64_t dump_bytes = cursor_u64(&c);
	stack.bytes = cursor_bytes(&c, dump_bytes);
	if (dump_bytes)
		stack.size = cursor_u64(&c); /* the part of the dump that was really copied */
	if (!cursor_is_ok(&c) || stack.size > dump_bytes) {
		stats_add(STAT_RECORDS_MALFORMED, 1);
		return;
	}
	take_filename(watch, raw, &event);
	size_t at = watch->words.size;
	if (abi != ABI_NONE && stack.size)
		event.is_stack_whole = exec_stack_read_argv(&stack, &watch->words);
	event.stack_argv = (struct text){.at = at, .size = watch->words.size - at};
	add_event(watch, &event);
}

/* COMM: pid, tid, name …; the time is in the trailer (tid, time, cpu, identifier). */
static void take_comm(struct exec_watch *watch, struct cursor c)
{
	enum { TRAILER_BYTES = 32, TIME_IN_TRAILER = 8 };
	struct exec_event event = {0};
	size_t size = cursor_left(&c);

	event.pid = cursor_u32(&c);
	event.tid = cursor_u32(&c);
	if (size < TRAILER_BYTES)
		return;
	cursor_seek(&c, size - TRAILER_BYTES + TIME_IN_TRAILER);
	event.time_ns = cursor_u64(&c);
	if (cursor_is_ok(&c))
		add_event(watch, &event);
}

static void take_record(struct exec_watch *watch, const struct perf_event_header *header,
			const uint8_t *record)
{
	struct cursor body =
		cursor_make(record + sizeof(*header), header->size - sizeof(*header), false);

	if (header->type == PERF_RECORD_SAMPLE && watch->has_tracepoint) {
		take_sample(watch, body);
	} else if (header->type == PERF_RECORD_COMM && !watch->has_tracepoint &&
		   header->misc & PERF_RECORD_MISC_COMM_EXEC) {
		take_comm(watch, body);
	} else if (header->type == PERF_RECORD_LOST) {
		cursor_skip(&body, sizeof(uint64_t));
		uint64_t n = cursor_u64(&body);
		watch->n_seen += n;
		watch->n_argv_none += n;
		watch->n_in_window += n;
	}
}

static void collect(struct exec_watch *watch)
{
	for (uint32_t i = 0; i < watch->rings.n_cpus; i++) {
		struct perf_ring *ring = &watch->rings.cpus[i].ring;
		uint64_t n = perf_ring_ready(ring);
		buf_clear(&watch->ring_copy);
		if (n == 0)
			continue;
		struct error *err = buf_reserve(&watch->ring_copy, n);
		if (err) {
			/* Cannot be: a ring is no larger than the buffer's maximum. */
			error_free(err);
			perf_ring_release(ring, n);
			continue;
		}
		perf_ring_copy(ring, watch->ring_copy.data, n);
		perf_ring_release(ring, n);
		size_t offset = 0;
		struct perf_event_header header;
		const uint8_t *record;
		while ((record = perf_ring_next(watch->ring_copy.data, n, &offset, &header)))
			take_record(watch, &header, record);
		/* The copied stacks hold environments, which are nobody's business. */
		explicit_bzero(watch->ring_copy.data, n);
	}
}

/* --- from /proc --- */

/* As much of a /proc file as scratch may hold; false when it is gone. */
static bool read_proc(struct exec_watch *watch, uint32_t pid, const char *file)
{
	char path[64];
	struct buf *out = &watch->scratch;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, file);
	buf_clear(out);
	int fd CLEANUP(cleanup_fd) = open(path, O_RDONLY | O_CLOEXEC);
	struct error *err = buf_reserve(out, EXEC_WATCH_ARGV_MAX_BYTES + 1);
	error_free(err);
	if (fd < 0 || err)
		return false;
	ssize_t n;
	do {
		n = read(fd, out->data + out->size, EXEC_WATCH_ARGV_MAX_BYTES + 1 - out->size);
		if (n > 0)
			out->size += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	return n == 0;
}

/* Whether the process that has the pid now is the one that exec'ed at time_ns. */
static bool is_same_process(struct exec_watch *watch, uint32_t pid, uint64_t time_ns)
{
	if (!read_proc(watch, pid, "stat"))
		return false;
	const char *p = strrchr(buf_string(&watch->scratch), ')');
	for (int i = 0; p && i <= STARTTIME_FIELD; i++)
		p = strchr(p + 1, ' ');
	if (!p)
		return false;
	uint64_t tick_ns = SECOND_NS / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t started_ns = strtoull(p, NULL, 10) * tick_ns;
	return started_ns <= time_ns + (uint64_t)watch->boot_offset_ns + tick_ns;
}

/* False when the kernel has not set the new arguments yet, as at a COMM record. */
static bool read_cmdline(struct exec_watch *watch, struct exec_event *event)
{
	if (!read_proc(watch, event->pid, "cmdline"))
		return true;
	if (watch->scratch.size == 0)
		return watch->has_tracepoint;
	size_t n = watch->scratch.size;
	event->is_proc_cut = n > EXEC_WATCH_ARGV_MAX_BYTES;
	if (event->is_proc_cut)
		n = EXEC_WATCH_ARGV_MAX_BYTES;
	/* A cut word is left out whole; what a program wrote over itself may lack its 0. */
	while (event->is_proc_cut && n && watch->scratch.data[n - 1])
		n--;
	struct text text = keep_text(watch, (const char *)watch->scratch.data, n);
	if (text.size && watch->words.data[text.at + text.size - 1]) {
		error_free(buf_append(&watch->words, "", 1));
		text.size = watch->words.size - text.at;
	}
	if (text.size && is_same_process(watch, event->pid, event->time_ns))
		event->proc_argv = text;
	return true;
}

const char *exec_watch_pick_cgroup(const char *text, size_t *n_out)
{
	const char *best = NULL;
	int best_rank = -1;

	/* "5:cpu,cpuacct:/a", "1:name=systemd:/b", "0::/c" */
	for (const char *line = text; *line;) {
		size_t n = strcspn(line, "\n");
		const char *list = memchr(line, ':', n);
		const char *path =
			list ? memchr(list + 1, ':', n - (size_t)(list + 1 - line)) : NULL;
		if (path) {
			size_t n_path = n - (size_t)(path + 1 - line);
			int rank = n_path <= 1			     ? 0
				   : strncmp(line, "0::", 3) == 0    ? 3
				   : strncmp(list, ":name=", 6) == 0 ? 2
								     : 1;
			if (rank > best_rank) {
				best_rank = rank;
				best = path + 1;
				*n_out = n_path;
			}
		}
		line += n + (line[n] == '\n');
	}
	if (!best)
		*n_out = 0;
	return best;
}

static void read_process(struct exec_watch *watch, struct exec_event *event)
{
	char path[64];
	char exe[PATH_MAX_BYTES];
	size_t n_cgroup;

	event->is_read =
		watch->is_proc_foreign || event->is_stack_whole || read_cmdline(watch, event);
	if (!event->is_read || watch->is_proc_foreign)
		return;
	if (read_proc(watch, event->pid, "cgroup")) {
		const char *cgroup = exec_watch_pick_cgroup(buf_string(&watch->scratch), &n_cgroup);
		if (cgroup && n_cgroup < PATH_MAX_BYTES)
			event->cgroup = keep_text(watch, cgroup, n_cgroup);
	}
	snprintf(path, sizeof(path), "/proc/%u/exe", event->pid);
	ssize_t n = readlink(path, exe, sizeof(exe));
	if (n > 0 && (size_t)n < sizeof(exe))
		event->proc_exe = keep_text(watch, exe, (size_t)n);
}

static bool is_last_of_pid(const struct exec_watch *watch, size_t i)
{
	const uint64_t *last = hash_map_get(&watch->last_of_pid, watch->events[i].pid);

	return last && *last == i;
}

/* --- out --- */

static void write_text(struct record_writer *writer, const struct exec_watch *watch,
		       struct text text)
{
	record_writer_string(writer, (const char *)watch->words.data + text.at, text.size);
}

static void write_exec(struct exec_watch *watch, size_t i, struct buf *records)
{
	const struct exec_event *event = &watch->events[i];
	struct perf_record_perfpipe_exec exec = {
		.pid = event->pid,
		.tid = event->tid,
		.time_ns = event->time_ns,
		.source = PERF_EXEC_UNKNOWN,
	};
	/* Read for this exec, and no later one of the pid is in the rings after the read. */
	bool is_believed = event->is_read && is_last_of_pid(watch, i);
	struct text argv = {0};

	if (event->is_stack_whole) {
		exec.source = PERF_EXEC_FROM_RECORD;
		argv = event->stack_argv;
	} else if (is_believed && event->proc_argv.size) {
		exec.source = PERF_EXEC_FROM_PROC;
		exec.is_argv_cut = event->is_proc_cut;
		argv = event->proc_argv;
	} else if (event->stack_argv.size) {
		exec.source = PERF_EXEC_FROM_RECORD;
		exec.is_argv_cut = 1;
		argv = event->stack_argv;
	}
	exec.argv_bytes = (uint32_t)argv.size;
	watch->n_argv_record += exec.source == PERF_EXEC_FROM_RECORD;
	watch->n_argv_proc += exec.source == PERF_EXEC_FROM_PROC;
	watch->n_argv_none += exec.source == PERF_EXEC_UNKNOWN;

	struct record_writer writer = {.out = records};
	record_writer_begin(&writer, PERF_RECORD_PERFPIPE_EXEC, 0);
	record_writer_bytes(&writer, (const uint8_t *)&exec + sizeof(exec.header),
			    sizeof(exec) - sizeof(exec.header));
	record_writer_bytes(&writer, watch->words.data + argv.at, argv.size);
	write_text(&writer, watch, is_believed ? event->cgroup : (struct text){0});
	write_text(&writer, watch,
		   is_believed && event->proc_exe.size ? event->proc_exe : event->exe);
	error_free(record_writer_end(&writer));
}

static void update_rate(struct exec_watch *watch, uint64_t now_ns)
{
	uint64_t elapsed_ns = now_ns - watch->rate_since_ns;

	if (watch->n_in_window > EXEC_WATCH_MAX_RATE)
		watch->is_asleep = true;
	if (elapsed_ns < SECOND_NS)
		return;
	/* A pause longer than the window makes the rate lower, as it should. */
	watch->is_asleep = watch->n_in_window * SECOND_NS / elapsed_ns > EXEC_WATCH_MAX_RATE;
	watch->n_in_window = 0;
	watch->rate_since_ns = now_ns;
}

/* The number of execs that are still to be read. */
static size_t read_unread(struct exec_watch *watch)
{
	size_t n_left = 0;

	for (size_t i = 0; i < watch->n_events; i++) {
		struct exec_event *event = &watch->events[i];
		if (event->is_read || !is_last_of_pid(watch, i))
			continue;
		read_process(watch, event);
		n_left += !event->is_read;
	}
	return n_left;
}

/* Reads and looks at the rings in turn, until a look brings nothing new. */
static void read_all(struct exec_watch *watch)
{
	const struct timespec pause = {.tv_nsec = COMM_PASS_NS};
	int n_passes = watch->has_tracepoint ? MAX_PASSES : MAX_COMM_PASSES;

	for (int pass = 0; pass < n_passes && !watch->is_asleep; pass++) {
		size_t n_left = read_unread(watch);
		size_t n = watch->n_events;
		collect(watch);
		if (n_left == 0 && watch->n_events == n)
			return;
		/* Spinning could keep the very process from its CPU. */
		if (n_left)
			nanosleep(&pause, NULL);
	}
}

void exec_watch_drain(struct exec_watch *watch, uint64_t now_ns, struct buf *records)
{
	watch->n_events = 0;
	hash_map_clear(&watch->last_of_pid);
	buf_clear(&watch->words);
	error_free(buf_append(&watch->words, "", 1)); /* so that it is never without memory */
	collect(watch);
	update_rate(watch, now_ns);
	read_all(watch);
	for (size_t i = 0; i < watch->n_events; i++)
		write_exec(watch, i, records);
}
