/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/recording.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stats.h"
#include "pipeline/explain.h"
#include "pipeline/interruption.h"
#include "pipeline/live_poll.h"
#include "pipeline/stack_growth.h"

enum {
	NS_PER_MS = 1000000,
	DRAIN_INTERVAL_MS = 100,
	MAX_LAST_DRAINS = 64,
};

/* Our own descriptors, ahead of the source's. */
enum { FD_SIGNAL, FD_SNAPSHOT, FD_CALL, FD_FAILURE, FD_CHILD, FD_OWN_N };

struct loop {
	struct record_source *source;
	struct pipeline *pipeline;
	const struct recording_options *options;
	struct recording *recording;
	struct live_poll fds;
	int child_fd;
	uint64_t begin_ns;
	uint64_t n_drained; /* records of the newest drain */
	struct stack_growth stacks;
	bool grows_stacks;
	bool is_over, is_in_snapshot;
};

static uint64_t now(void)
{
	return clock_system.monotonic_ns(clock_system.context);
}

static void end(struct loop *loop, enum recording_end why)
{
	if (!loop->is_over)
		loop->recording->end = why;
	loop->is_over = true;
}

/* --- the command --- */

static void reap(struct recording *recording, int options)
{
	siginfo_t info = {0};
	if (!recording->child || recording->has_exited)
		return;
	id_t id = (id_t)recording->child;
	if (waitid(P_PID, id, &info, WEXITED | WNOWAIT | options) < 0 || !info.si_pid)
		return;
	/* Before its pid is free for others. */
	interruption_set_command(0);
	(void)waitid(P_PID, id, &info, WEXITED);
	recording->has_exited = true;
	recording->exit_code =
		info.si_code == CLD_EXITED ? info.si_status : EXIT_CODE_SIGNAL + info.si_status;
}

static int open_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static struct error *spawn_companion(struct loop *loop)
{
	extern char **environ;
	posix_spawnattr_t attributes;
	sigset_t defaults;
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	sigaddset(&defaults, SIGXFSZ);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	if (loop->options->is_output_on_stdout)
		posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
	char *const *argv = loop->options->companion;
	int rc = posix_spawnp(&loop->recording->child, argv[0], &actions, &attributes, argv,
			      environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	if (!rc)
		return NULL;
	loop->recording->child = 0;
	if (rc == EAGAIN || rc == ENOMEM)
		return error_number(error_errno(rc, "cannot start %s", argv[0]), 117);
	enum error_code code = rc == ENOENT ? ERROR_NO_ENTRY : ERROR_DENIED;
	return error_number(error_new(code, "cannot start %s: %s", argv[0], strerror(rc)), 111);
}

/* --- signals --- */

/*
 * A signal from the terminal reached the command as well; one that was sent to us alone is handed
 * on, so that the command does not outlive the wish to stop.
 */
static void take_signal(struct recording *recording)
{
	if (recording->signal)
		return;
	recording->signal = interruption_signal();
	if (recording->child && !recording->has_exited && !interruption_is_from_terminal())
		kill(recording->child, recording->signal);
}

static void wait_without_pidfd(struct recording *recording)
{
	while (!recording->has_exited) {
		reap(recording, 0);
		if (!recording->has_exited && errno != EINTR)
			return;
	}
}

void recording_wait(struct recording *recording, int patience_ms)
{
	if (!recording->child || recording->has_exited)
		return;
	int fd = open_pidfd(recording->child);
	if (fd < 0) {
		wait_without_pidfd(recording);
		return;
	}
	if (!interruption_signal()) {
		struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
				       {.fd = interruption_fd(), .events = POLLIN}};
		while (poll(fds, ARRAY_LEN(fds), -1) < 0 && errno == EINTR)
			;
	}
	reap(recording, WNOHANG);
	if (interruption_signal() && !recording->has_exited) {
		take_signal(recording);
		struct pollfd pollfd = {.fd = fd, .events = POLLIN};
		(void)poll(&pollfd, 1, patience_ms);
		reap(recording, WNOHANG);
	}
	close(fd);
}

/* --- draining --- */

/*
 * Samples may come so fast that a drain takes very long, because they leave no time for it. When
 * time is up in the middle of one, they stop first.
 */
static void end_in_time(struct loop *loop)
{
	uint64_t limit_ns = loop->options->duration_ns;
	if (loop->is_over || !limit_ns || now() - loop->begin_ns < limit_ns)
		return;
	collector_live_disable(loop->source);
	end(loop, RECORDING_TIME_UP);
}

static struct error *count_and_feed(void *context, const struct perf_record *records, size_t n)
{
	struct loop *loop = context;
	loop->n_drained += n;
	end_in_time(loop);
	return pipeline_feed(loop->pipeline, records, n);
}

static struct error *drain(struct loop *loop)
{
	loop->n_drained = 0;
	struct error *err = record_source_drain(loop->source, count_and_feed, loop);
	if (err && error_get_code(err) == ERROR_NO_ENTRY) {
		error_free(err);
		err = NULL;
		end(loop, RECORDING_TARGET_GONE);
	}
	pipeline_flush(loop->pipeline);
	return err;
}

/* What the kernel wrote until the stop. */
static struct error *drain_rest(struct loop *loop)
{
	struct error *err = NULL;
	for (int i = 0; i < MAX_LAST_DRAINS && !err; i++) {
		err = drain(loop);
		if (loop->n_drained == 0)
			break;
	}
	return err;
}

/* --- waiting --- */

static void list_fds(struct loop *loop)
{
	live_poll_set(&loop->fds, FD_SIGNAL, interruption_fd());
	/* The next wish waits for the snapshot that is under way. */
	live_poll_set(&loop->fds, FD_SNAPSHOT,
		      loop->is_in_snapshot ? -1 : interruption_snapshot_fd());
	live_poll_set(&loop->fds, FD_CALL, pipeline_call_fd(loop->pipeline));
	live_poll_set(&loop->fds, FD_FAILURE, pipeline_failure_fd(loop->pipeline));
	live_poll_set(&loop->fds, FD_CHILD, loop->child_fd);
	live_poll_set_source(&loop->fds, loop->source);
}

/* Nanoseconds until the next look at the rings, at most until the end of the time. */
static uint64_t patience(const struct loop *loop, uint64_t elapsed_ns)
{
	uint64_t ns = (uint64_t)DRAIN_INTERVAL_MS * NS_PER_MS;
	uint64_t limit = loop->options->duration_ns;
	if (limit && limit - elapsed_ns < ns)
		return limit - elapsed_ns;
	return ns;
}

static void wait_for_work(struct loop *loop, uint64_t elapsed_ns)
{
	if (!live_poll_wait(&loop->fds, patience(loop, elapsed_ns)))
		return;
	if (live_poll_is_ready(&loop->fds, FD_SIGNAL)) {
		take_signal(loop->recording);
		end(loop, RECORDING_INTERRUPTED);
	}
	if (live_poll_is_ready(&loop->fds, FD_FAILURE))
		end(loop, RECORDING_SINK_FAILED);
	if (live_poll_is_ready(&loop->fds, FD_CHILD)) {
		reap(loop->recording, WNOHANG);
		end(loop, RECORDING_COMMAND_ENDED);
	}
}

static void serve_snapshots(struct loop *loop)
{
	if (!loop->is_in_snapshot && interruption_takes_snapshot()) {
		loop->options->snapshot(loop->options->context);
		loop->is_in_snapshot = true;
	}
	if (loop->is_in_snapshot && !pipeline_is_calling(loop->pipeline)) {
		loop->is_in_snapshot = false;
		loop->options->snapshot_back(loop->options->context);
	}
}

static struct error *step(struct loop *loop)
{
	uint64_t elapsed_ns = now() - loop->begin_ns;
	uint64_t limit_ns = loop->options->duration_ns;
	if (limit_ns && elapsed_ns >= limit_ns) {
		end(loop, RECORDING_TIME_UP);
		return NULL;
	}
	progress_update(loop->options->progress, elapsed_ns, limit_ns);
	wait_for_work(loop, elapsed_ns);
	struct error *err = drain(loop);
	if (!err && loop->grows_stacks &&
	    stack_growth_is_due(&loop->stacks, now(), stats_get(STAT_USER_STACKS_UNWOUND),
				stats_get(STAT_USER_STACKS_SHORT)))
		loop->grows_stacks = collector_live_grow_stacks(loop->source);
	if (!err && !loop->is_over)
		serve_snapshots(loop);
	if (!err && !loop->is_over && collector_live_is_target_gone(loop->source))
		end(loop, RECORDING_TARGET_GONE);
	return err;
}

static struct error *start(struct loop *loop)
{
	struct error *err = collector_live_start(loop->source);
	if (err)
		return err;
	loop->recording->child = collector_live_child(loop->source);
	if (loop->options->companion)
		err = spawn_companion(loop);
	if (!err && loop->recording->child) {
		loop->child_fd = open_pidfd(loop->recording->child);
		if (loop->child_fd < 0)
			err = error_errno(errno, "pidfd of process %d", loop->recording->child);
	}
	interruption_set_command(loop->recording->child);
	interruption_insist();
	return err;
}

static struct error *run(struct loop *loop)
{
	loop->recording->begin_wall_ns = clock_system.wall_ns(clock_system.context);
	loop->begin_ns = now();
	struct error *err = start(loop);
	while (!err && !loop->is_over) {
		list_fds(loop);
		err = step(loop);
	}
	loop->recording->duration_ns = now() - loop->begin_ns;
	struct error *stop_err = collector_live_stop(loop->source);
	if (!err && !stop_err)
		return drain_rest(loop);
	if (err)
		error_free(stop_err);
	return err ? err : stop_err;
}

struct error *recording_run(struct record_source *source, struct pipeline *pipeline,
			    const struct recording_options *options, struct recording *out)
{
	*out = (struct recording){0};
	struct loop loop = {
		.source = source,
		.pipeline = pipeline,
		.options = options,
		.recording = out,
		.child_fd = -1,
		.grows_stacks = options->grows_stacks,
	};
	live_poll_init(&loop.fds, FD_OWN_N);
	struct error *err = run(&loop);
	if (loop.child_fd >= 0)
		close(loop.child_fd);
	live_poll_fini(&loop.fds);
	return err;
}
