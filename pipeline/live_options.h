/* SPDX-License-Identifier: Apache-2.0 */
/* What and how to sample, as the command line says it: shared by the commands that sample. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"
#include "collector/collector.h"
#include "pipeline/cli.h"

struct live_options {
	struct collector_live_options live; /* complete after live_options_choose */
	pid_t *pids;
	char *events;
	bool is_all, has_frequency;
	int n_targets;
};

/* Ids of the options below; commands number their own from 1, conversion.h from 100,
 * remote_options.h from 200. */
enum live_option {
	LIVE_ALL = 300,
	LIVE_PID,
	LIVE_CGROUP,
	LIVE_FREQUENCY,
	LIVE_EVENT,
	LIVE_COUNT,
	LIVE_RING_SIZE,
	LIVE_USER_ONLY,
	LIVE_EXCLUDE_SELF,
};

/* A table for cli_spec.shared. */
extern const struct cli_option live_options_table[];

/* A zeroed struct is valid. */
void live_options_fini(struct live_options *options);
/* A cli_set_fn for the ids above; values are borrowed. */
struct error *live_options_set(struct live_options *options, int id, const char *value) MUST_USE;
/*
 * Sets the scope: what the options name, else the command (NULL = none). ERROR_USAGE when nothing
 * does, or for options that exclude each other.
 */
struct error *live_options_choose(struct live_options *options, char **command) MUST_USE;
