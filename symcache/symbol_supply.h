/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where symbol files come from: the store, or else the builder, whose work goes into the store.
 * Without a store that can be used, a file lives in memory for as long as it is open.
 */
#pragma once

#include <stdbool.h>

#include "base/build_id.h"
#include "base/compiler.h"
#include "symcache/elf_image.h"
#include "symcache/side_file.h"
#include "symcache/symbol_file.h"
#include "symcache/symcache.h"

struct symbol_supply;
struct remote_supply;

/* What came of asking; zeroed before. One of file and failure once it is no longer pending. */
struct symbol_outcome {
	bool is_pending;
	struct symbol_file *file;
	char *failure; /* for people */
};

/* What a file is to be built from. */
struct symbol_order {
	struct build_id id;
	enum symbol_quality quality; /* the best source among the descriptors */
	int binary_fd, debug_fd;     /* debug_fd -1 = none */
	struct side_file_places places;
};

struct symbol_supply *symbol_supply_new(const struct symcache_config *config);
/* Outcomes that are pending stay so. */
void symbol_supply_free(struct symbol_supply *supply);

/*
 * What is known already of a build-id, given the best source at hand. True: out is set, nothing is
 * to be built. False: it pays to build.
 */
bool symbol_supply_find(struct symbol_supply *supply, const struct build_id *id,
			enum symbol_quality quality, struct symbol_outcome *out);
/*
 * Starts to build, which may wait for others to end. Takes the descriptors; copies the texts except
 * for roots. out is filled in by then or by symbol_supply_wait, and stays at its place till then.
 */
void symbol_supply_build(struct symbol_supply *supply, const struct symbol_order *order,
			 struct symbol_outcome *out);
/* Until nothing is pending. */
void symbol_supply_wait(struct symbol_supply *supply);
/* Does what can be done without waiting; whether something is pending. */
bool symbol_supply_poll(struct symbol_supply *supply);
/* The folder of the store, NULL when there is none that can be used. */
const char *symbol_supply_store_path(const struct symbol_supply *supply);
/* Where dwz's shared files are looked for that are not on this host; outlives the supply's use. */
void symbol_supply_set_remote(struct symbol_supply *supply, struct remote_supply *remote);
void symbol_outcome_fini(struct symbol_outcome *outcome);

/* What an ELF file promises. */
enum symbol_quality symbol_supply_quality_of(const struct elf_image *image);
