/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which build-ids a server has, over restarts: a text file of lines
 *
 *   HEX KIND done|refused SECONDS
 *
 * KIND is gnu, go or hash; SECONDS since the epoch: when it was done, or until when it is refused.
 * Lines that say something else are left out. The oldest go past DEBUGINFO_STATE_MAX.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/build_id.h"
#include "base/compiler.h"
#include "base/error.h"

enum { DEBUGINFO_STATE_MAX = 4096 };

struct debuginfo_fact {
	struct build_id id;
	bool is_done; /* else refused until then */
	uint64_t seconds;
};

struct debuginfo_facts {
	struct debuginfo_fact *items;
	size_t n;
};

void debuginfo_facts_init(struct debuginfo_facts *facts);
void debuginfo_facts_fini(struct debuginfo_facts *facts);
/* NULL when nothing is known. Valid until the next change. */
const struct debuginfo_fact *debuginfo_facts_find(const struct debuginfo_facts *facts,
						  const struct build_id *id);
/* Replaces what was known of the id. */
void debuginfo_facts_set(struct debuginfo_facts *facts, const struct debuginfo_fact *fact);
void debuginfo_facts_forget(struct debuginfo_facts *facts, const struct build_id *id);
/* A file that is not there leaves them empty. */
struct error *debuginfo_facts_load(struct debuginfo_facts *facts, const char *path) MUST_USE;
struct error *debuginfo_facts_save(const struct debuginfo_facts *facts, const char *path) MUST_USE;
