/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for code that belongs to no file. A process that has such code has a scope: what its map
 * and its jitdumps tell (jit_map.h, jit_dump.h), and behind it the scope of the process it was
 * forked from, whose code it has too.
 *
 *     mapping of anonymous code ─► scope: /tmp held open         jit_table_open
 *     mapping of a jit-PID.dump ─► the dump is opened            jit_scope_add_dump
 *     sample ─► what is new is read, at most every JIT_LOOK_NS   jit_scope_look → the moment
 *     frame  ─► (scope, moment, address) becomes a spot          jit_scope_spot
 *     end    ─► the rest is read, all spots get their names      jit_table_resolve, _name
 *
 * A moment stands for the times at which one state of the code was seen. Jitdumps of a recording
 * are read whole at their mapping, and a moment begins at each of their records. Live, a runtime
 * may write its records long after they became valid, so moments are short and names are found at
 * the end.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hash_map.h"
#include "base/perf_record.h"
#include "converter/jit_code.h"
#include "converter/jit_dump.h"
#include "symcache/symcache.h"

enum {
	JIT_LOOK_NS = 200000000, /* of record time, from one look at files to the next */
	JIT_TABLE_MAX_SCOPES = 1 << 16,
	JIT_TABLE_MAX_SPOTS = 1 << 21,
	JIT_SCOPE_MAX_DUMPS = 4,
	JIT_SCOPE_MAX_PARENTS = 16,
	/* Live with a jitdump: a moment's length, doubled with each so many spots. */
	JIT_MOMENT_NS = 1 << 20,
	JIT_MOMENT_DOUBLING = 1 << 17,
};

struct jit_scope;

/* A frame in code that may have a name. */
struct jit_spot {
	struct jit_scope *scope;
	uint64_t vaddr, moment_ns;
	uint64_t address; /* with image: the location it is without a name */
	uint32_t image;
	uint32_t next_alike;	/* + 1, with the same hash */
	uint32_t next_in_scope; /* + 1 */
	uint32_t code;
	const struct jit_code_list *codes; /* NULL until code is an answer */
};

/* What became of the files, by process. */
struct jit_totals {
	uint64_t maps[JIT_FILE_STATE_N], dumps[JIT_FILE_STATE_N];
	uint64_t dump_states[JIT_DUMP_STATE_N]; /* of those that were opened */
	uint64_t n_malformed;			/* lines and records */
	uint64_t n_unmet; /* processes with names, samples, and no frame that could have one */
	int32_t unmet_pid;
	uint64_t n_left_out; /* pieces, scopes and spots beyond a bound */
	/* One process's file for each outcome, 0 = none. */
	int32_t map_pids[JIT_FILE_STATE_N], dump_pids[JIT_FILE_STATE_N];
	int32_t dump_state_pids[JIT_DUMP_STATE_N];
};

struct jit_table {
	const struct perf_source_info *source;
	struct symcache *cache;
	bool is_on, is_same_host;
	struct jit_scope *first, *last; /* in the order of their making: parents before children */
	uint32_t n_scopes;
	struct jit_spot *spots;
	uint32_t n_spots, spot_capacity;
	struct hash_map by_key; /* hash of a spot → index + 1 */
	uint64_t seed;
	uint64_t latest_ns; /* of all looks */
	uint64_t late_ns;   /* longest moment so far */
	uint8_t *scratch;   /* what is read of files */
	size_t code_bytes;  /* of all scopes */
	uint64_t n_refused; /* scopes and spots beyond a bound */
	struct jit_totals totals;
};

/* cache NULL, or one that gives no names: there are never scopes. Both are borrowed. */
void jit_table_init(struct jit_table *table, const struct perf_source_info *source,
		    struct symcache *cache);
void jit_table_fini(struct jit_table *table);

/*
 * A scope of its own for a process, with one reference; NULL when there are none or too many.
 * Live, its /tmp is opened at once.
 */
struct jit_scope *jit_table_open(struct jit_table *table, uint32_t pid, uint64_t now_ns);
/* The scope of a child; never NULL, but the parent's own (with a reference) beyond a bound. */
struct jit_scope *jit_scope_fork(struct jit_scope *parent, uint32_t pid, uint64_t now_ns);
/* The last one reads what is left and closes; the names stay to the end of the window. */
void jit_scope_unref(struct jit_scope *scope);
struct jit_scope *jit_scope_ref(struct jit_scope *scope);

/* Whether a mapping's path is that of a jitdump; its number may be NULL. */
bool jit_table_is_dump(const char *path, uint32_t *number_out);
void jit_scope_add_dump(struct jit_scope *scope, const struct jit_mapping *mapping);
/* The process ends: reads what is left and closes. */
void jit_scope_end(struct jit_scope *scope);
/* Reads what is new, now and then. Gives the moment that a sample of that time belongs to. */
uint64_t jit_scope_look(struct jit_scope *scope, uint64_t time_ns);

#define JIT_SPOT_NONE UINT32_MAX
/* image and address: the location without a name. JIT_SPOT_NONE beyond the bound. */
uint32_t jit_scope_spot(struct jit_scope *scope, uint64_t moment_ns, uint64_t vaddr, uint32_t image,
			uint64_t address);

/* Reads all to the end and answers all spots; sets totals. */
void jit_table_resolve(struct jit_table *table);
static inline const struct jit_spot *jit_table_spot(const struct jit_table *table, uint32_t spot)
{
	return &table->spots[spot];
}
/* Texts are valid until the end of the window. */
struct jit_frame {
	const char *raw;  /* as the runtime names it */
	const char *file; /* of the line, NULL when there is no line */
	uint32_t line;	  /* 0 when unknown */
};
/* False when the spot has no name. */
bool jit_table_name(const struct jit_table *table, uint32_t spot, struct jit_frame *out);
/* Forgets all spots, and the scopes that no process has any more. */
void jit_table_end_window(struct jit_table *table);
