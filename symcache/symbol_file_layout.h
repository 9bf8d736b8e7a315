/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants of the symbol file that its writer and its reader share. docs/symbol-file.md describes
 * the layout and why it is so; a change here that old readers cannot know is a new version.
 */
#pragma once

#include <stdint.h>

#include "symcache/prefix_code.h"

enum { SYMBOL_FILE_VERSION = 2 };

static const uint8_t symbol_file_magic[8] = {'P', 'P', 'S', 'Y', 'M', '\r', '\n', 0};

enum {
	SYMBOL_FILE_HEADER_BYTES = 128,
	SYMBOL_FILE_ENTRY_BYTES = 24, /* of the section table */
	SYMBOL_FILE_MAX_SECTIONS = 64,
	SYMBOL_FILE_ALIGNMENT = 8,
	/* Where its fields lie in the header. */
	SYMBOL_FILE_AT_VERSION = 8,
	SYMBOL_FILE_AT_CRC = 12,
	SYMBOL_FILE_AT_BYTES = 16,
	SYMBOL_FILE_AT_N_SECTIONS = 24,
	SYMBOL_FILE_AT_QUALITY = 28,
	SYMBOL_FILE_AT_ID_SIZE = 29,
	SYMBOL_FILE_AT_ID_KIND = 30,
	SYMBOL_FILE_AT_ID = 32,
};

/* A reader passes over kinds that it does not know. */
enum symbol_section {
	SYMBOL_SECTION_PARAMETERS = 1,
	SYMBOL_SECTION_CODES,	   /* lengths of the prefix codes */
	SYMBOL_SECTION_GROUPS,	   /* first level of the address index */
	SYMBOL_SECTION_BLOCKS,	   /* second level */
	SYMBOL_SECTION_SEGMENTS,   /* blocks, coded */
	SYMBOL_SECTION_DIRECTORY,  /* where every 16th function starts */
	SYMBOL_SECTION_FUNCTIONS,  /* names, call edges, sites */
	SYMBOL_SECTION_PATH_INDEX, /* where every 16th path node starts */
	SYMBOL_SECTION_PATHS,	   /* trie of path components */
	SYMBOL_SECTION_PIECES,	   /* dictionary of the text code */
	SYMBOL_SECTION_UNWIND,	   /* optional: unwind_table.h */
};
enum { SYMBOL_SECTION_N = SYMBOL_SECTION_UNWIND + 1 };

enum {
	SYMBOL_FILE_PARAMETERS_BYTES = 64,
	SYMBOL_FILE_GROUP_BLOCKS = 32,	 /* most blocks of a group */
	SYMBOL_FILE_MAX_SEGMENTS = 64,	 /* most segments that a block may be said to have */
	SYMBOL_FILE_STRIDE = 16,	 /* functions, path nodes for one directory entry */
	SYMBOL_FILE_MAX_DEPTH = 63,	 /* inlined calls of a chain */
	SYMBOL_FILE_MAX_INDEX_BITS = 28, /* of a function or site number: two fit one load */
	SYMBOL_FILE_MAX_LINE_BITS = 31,
	SYMBOL_FILE_MAX_COLUMN_BITS = 15,
	SYMBOL_FILE_MAX_FILE_BITS = 10, /* of the files of one function */
	SYMBOL_FILE_MAX_NAME_BYTES = 1 << 16,
	SYMBOL_FILE_MAX_PATH_BYTES = 4096,
	SYMBOL_FILE_MAX_COMPONENTS = 256,
	/* A bit stream is followed by as many zero bytes: it is read 8 bytes at a time. */
	SYMBOL_FILE_TAIL_BYTES = 16,
};

/* Flags of the parameters. */
enum {
	SYMBOL_FILE_HAS_LINES = 1 << 0,
	SYMBOL_FILE_HAS_COLUMNS = 1 << 1,
	SYMBOL_FILE_HAS_INLINES = 1 << 2,
};

/* The prefix codes, in the order of the codes section. */
enum symbol_code {
	SYMBOL_CODE_STEP,
	SYMBOL_CODE_LENGTH,
	SYMBOL_CODE_ROOT,
	SYMBOL_CODE_EDGE,
	SYMBOL_CODE_SITE,      /* first site of a function in a block */
	SYMBOL_CODE_SITE_STEP, /* further one, as a difference */
	SYMBOL_CODE_N,
};

/*
 * Symbols of SYMBOL_CODE_STEP: what a segment is, seen from the one before it. The first ones are
 * the same place in the chain and another site: the difference is the symbol's number.
 */
enum {
	SYMBOL_STEP_GAP = PREFIX_NUMBER_SYMBOLS, /* no function here */
	SYMBOL_STEP_END,			 /* no function from here to the next block */
	SYMBOL_STEP_ROOT,	/* + pushes: another real function, and calls inlined in it */
	SYMBOL_STEP_COUNTS = 8, /* pops and pushes 0 to 6; 7 = 6 bits behind it say how many */
	SYMBOL_STEP_MOVE = SYMBOL_STEP_ROOT + SYMBOL_STEP_COUNTS, /* + 8 * pops + pushes */
	SYMBOL_STEP_SYMBOLS = SYMBOL_STEP_MOVE + SYMBOL_STEP_COUNTS * SYMBOL_STEP_COUNTS,
	SYMBOL_STEP_COUNT_BITS = 6,
};

static inline unsigned symbol_code_symbols(unsigned code)
{
	return code == SYMBOL_CODE_STEP ? SYMBOL_STEP_SYMBOLS : PREFIX_NUMBER_SYMBOLS;
}

enum {
	SYMBOL_CODES_BYTES =
		(SYMBOL_STEP_SYMBOLS + (SYMBOL_CODE_N - 1) * PREFIX_NUMBER_SYMBOLS + 1) / 2,
};

/* First byte of a function's record. */
enum {
	SYMBOL_FUNCTION_NAME_SHARED = 1, /* as that of an earlier function */
	SYMBOL_FUNCTION_DISPLAY_SHIFT = 1,
	SYMBOL_FUNCTION_DISPLAY_MASK = 3,
	SYMBOL_FUNCTION_FOLDED = 1 << 3,
	SYMBOL_FUNCTION_RANK_SHIFT = 4,
	SYMBOL_FUNCTION_RANK_MASK = 3,
	SYMBOL_FUNCTION_HAS_DECLARATION = 1 << 6, /* it is declared in another file than its code */
	SYMBOL_FUNCTION_HAS_PLACES = 1 << 7,	  /* sites or edges */
};

enum symbol_display {
	SYMBOL_DISPLAY_SAME,   /* as the linkage name */
	SYMBOL_DISPLAY_GUESS,  /* what display_guess says */
	SYMBOL_DISPLAY_STORED, /* follows */
};

/* Widths of line (low) and column (high) of a function's sites; 15 = a byte with the line's width
 * follows. */
enum { SYMBOL_WIDTH_FAR = 15 };
