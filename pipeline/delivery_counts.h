/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent's forward thread did, and each exporter's state, at one moment. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "forwarder/forwarder.h"

struct delivery_counts {
	uint64_t n_windows, n_profiles, n_samples; /* given to the forwarder */
	bool is_blocked;			   /* a spool is full and holds up all */
	size_t n_exporters;
	struct exporter_counts *exporters; /* freed by delivery_counts_fini, as the next */
	uint64_t *earlier_samples;	   /* that waited in its spool at the start */
};

void delivery_counts_init(struct delivery_counts *counts, size_t n_exporters);
void delivery_counts_fini(struct delivery_counts *counts);
void delivery_counts_copy(const struct delivery_counts *from, struct delivery_counts *out);
/*
 * Samples that an exporter was given and that are not accounted for as sent, waiting or lost: 0
 * when all is well, below when refused ones were put back by hand.
 */
int64_t delivery_counts_missing(const struct delivery_counts *counts, size_t exporter);
/* Of an exporter: dropped by its queue, refused, or never encoded. */
uint64_t delivery_counts_lost(const struct exporter_counts *counts);
