/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a window of sampling ends in: one profile for each event and service. The service of a
 * sample is the name of its process up to the first '/', so that all of a kernel's kworker/0:1 are
 * one: what the process is called is what is left where nothing better is known.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/profile.h"

/* The sample label that the service is taken from; it is in no profile of the window. */
#define FINISHED_WINDOW_LABEL "process"
/* Services past the most sampled ones of a window are one. */
#define FINISHED_WINDOW_OTHER "other"

struct window_series {
	struct profile *profile;
	char *service;
};

struct finished_window {
	struct window_series *series; /* event by event */
	size_t n_series;
	uint64_t n_samples; /* sum of the first columns */
	uint64_t begin_wall_ns, duration_ns;
};

/* Takes whole, whose samples carry FINISHED_WINDOW_LABEL. At most max_services each event. */
struct finished_window *finished_window_new(struct profile *whole, size_t max_services);
void finished_window_free(struct finished_window *window);
