/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop of live sampling: waits for rings, signals and the command, drains into a pipeline, and
 * ends when time is up, the command or the targets are gone, or somebody asks for the end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "collector/collector.h"
#include "pipeline/pipeline.h"
#include "pipeline/progress.h"

struct recording_options {
	uint64_t duration_ns;	   /* 0 = no limit */
	char *const *companion;	   /* a command to start beside another target, NULL = none */
	bool is_output_on_stdout;  /* the companion writes to standard error instead */
	struct progress *progress; /* PROGRESS_TIME */
	/*
	 * Called when somebody asks for a snapshot and no pipeline_call is under way, everything
	 * that was sampled until then being in the pipeline; and when that call is back. The second
	 * may not come when the recording ends first.
	 */
	void (*snapshot)(void *context);
	void (*snapshot_back)(void *context);
	void *context;
};

enum recording_end {
	RECORDING_COMMAND_ENDED,
	RECORDING_TARGET_GONE,
	RECORDING_TIME_UP,
	RECORDING_INTERRUPTED,
	RECORDING_SINK_FAILED, /* pipeline_finish gives the error */
};

struct recording {
	enum recording_end end;
	int signal; /* that asked for the end, also behind the sampling; 0 = none */
	uint64_t begin_wall_ns, duration_ns;
	pid_t child; /* the command, 0 = none */
	bool has_exited;
	int exit_code; /* has_exited: its status as a shell tells it */
};

/*
 * source is open and not started, and so is interruption.h. Afterwards the source is stopped and
 * everything was drained into the pipeline. Errors: number 111 when the companion cannot be
 * started; out tells of the command also when there is an error.
 */
struct error *recording_run(struct record_source *source, struct pipeline *pipeline,
			    const struct recording_options *options,
			    struct recording *out) MUST_USE;
/*
 * Waits for a command that outlives the sampling: until it ends, or, once somebody asks for the
 * end, at most patience_ms longer.
 */
void recording_wait(struct recording *recording, int patience_ms);
