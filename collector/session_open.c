/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From options to a session that is ready to start. The order matters: the target is there before
 * its events, the side band runs before /proc is read, and nothing samples before start.
 */
#include "collector/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/cursor.h"
#include "base/file.h"
#include "base/mem.h"
#include "collector/cgroup_path.h"
#include "collector/event_attr.h"
#include "collector/kernel_scan.h"
#include "collector/namespaces.h"
#include "collector/proc_scan.h"

enum {
	SYNTHETIC_MAX_BYTES = 256 << 20,
	EXEC_RECORDS_MAX_BYTES = 16 << 20,
	REORDER_MAX_BYTES = 16 << 20,
	RING_STACKS = 128, /* a tenth of a second at 1 kHz, the time between two drains */
	REORDER_MAX_RECORDS = 1 << 18,
	RING_MIN_BYTES = 4096,
	RING_MAX_BYTES = 1 << 30,
	SMALL_FILE_MAX_BYTES = 1 << 20,
	FDS_BESIDE = 256, /* what the process needs beside its events */
	MAX_TID_ROUNDS = 16,
	NS_PER_S = 1000000000,
	CLOCK_LEAST_PERIOD_NS = 10000, /* of perf_swevent_start_hrtimer() */
};

static bool is_of_tasks(const struct session *session)
{
	return session->scope == COLLECTOR_PIDS || session->scope == COLLECTOR_COMMAND;
}

/* --- events --- */

/*
 * The kernel bounds each event by itself; several of them can still take so much of a CPU that
 * nothing else runs, not even who would end it. So all together get what one may have.
 */
static uint64_t highest_hz(uint32_t n_events)
{
	long max_hz = event_open_sysctl("perf_event_max_sample_rate", 0);

	if (max_hz <= 0)
		return UINT64_MAX;
	return (uint64_t)max_hz > n_events ? (uint64_t)max_hz / n_events : 1;
}

static uint32_t limit_frequency(struct session *session, uint32_t asked_hz, uint32_t n_events)
{
	uint64_t max_hz = highest_hz(n_events);

	if (asked_hz <= max_hz)
		return asked_hz;
	char *fix CLEANUP(cleanup_mem) =
		mem_format("sudo sysctl kernel.perf_event_max_sample_rate=%llu",
			   (unsigned long long)asked_hz * n_events);
	session_warn(session, 113, NULL, fix,
		     "sampling at %llu Hz instead of %u: kernel.perf_event_max_sample_rate, for %u "
		     "event%s",
		     (unsigned long long)max_hz, asked_hz, n_events, n_events == 1 ? "" : "s");
	return (uint32_t)max_hz;
}

/* A clock counts nanoseconds, so a small count asks for more samples than there can be. */
static void limit_clock_period(struct session *session, struct perf_event_info *event)
{
	uint64_t max_hz = highest_hz(session->n_sampling);
	uint64_t least_ns = NS_PER_S / max_hz + (NS_PER_S % max_hz != 0);
	uint64_t asked_ns = event->attr.sample_period;

	if (least_ns < CLOCK_LEAST_PERIOD_NS)
		least_ns = CLOCK_LEAST_PERIOD_NS;
	if (asked_ns >= least_ns || perf_attr_has(&event->attr, PERF_ATTR_FREQ) ||
	    !event_attr_is_clock(&event->attr))
		return;
	event->attr.sample_period = least_ns;
	session_warn(session, 113,
		     "A clock is counted in nanoseconds, and the kernel fires it "
		     "every 10000 at most; kernel.perf_event_max_sample_rate may ask "
		     "for more.",
		     "none needed; -F HZ says what is meant",
		     "a sample of %s every %llu ns instead of %llu", event->name,
		     (unsigned long long)least_ns, (unsigned long long)asked_ns);
}

static void set_event(struct session *session, uint32_t i, const struct perf_event_attr *attr,
		      const char *name)
{
	struct perf_event_info *info = &session->info.events[i];

	*info = (struct perf_event_info){
		.attr = *attr,
		.layout = sample_layout_of(attr),
		.name = mem_copy_string(name),
		.attr_size = attr->size,
		.leader = i,
		.scale = 1,
	};
}

static struct error *set_events(struct session *session,
				const struct collector_live_options *options)
{
	struct event_attr_list *list CLEANUP(cleanup_mem) = mem_alloc(sizeof(*list));
	struct perf_event_attr side_band;
	struct error *err = event_attr_parse(options->events ? options->events : "cycles",
					     &event_attr_host_system, list);
	if (err)
		return err;
	struct event_attr_sampling sampling = {
		.frequency_hz = limit_frequency(session, options->frequency_hz, list->n),
		.period = options->period,
		.call_graph = options->call_graph,
		.stack_bytes = options->stack_bytes,
	};
	/* Which group a sample belongs to, also when its process was never seen to start. */
	uint64_t cgroup_field =
		event_open_has_field(PERF_SAMPLE_CGROUP) ? (uint64_t)PERF_SAMPLE_CGROUP : 0;
	session->n_sampling = list->n;
	session->info.n_events = list->n + 1;
	session->info.events = mem_zalloc(list->n + 1, sizeof(*session->info.events));
	for (uint32_t i = 0; i < list->n; i++) {
		struct perf_event_attr *attr = &list->events[i].attr;
		event_attr_set_sampling(attr, &sampling);
		perf_attr_set(attr, PERF_ATTR_INHERIT, is_of_tasks(session));
		perf_attr_set(attr, PERF_ATTR_ENABLE_ON_EXEC, session->scope == COLLECTOR_COMMAND);
		attr->sample_type |= cgroup_field;
		set_event(session, i, attr, list->events[i].name);
		limit_clock_period(session, &session->info.events[i]);
	}
	event_attr_set_side_band(&side_band);
	session->has_data_maps = options->has_data_maps;
	perf_attr_set(&side_band, PERF_ATTR_MMAP_DATA, options->has_data_maps);
	perf_attr_set(&side_band, PERF_ATTR_INHERIT, is_of_tasks(session));
	/* Runs before /proc is read, so that nothing falls in between. */
	perf_attr_set(&side_band, PERF_ATTR_DISABLED, 0);
	side_band.sample_type |= cgroup_field;
	set_event(session, list->n, &side_band, "dummy:HG");
	session->layout = session->info.events[0].layout;
	return NULL;
}

/* --- target --- */

static struct error *add_pid(struct session *session, pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0 && (errno == ESRCH || errno == EINVAL))
		return error_number(error_new(ERROR_NO_ENTRY, "no process %d", pid), 102);
	session->pids[session->n_pids] = pid;
	session->pid_fds[session->n_pids++] = fd;
	return NULL;
}

static struct error *set_pids(struct session *session, const pid_t *pids, size_t n)
{
	struct error *err = NULL;

	if (n == 0)
		return error_new(ERROR_USAGE, "no process was named");
	session->pids = mem_zalloc(n, sizeof(*session->pids));
	session->pid_fds = mem_zalloc(n, sizeof(*session->pid_fds));
	for (size_t i = 0; !err && i < n; i++)
		err = add_pid(session, pids[i]);
	return err;
}

static struct error *set_target(struct session *session,
				const struct collector_live_options *options)
{
	switch (session->scope) {
	case COLLECTOR_SYSTEM:
		return NULL;
	case COLLECTOR_PIDS:
		return set_pids(session, options->pids, options->n_pids);
	case COLLECTOR_CGROUP:
		return cgroup_path_open(options->cgroup, &session->cgroup_fd);
	case COLLECTOR_COMMAND:
		break;
	}
	session->child_name = mem_copy_string(options->command[0]);
	struct error *err = child_fork(options->command, &session->child);
	if (err)
		return err;
	session_add_tid(session, session->child.pid);
	return set_pids(session, &session->child.pid, 1);
}

/* Any thread of the target, to try events on; with its flags. */
static pid_t first_task(const struct session *session, unsigned *flags_out)
{
	*flags_out = session->scope == COLLECTOR_CGROUP ? PERF_FLAG_PID_CGROUP : 0;
	if (session->scope == COLLECTOR_CGROUP)
		return session->cgroup_fd;
	return is_of_tasks(session) && !session->is_filtered ? session->pids[0] : -1;
}

static char *describe_target(const struct session *session)
{
	struct stat st;

	if (session->scope == COLLECTOR_SYSTEM || session->scope == COLLECTOR_CGROUP)
		return mem_copy_string("cannot sample this host");
	if (session->scope == COLLECTOR_COMMAND)
		return mem_format("cannot sample %s", session->child_name);
	char *path CLEANUP(cleanup_mem) = mem_format("/proc/%d", session->pids[0]);
	bool is_foreign =
		!session->is_proc_foreign && stat(path, &st) == 0 && st.st_uid != geteuid();
	return mem_format("cannot sample process %d%s", session->pids[0],
			  is_foreign ? " of another user" : "");
}

/* The threads that a process has now; the first alone where /proc has other pids than we. */
static void list_tids(const struct session *session, pid_t pid, pid_t **tids_out, size_t *n_out)
{
	if (!session->is_proc_foreign) {
		proc_scan_tids(pid, tids_out, n_out);
		return;
	}
	*tids_out = mem_copy(&pid, sizeof(pid));
	*n_out = 1;
}

/* --- rings and descriptors --- */

/* A soft limit may be raised by anybody (FR-119). Returns what is needed. */
static rlim_t raise_descriptor_limit(const struct session *session, bool has_exec_watch)
{
	struct rlimit limit;
	rlim_t n_tasks = 0;

	for (size_t i = 0; i < session->n_pids; i++) {
		pid_t *tids CLEANUP(cleanup_mem) = NULL;
		size_t n;
		list_tids(session, session->pids[i], &tids, &n);
		n_tasks += n;
	}
	if (n_tasks == 0)
		n_tasks = 1;
	rlim_t n_events = session->info.n_events + (has_exec_watch ? 1u : 0u);
	rlim_t need = FDS_BESIDE + session->cpus.n * (n_tasks * n_events + 2);
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= need)
		return need;
	limit.rlim_cur = need < limit.rlim_max ? need : limit.rlim_max;
	(void)!setrlimit(RLIMIT_NOFILE, &limit);
	return need;
}

static void warn_small_rings(struct session *session, uint64_t asked_bytes, long mlock_kib,
			     uint64_t lock_bytes)
{
	unsigned long long kib = session->rings.ring_bytes >> 10;
	unsigned long long asked_kib = asked_bytes >> 10;

	if (session->rings.ring_bytes == RING_MAX_BYTES)
		session_warn(session, 112, "A ring holds at most 1 GiB.", "-m 1G",
			     "rings of %llu KiB instead of %llu", kib, asked_kib);
	else
		session_warn(session, 112, NULL,
			     "ulimit -l unlimited, CAP_IPC_LOCK, or: sudo sysctl "
			     "kernel.perf_event_mlock_kb=2048",
			     "rings of %llu KiB instead of %llu: kernel.perf_event_mlock_kb is "
			     "%ld and RLIMIT_MEMLOCK %llu KiB",
			     kib, asked_kib, mlock_kib, (unsigned long long)lock_bytes >> 10);
}

/* With copied stacks a sample is as large as a hundred without; room for so many of them. */
static uint64_t default_ring_bytes(const struct session *session)
{
	uint64_t stack_bytes = session->info.events[0].attr.sample_stack_user;

	/* Smaller ones may grow to it. */
	if (stack_bytes && stack_bytes < COLLECTOR_STACK_BYTES_DEFAULT)
		stack_bytes = COLLECTOR_STACK_BYTES_DEFAULT;
	return stack_bytes * RING_STACKS > SESSION_DEFAULT_RING_BYTES ? stack_bytes * RING_STACKS
								      : SESSION_DEFAULT_RING_BYTES;
}

static struct error *open_rings(struct session *session, uint64_t asked_bytes)
{
	struct rlimit lock = {0};

	uint64_t ring_bytes = asked_bytes ? asked_bytes : default_ring_bytes(session);
	if (asked_bytes == 0)
		asked_bytes = SESSION_DEFAULT_RING_BYTES;
	ring_set_init(&session->rings, &session->opener, session->info.events,
		      session->info.n_events);
	struct error *err =
		ring_set_open_rings(&session->rings, &session->cpus,
				    ring_bytes < RING_MAX_BYTES ? ring_bytes : RING_MAX_BYTES);
	getrlimit(RLIMIT_MEMLOCK, &lock);
	long mlock_kib = event_open_sysctl("perf_event_mlock_kb", -1);
	if (err && error_get_number(err) == 106) {
		error_free(err);
		return error_number(error_new(ERROR_DENIED,
					      "ring memory refused: kernel.perf_event_mlock_kb is "
					      "%ld and RLIMIT_MEMLOCK %llu KiB, both used up",
					      mlock_kib, (unsigned long long)lock.rlim_cur >> 10),
				    106);
	}
	if (err)
		return err;
	session->state.ring_bytes = session->rings.ring_bytes;
	session->state.n_cpus = session->cpus.n;
	session->state.n_rings = session->rings.n_cpus;
	if (session->rings.ring_bytes * 2 <= asked_bytes)
		warn_small_rings(session, asked_bytes, mlock_kib, lock.rlim_cur);
	return NULL;
}

/* --- what the host allows --- */

static bool is_missing(int errno_value)
{
	return errno_value == ENOENT || errno_value == EOPNOTSUPP || errno_value == EINVAL ||
	       errno_value == ENODEV || errno_value == ENXIO;
}

static void fall_back(struct session *session, uint32_t i)
{
	struct perf_event_info *event = &session->info.events[i];

	session_warn(session, 108, "usual in virtual machines; the values are CPU time either way",
		     NULL, "event %s is not available on this host: cpu-clock is used",
		     event->name);
	event_attr_set_fallback(&event->attr);
	mem_free(event->name);
	event->name = mem_copy_string("cpu-clock");
	limit_clock_period(session, event);
	session->state.is_event_fallback = true;
}

/* Opens and closes one event, so that what the host refuses is known before anything is built. */
static int try_event(struct session *session, uint32_t i, pid_t pid, unsigned flags)
{
	struct perf_event_attr attr = session->info.events[i].attr;
	int fd = event_open(&session->opener, &attr, pid, (int)session->cpus.cpus[0], flags);

	if (fd < 0)
		return -fd;
	close(fd);
	session->info.events[i].attr = attr;
	return 0;
}

static struct error *try_sampling(struct session *session, uint32_t i, pid_t pid, unsigned flags,
				  const char *what)
{
	struct perf_event_info *event = &session->info.events[i];
	int errno_value = try_event(session, i, pid, flags);

	if (is_missing(errno_value) && event_attr_is_cycles(&event->attr)) {
		fall_back(session, i);
		errno_value = try_event(session, i, pid, flags);
	}
	if (errno_value == 0)
		return NULL;
	if (is_missing(errno_value))
		return error_number(error_new(ERROR_UNSUPPORTED,
					      "event %s is not supported on this host (%s)",
					      event->name, strerrorname_np(errno_value)),
				    105);
	return error_wrap(ring_set_explain(errno_value, what), "event %s", event->name);
}

static struct error *try_events(struct session *session)
{
	char *what CLEANUP(cleanup_mem) = describe_target(session);
	unsigned flags;
	pid_t pid = first_task(session, &flags);
	bool is_wanted = session->opener.is_user_only;
	bool is_cgroup = flags & PERF_FLAG_PID_CGROUP;

	int errno_value = try_event(session, session->n_sampling, is_cgroup ? -1 : pid, 0);
	if (errno_value)
		return ring_set_explain(errno_value, what);
	for (uint32_t i = 0; i < session->n_sampling; i++) {
		struct error *err = try_sampling(session, i, pid, flags, what);
		if (err)
			return err;
	}
	session->state.is_user_only = session->opener.is_user_only;
	if (session->opener.is_user_only && !is_wanted)
		session_warn(session, 109, NULL,
			     namespaces_is_user_nested()
				     ? "run it outside of the user namespace, or: sudo sysctl "
				       "kernel.perf_event_paranoid=1"
				     : "sudo setcap cap_perfmon,cap_syslog+ep \"$(command -v "
				       "perfpipe)\", or: sudo sysctl "
				       "kernel.perf_event_paranoid=1",
			     "user frames only: kernel.perf_event_paranoid is %ld and %s",
			     event_open_sysctl("perf_event_paranoid", 2),
			     event_open_describe_perfmon());
	return NULL;
}

/* --- attaching to tasks that run (FR-66) --- */

static bool has_tid(const struct session *session, pid_t tid)
{
	for (size_t i = 0; i < session->n_tids; i++) {
		if (session->tids[i] == tid)
			return true;
	}
	return false;
}

/* Threads whose FORK record lies in a ring were made by a covered thread and inherited all. */
static void find_inherited(struct session *session, struct hash_map *tids)
{
	enum { TID_AT = 8 };

	for (uint32_t i = 0; i < session->rings.n_cpus; i++) {
		struct perf_ring *ring = &session->rings.cpus[i].ring;
		uint64_t n = perf_ring_ready(ring);
		uint8_t *copy CLEANUP(cleanup_mem) = mem_alloc(n);
		struct perf_event_header header;
		const uint8_t *record;
		size_t offset = 0;

		perf_ring_copy(ring, copy, n);
		while ((record = perf_ring_next(copy, n, &offset, &header))) {
			struct cursor c = cursor_make(record + sizeof(header),
						      header.size - sizeof(header), false);
			cursor_skip(&c, TID_AT);
			uint32_t tid = cursor_u32(&c);
			if (header.type == PERF_RECORD_FORK && cursor_is_ok(&c))
				*hash_map_put(tids, tid, NULL) = 1;
		}
	}
}

static struct error *attach_tid(struct session *session, pid_t tid)
{
	uint32_t event;
	int errno_value = session_add_target(session, tid, 0, &event);

	session_add_tid(session, tid);
	if (errno_value == 0)
		return NULL;
	if (errno_value == ESRCH) {
		ring_set_remove(&session->rings, tid, UINT32_MAX);
		return NULL;
	}
	char *what CLEANUP(cleanup_mem) = mem_format("cannot sample thread %d", tid);
	return ring_set_explain(errno_value, what);
}

static struct error *attach_round(struct session *session, const struct hash_map *inherited,
				  bool *found_out)
{
	struct error *err = NULL;

	for (size_t p = 0; !err && p < session->n_pids; p++) {
		pid_t *tids CLEANUP(cleanup_mem) = NULL;
		size_t n;
		list_tids(session, session->pids[p], &tids, &n);
		for (size_t i = 0; !err && i < n; i++) {
			if (has_tid(session, tids[i]))
				continue;
			*found_out = true;
			if (hash_map_get(inherited, (uint32_t)tids[i]))
				session_add_tid(session, tids[i]);
			else
				err = attach_tid(session, tids[i]);
		}
	}
	return err;
}

/* They are gone, unless their threads could not even be listed. */
static struct error *explain_nothing(const struct session *session)
{
	char *path CLEANUP(cleanup_mem) = mem_format("/proc/%d/task", session->pids[0]);
	int fd CLEANUP(cleanup_fd) = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		return ring_set_explain(errno, path);
	return error_number(error_new(ERROR_NO_ENTRY, "no process %d", session->pids[0]), 102);
}

static struct error *attach_pids(struct session *session)
{
	struct hash_map inherited CLEANUP(hash_map_fini);
	struct error *err = NULL;
	bool found = true;

	hash_map_init(&inherited);
	for (int round = 0; !err && found && round < MAX_TID_ROUNDS; round++) {
		found = false;
		find_inherited(session, &inherited);
		err = attach_round(session, &inherited, &found);
	}
	if (!err && session->rings.n_open == 0)
		err = explain_nothing(session);
	return err;
}

/*
 * Events of a task start a new period in each child, so children that live for less than a period
 * would have no samples at all, however many there are. Events of whole CPUs miss nobody, and take
 * a descriptor for each event and CPU, however many threads there are; who does not belong to the
 * target is left out as records come. False when that is not permitted.
 */
static bool sample_whole_cpus(struct session *session)
{
	uint32_t event;

	if (session_add_target(session, -1, 0, &event)) {
		ring_set_remove(&session->rings, 0, UINT32_MAX);
		hash_map_clear(&session->rings.event_of_id);
		for (uint32_t i = 0; i < session->info.n_events; i++)
			session->info.events[i].n_ids = 0;
		return false;
	}
	session->n_tids = 0;
	session->is_filtered = true;
	session->filter.sample_pid_at = session->layout.tid_from_start;
	for (size_t i = 0; i < session->n_pids; i++)
		pid_filter_add(&session->filter, (uint32_t)session->pids[i]);
	if (session->scope == COLLECTOR_COMMAND)
		session->filter.not_started = (uint32_t)session->child.pid;
	return true;
}

static struct error *open_events(struct session *session)
{
	unsigned flags;
	uint32_t event = 0;

	if (is_of_tasks(session) && sample_whole_cpus(session))
		return NULL;
	if (session->scope == COLLECTOR_PIDS)
		return attach_pids(session);
	pid_t pid = first_task(session, &flags);
	int errno_value = session_add_target(session, pid, flags, &event);
	if (!errno_value)
		return NULL;
	char *what CLEANUP(cleanup_mem) = describe_target(session);
	return error_wrap(ring_set_explain(errno_value, what), "event %s",
			  session->info.events[event].name);
}

/* --- beside the events --- */

static void open_exec_watch(struct session *session)
{
	unsigned flags;
	pid_t first = first_task(session, &flags);
	bool has_tasks = is_of_tasks(session) && !session->is_filtered;
	const pid_t *tasks = has_tasks ? session->tids : &first;
	size_t n_tasks = has_tasks ? session->n_tids : 1;
	/* Each exec is told whatever the period, so the command's own will do. */
	if (session->scope == COLLECTOR_COMMAND) {
		has_tasks = true;
		tasks = session->pids;
		n_tasks = session->n_pids;
	}
	const char *why = NULL;
	int errno_value = 0;
	struct error *err = exec_watch_open(&session->exec, &session->cpus, has_tasks, &why);
	if (err) {
		session_warn(session, 110, "argv and cgroup of short processes will be missing",
			     NULL, "execs are not watched: %s", error_text(err));
		error_free(err);
		return;
	}
	for (size_t t = 0; t < n_tasks && (!errno_value || errno_value == ESRCH); t++) {
		for (uint32_t i = 0; i < session->exec.rings.n_cpus; i++) {
			errno_value = exec_watch_add(&session->exec, i, tasks[t], flags);
			if (errno_value)
				break;
		}
	}
	if (errno_value && errno_value != ESRCH) {
		session_warn(session, 110, "argv and cgroup of short processes will be missing",
			     NULL, "execs are not watched: %s", strerrordesc_np(errno_value));
		exec_watch_close(&session->exec);
		return;
	}
	session->exec.is_proc_foreign = session->is_proc_foreign;
	session->state.has_exec_watch = session->exec.has_tracepoint;
	if (why)
		session_warn(
			session, 110, NULL,
			"mount -t tracefs nodev /sys/kernel/tracing, and run as root",
			"execs are watched by COMM records only, some argv will be missing: %s",
			why);
}

static struct error *scan_processes(const struct session *session, struct record_writer *writer)
{
	struct error *err = NULL;

	/* Later the children of the target belong to it too. */
	if (!is_of_tasks(session) || session->is_running)
		return proc_scan_all(writer);
	for (size_t i = 0; !err && session->scope == COLLECTOR_PIDS && i < session->n_pids; i++)
		err = proc_scan_process(writer, session->pids[i]);
	return err;
}

struct error *session_scan(struct session *session)
{
	struct record_writer writer = {.out = &session->synthetic,
				       .has_data_maps = session->has_data_maps,
				       .trailer_bytes = session->layout.trailer_bytes};
	bool is_hidden = false;

	buf_init(&session->synthetic, SYNTHETIC_MAX_BYTES);
	struct error *err = kernel_scan_text(&writer, &is_hidden);
	if (is_hidden && !session->state.is_user_only && !session->is_running)
		session_warn(session, 103, NULL,
			     "sudo sysctl kernel.kptr_restrict=1, and CAP_SYSLOG",
			     "kernel frames will show as addresses: kernel.kptr_restrict=%ld",
			     event_open_sysctl("kptr_restrict", -1));
	if (!err && !is_of_tasks(session))
		err = kernel_scan_cgroups(&writer);
	if (!err && !is_of_tasks(session) && session->is_pid_nested)
		err = proc_scan_write_outside(&writer);
	if (!err && !session->is_proc_foreign)
		err = scan_processes(session, &writer);
	if (err && error_get_code(err) == ERROR_LIMIT) {
		/* Bounded on purpose: what is left out has no names, and that shows. */
		error_free(err);
		err = NULL;
	}
	return err;
}

/* The note of type 3 and name GNU in /sys/kernel/notes. */
static void read_kernel_build_id(struct perf_source_info *info)
{
	enum { NT_GNU_BUILD_ID = 3, NOTE_MAX_BYTES = 4096 };
	struct buf notes CLEANUP(buf_fini);

	buf_init(&notes, SMALL_FILE_MAX_BYTES);
	struct error *err = file_read_all("/sys/kernel/notes", &notes);
	if (err) {
		error_free(err);
		return;
	}
	struct cursor c = cursor_make(notes.data, notes.size, false);
	while (cursor_is_ok(&c) && cursor_left(&c) >= 12) {
		uint32_t n_name = cursor_u32(&c);
		uint32_t n_desc = cursor_u32(&c);
		uint32_t type = cursor_u32(&c);
		if (n_name > NOTE_MAX_BYTES || n_desc > NOTE_MAX_BYTES)
			return;
		const uint8_t *name = cursor_bytes(&c, (n_name + 3) & ~3u);
		const uint8_t *desc = cursor_bytes(&c, (n_desc + 3) & ~3u);
		if (!desc || type != NT_GNU_BUILD_ID || n_name != 4 || memcmp(name, "GNU", 4) != 0)
			continue;
		info->build_ids = mem_zalloc(1, sizeof(*info->build_ids));
		info->build_ids[0] = (struct perf_build_id_entry){
			.pid = -1,
			.misc = PERF_RECORD_MISC_KERNEL,
			.id = build_id_make(desc, n_desc),
			.filename = mem_copy_string("[kernel.kallsyms]"),
		};
		info->n_build_ids = 1;
		return;
	}
}

static char *read_own_cmdline(void)
{
	struct buf text CLEANUP(buf_fini);

	buf_init(&text, SMALL_FILE_MAX_BYTES);
	struct error *err = file_read_all("/proc/self/cmdline", &text);
	error_free(err);
	if (err || text.size == 0)
		return NULL;
	for (size_t i = 0; i + 1 < text.size; i++) {
		if (text.data[i] == 0)
			text.data[i] = ' ';
	}
	return mem_copy_string(buf_string(&text));
}

static void describe_host(struct session *session)
{
	struct perf_source_info *info = &session->info;
	struct utsname names;
	struct sysinfo memory;

	info->is_live = true;
	if (uname(&names) == 0) {
		info->hostname = mem_copy_string(names.nodename);
		info->os_release = mem_copy_string(names.release);
		info->arch = mem_copy_string(names.machine);
	}
	info->perf_version = mem_copy_string("perfpipe");
	info->cmdline = read_own_cmdline();
	info->n_cpus_available = (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	info->n_cpus_online = session->cpus.n;
	if (sysinfo(&memory) == 0)
		info->total_memory_kib = memory.totalram / 1024 * memory.mem_unit;
	info->clockid = CLOCK_MONOTONIC;
	info->has_clock_pair = true;
	info->clock_pair_event_ns = clock_system.monotonic_ns(clock_system.context);
	info->clock_pair_wall_ns =
		info->clock_pair_event_ns + (uint64_t)clock_wall_offset_ns(&clock_system);
	info->recorded_at_ns = info->clock_pair_wall_ns;
	read_kernel_build_id(info);
}

/* Pids are those of our own PID namespace, in records too. */
static struct error *look_at_namespaces(struct session *session)
{
	if (access("/proc/self/status", F_OK) < 0)
		return error_number(error_new(ERROR_UNAVAILABLE, "/proc is not mounted, or is that "
								 "of another PID namespace"),
				    116);
	session->is_pid_nested = namespaces_is_pid_nested();
	session->is_proc_foreign = !namespaces_is_proc_own();
	if (session->is_pid_nested && !is_of_tasks(session))
		session_warn(session, 115, NULL, NULL,
			     "processes outside of this PID namespace are seen as pid 0: without "
			     "names, and user frames as addresses");
	if (session->is_proc_foreign)
		session_warn(session, 115, "The pids in /proc are not those of this PID namespace.",
			     "mount -t proc proc /proc (or: unshare --mount-proc)",
			     "/proc is of another PID namespace and is not read: what runs already "
			     "has no names%s",
			     session->scope == COLLECTOR_PIDS
				     ? ", and only the first thread of a process is sampled"
				     : "");
	return NULL;
}

static struct error *build(struct session *session, const struct collector_live_options *options)
{
	struct error *err = look_at_namespaces(session);

	if (!err)
		err = set_events(session, options);
	if (!err)
		err = cpu_set_read_online(&session->cpus);
	if (err && error_get_code(err) == ERROR_NO_ENTRY && !error_get_number(err))
		return error_number(err, 116);
	if (!err)
		err = set_target(session, options);
	if (err)
		return err;
	rlim_t n_descriptors = raise_descriptor_limit(session, options->watch_execs);
	err = try_events(session);
	if (!err)
		err = open_rings(session, options->ring_bytes);
	if (!err)
		err = open_events(session);
	if (err && error_get_number(err) == 107)
		return error_wrap(err, "about %llu descriptors are needed",
				  (unsigned long long)n_descriptors);
	if (err)
		return err;
	if (options->watch_execs)
		open_exec_watch(session);
	describe_host(session);
	return session_scan(session);
}

struct error *collector_open_live(const struct collector_live_options *options,
				  struct record_source **out)
{
	struct session *session = mem_zalloc(1, sizeof(*session));

	session->source.ops = &session_ops;
	session->scope = options->scope;
	session->cgroup_fd = -1;
	session->opener.is_user_only = options->is_user_only;
	session->excluded_pid = options->exclude_self ? getpid() : 0;
	hash_map_init(&session->rings.event_of_id);
	buf_init(&session->exec_records, EXEC_RECORDS_MAX_BYTES);
	pid_filter_init(&session->filter);
	reorder_init(&session->reorder, REORDER_MAX_BYTES, REORDER_MAX_RECORDS);
	struct error *err = build(session, options);
	if (err) {
		record_source_close(&session->source);
		return err;
	}
	*out = &session->source;
	return NULL;
}
