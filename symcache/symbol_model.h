/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a binary's tables say, in the form between the sources (DWARF, symbol tables) and the symbol
 * file: address ranges that do not overlap, each with the chain of functions that it belongs to,
 * and line rows. Sources append in any order; symbol_model_finish sorts, cuts overlaps by rank and
 * drops duplicates, so that the same input gives the same model whatever the order of appends.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/intern.h"

#define SYMBOL_CHAIN_NONE UINT32_MAX

/* Better sources win an address. */
enum symbol_rank {
	SYMBOL_RANK_DWARF,
	SYMBOL_RANK_PCLNTAB, /* Go's run time's table */
	SYMBOL_RANK_SYMTAB,
	SYMBOL_RANK_DYNSYM,
	SYMBOL_RANK_PLT,
};

/* A source file: folder and name, interned apart so that folders are kept once. Index 0 is
 * "unknown". */
struct symbol_file_name {
	uint32_t folder, name; /* strings */
};

struct symbol_function {
	uint32_t linkage_name; /* string as in the table, mangled; 0 when there is none */
	uint32_t name;	       /* string, plain source name; used when linkage_name is 0 */
	uint32_t file;	       /* of its declaration */
	uint32_t start_line;   /* 0 = unknown */
};

/* One inline step: function stands at its place in parent, called from call_*. Root: parent NONE.
 */
struct symbol_chain {
	uint32_t function;
	uint32_t parent;
	uint32_t call_file, call_line, call_column; /* place of the call in parent's function */
};

struct symbol_range {
	uint64_t start, end; /* svma, end exclusive */
	uint32_t chain;	     /* innermost */
	uint8_t rank;	     /* enum symbol_rank */
	bool is_folded;	     /* other functions share these addresses */
};

/* Covers [address, next row's address) unless is_end. */
struct symbol_line {
	uint64_t address;
	uint32_t file;
	uint32_t line : 31;
	uint32_t is_end : 1; /* nothing is known from here on */
	uint32_t column;
};

#define SYMBOL_ARRAY(type)                                                                         \
	struct {                                                                                   \
		type *items;                                                                       \
		size_t n;                                                                          \
		size_t capacity;                                                                   \
	}

/* Indices of equal items, found by content; part of symbol_model. */
struct symbol_set {
	uint32_t *slots; /* index + 1, 0 = free */
	size_t mask;
};

/* What does not fit is dropped and counted. */
enum {
	SYMBOL_MODEL_MAX_FILES = 1 << 22,
	SYMBOL_MODEL_MAX_FUNCTIONS = 1 << 24,
	SYMBOL_MODEL_MAX_CHAINS = 1 << 25,
	SYMBOL_MODEL_MAX_RANGES = 1 << 26,
	SYMBOL_MODEL_MAX_LINES = 1 << 27,
	SYMBOL_MODEL_MAX_STRINGS = 1 << 24,
};

struct symbol_model {
	struct arena arena;
	struct intern strings;
	SYMBOL_ARRAY(struct symbol_file_name) files;
	SYMBOL_ARRAY(struct symbol_function) functions;
	SYMBOL_ARRAY(struct symbol_chain) chains;
	SYMBOL_ARRAY(struct symbol_range) ranges;
	SYMBOL_ARRAY(struct symbol_line) lines;
	struct symbol_set file_set, function_set;
	uint64_t seed;
	uint64_t n_dropped; /* appends past a cap */
};

void symbol_model_init(struct symbol_model *model);
void symbol_model_fini(struct symbol_model *model);

/* Index of the text; 0 past the cap. */
uint32_t symbol_model_add_string(struct symbol_model *model, const char *text, size_t n);
/* Equal files and functions get one index; 0 (an unknown file, a function without name) past the
 * cap. */
uint32_t symbol_model_add_file(struct symbol_model *model, struct symbol_file_name file);
uint32_t symbol_model_add_function(struct symbol_model *model, struct symbol_function function);
/* The parent is added before its children. SYMBOL_CHAIN_NONE past the cap. */
uint32_t symbol_model_add_chain(struct symbol_model *model, struct symbol_chain chain);
/* An empty range or a chain of SYMBOL_CHAIN_NONE adds nothing. */
void symbol_model_add_range(struct symbol_model *model, struct symbol_range range);
/*
 * Rows come in sequences: ascending addresses, closed by a row with is_end. Of rows with one
 * address the last counts. A row that says what the row before it says adds nothing.
 */
void symbol_model_add_line(struct symbol_model *model, struct symbol_line row);

/*
 * Sorts ranges and lines and makes them free of overlaps: a better rank wins an address, then the
 * later start, then the earlier end, then content; of two sequences of lines the one that starts
 * earlier keeps what it covers. Then renumbers everything by first use in address order (chains
 * with parents before children) and drops what nothing refers to. Called once, after all appends.
 */
void symbol_model_finish(struct symbol_model *model);
