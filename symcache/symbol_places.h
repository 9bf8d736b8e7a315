/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A finished model, turned into what the symbol file stores: functions, each with the sites
 * (positions in its code) and call edges (site, inlined function) that occur anywhere, both
 * numbered within the function; and segments, stretches of addresses with one chain and one site.
 *
 * A function that is inlined in a hundred places has its sites and edges once.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "symcache/symbol_model.h"
#include "symcache/tuple_set.h"

/* A function of the model as a source of one rank gave it. */
struct placed_function {
	uint32_t function; /* of the model */
	uint8_t rank;
	bool is_folded;
	uint32_t file;		      /* where most of its sites are, 0 = unknown */
	uint32_t first_site, n_sites; /* in site_order */
	uint32_t first_edge, n_edges; /* in edge_order */
	uint32_t first_file, n_files; /* other files of its sites, in other_files */
};

struct placed_chain {
	uint32_t function; /* innermost, of functions */
	uint32_t parent;   /* SYMBOL_CHAIN_NONE for a real function */
	uint32_t edge;	   /* number in the parent's function */
	uint32_t depth;	   /* inlined calls */
};

struct segment {
	uint64_t start;
	uint32_t chain; /* SYMBOL_CHAIN_NONE = nothing */
	uint32_t site;	/* number in its function */
};

struct symbol_places {
	struct placed_function *functions; /* real ones first, by address */
	uint32_t n_functions;
	struct placed_chain *chains;
	struct tuple_set sites; /* function, file, line, column */
	struct tuple_set edges; /* function, site, inlined function */
	uint32_t *site_order;	/* sites by function and number */
	uint32_t *edge_order;	/* edges likewise */
	uint32_t *site_numbers; /* per site, in its function */
	uint32_t *other_files;
	uint32_t n_other_files;
	/* By address, neighbours differ. The last one ends all. */
	struct segment *segments;
	size_t n_segments, segments_capacity;
};

enum {
	SYMBOL_PLACES_MAX_SEGMENT_BYTES = 1 << 30, /* what a segment has beyond is left out */
};

/* model is finished and outlives places. */
void symbol_places_init(struct symbol_places *places, const struct symbol_model *model);
void symbol_places_fini(struct symbol_places *places);
