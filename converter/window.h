/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile being made: what belongs to one window and goes with it. Samples are added in small
 * groups, pass by pass, so that the cache misses of a group are in flight together instead of one
 * behind the other:
 *
 *     add     decode, find thread and labels, hash the chain  → asks for its slot in the chain
 * cache flush   a known chain: its row, else read its frames    → asks for their slots locate the
 * frames                               → asks for their locations, their nodes find the stacks →
 * asks for their rows add the values
 *
 * A group sees one state of processes and kernel: whoever changes that flushes first.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "converter/chain_cache.h"
#include "converter/event_columns.h"
#include "converter/label.h"
#include "converter/location.h"
#include "converter/process.h"
#include "converter/sample.h"
#include "converter/stack.h"
#include "proto/profile.h"

enum { WINDOW_GROUP = 32 };

struct window_sample {
	struct sample sample;
	XXH128_hash_t hash;
	uint32_t event_index;
	uint32_t label_set;
	uint32_t row;		  /* of a known chain, or CHAIN_CACHE_NONE */
	struct stack_chain chain; /* of a new one, and what it became */
	uint32_t stack;
	uint16_t misc;
	bool is_cached; /* chain and context decide the stack alone, so the chain cache may answer
			 */
};

struct window {
	const struct perf_source_info *source;
	const char *only_event; /* see converter_config.event */
	struct process_table *processes;
	const struct kernel_space *kernel;

	struct profile *profile;
	struct event_columns columns;
	struct location_table locations;
	struct chain_cache chains;
	struct stack_builder stacks;
	struct labeler labeler;
	uint64_t first_ns, last_ns; /* of its samples; 0 = none with a time yet */
	uint64_t n_written;	    /* samples in the profile, over all windows */

	struct window_sample group[WINDOW_GROUP];
	uint32_t n_group;
};

void window_init(struct window *window, const struct perf_source_info *source,
		 const char *only_event, uint32_t labels, struct process_table *processes,
		 const struct kernel_space *kernel, struct image_table *images);
void window_fini(struct window *window);
/* Takes account of events that the source got since the last call. */
void window_update_events(struct window *window);

/* Where to decode the next sample to; window_add then takes it, without it nothing happened. */
static inline struct sample *window_next(struct window *window)
{
	return &window->group[window->n_group].sample;
}
/* The record's bytes must stay until the flush. */
void window_add(struct window *window, const struct perf_record *record);
void window_flush(struct window *window);
/* A sample whose user part came apart from it; flushes what waits. */
void window_add_deferred(struct window *window, const struct perf_record *record,
			 const struct sample *sample, const uint8_t *chain, uint64_t n_chain);
/* No more samples: the profile gets its locations, and what finds them and its stacks goes. */
void window_close(struct window *window);
/* Hands the profile out, which was closed, and begins a new window. */
struct profile *window_take_profile(struct window *window);
