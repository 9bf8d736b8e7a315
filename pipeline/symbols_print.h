/* SPDX-License-Identifier: Apache-2.0 */
/* What `perfpipe symbols` prints, as text or JSON. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "symcache/symcache.h"

enum { SYMBOLS_PRINT_ID_BYTES = BUILD_ID_HEX_BYTES + 8 };

struct symbols_print {
	FILE *out;
	bool is_json;
	size_t n; /* items of the current list */
};

/* As in the names of the store's files: hex, with "go-" or "hash-" before that of other kinds. */
void symbols_print_id(const struct build_id *id, char out[SYMBOLS_PRINT_ID_BYTES]);

void symbols_print_list_begin(struct symbols_print *print, const char *path);
void symbols_print_entry(struct symbols_print *print, const struct store_entry *entry);
void symbols_print_list_end(struct symbols_print *print);

void symbols_print_file(struct symbols_print *print, const struct symbol_file_info *info);
void symbols_print_address(struct symbols_print *print, uint64_t address,
			   const struct symbol_result *result);
void symbols_print_file_end(struct symbols_print *print);

/* What upkeep removed, each file, and then the sums. */
void symbols_print_upkeep_begin(struct symbols_print *print);
void symbols_print_removed(struct symbols_print *print, const char *name, const char *reason);
void symbols_print_summary(struct symbols_print *print, const struct store_summary *summary);
