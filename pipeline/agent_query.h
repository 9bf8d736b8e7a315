/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the local HTTP server's thread asks the agent's threads, each of which adds what it knows
 * and hands the query on, so that nothing is shared:
 *
 *   status server ──► collect ──► forward ──► status server      state
 *   status server ──► collect ─(convert)─ collect ──► …          a profile of the next seconds
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/delivery_counts.h"
#include "pipeline/wake_box.h"
#include "proto/profile.h"

enum agent_query_kind {
	AGENT_QUERY_STATE,
	AGENT_QUERY_PROFILE,
	AGENT_QUERY_CANCEL, /* the profile that is being made is not wanted; no answer */
};

enum { AGENT_STATE_NOTES = 16, AGENT_STATE_TEXT_BYTES = 200 };

struct agent_note {
	int number;
	char text[AGENT_STATE_TEXT_BYTES];
};

struct agent_state {
	/* collect */
	bool is_sampling;
	char target[AGENT_STATE_TEXT_BYTES]; /* why it is not */
	uint32_t n_cpus, n_rings, frequency_hz;
	uint64_t window_ns;
	uint64_t n_unread_samples; /* no room on the way to the converter */
	struct agent_note degraded[AGENT_STATE_NOTES];
	uint32_t n_degraded;
	uint64_t reload_wall_ns; /* the last one, 0 = none */
	/* forward */
	struct delivery_counts delivery;
	uint64_t storage_free_bytes;
	bool has_storage;
};

struct agent_query {
	enum agent_query_kind kind;
	struct wake_box *answers; /* where it goes in the end */
	void *asker;		  /* of whoever asks */
	struct agent_state state;
	uint64_t duration_ns;	 /* AGENT_QUERY_PROFILE */
	struct profile *profile; /* its answer, NULL = why */
	char why[AGENT_STATE_TEXT_BYTES];
};

struct agent_query *agent_query_new(enum agent_query_kind kind, struct wake_box *answers,
				    void *asker);
void agent_query_free(void *query);
/* Takes query: it goes back, or, where nobody listens any more, away. */
void agent_query_answer(struct agent_query *query);
