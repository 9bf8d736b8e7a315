/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flat/cum table of a profile, as `perfpipe report` prints it and with the meaning that
 * go tool pprof -top gives to the same options. Pure: a profile and options in, rows out.
 *
 * Order of calls: report_table_make, report_print (report_print.h), report_table_free.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/intern.h"
#include "proto/profile.h"

/* Texts are borrowed during report_table_make; NULL or 0 = not given. */
struct report_table_options {
	const char *focus;  /* keep samples with a frame whose function, file or module matches */
	const char *ignore; /* drop samples with such a frame */
	const char *hide;   /* drop such frames, samples only when no frame is left */
	/*
	 * "key=RE" on texts, "key=N", "key=N:M", "key=N:" or "key=:M" on numbers; all must hold.
	 */
	const char *const *tagfocus;
	uint32_t n_tagfocus;
	/*
	 * A row for each combination of values of these labels; "function" among them gives one
	 * for each combination and function.
	 */
	const char *const *sort;
	uint32_t n_sort;
	const char *column;  /* sample type; NULL = the profile's default, else its last */
	bool is_by_cum;	     /* order by cum, not by flat */
	uint32_t node_count; /* rows to show, 0 = all */
};

struct report_table_row {
	int64_t flat;
	int64_t cum;
	uint32_t name;	 /* string of the table; 0 when rows are label values alone */
	uint32_t values; /* row of table.values, when there are keys */
};

struct report_table {
	struct arena arena;
	struct intern strings;
	struct report_table_row *rows; /* in order, cut to node_count */
	uint32_t n_rows;
	uint32_t n_all_rows; /* before the cut */
	uint32_t *keys;	     /* strings: label keys of the sort option */
	uint32_t n_keys;
	uint32_t *values; /* strings, n_keys for each combination */
	uint32_t n_values;
	bool has_functions;
	uint32_t type, unit; /* strings: the column shown */
	int64_t total;	     /* of all samples, filtered out ones too: what percents refer to */
	int64_t kept;	     /* of the samples that passed the filters */
	uint64_t n_samples;  /* distinct, that passed */
	const struct profile *profile; /* borrowed, outlives the table */
};

/*
 * ERROR_USAGE for a bad expression, tagfocus or column (the text lists the columns); ERROR_LIMIT
 * for an expression that is too costly.
 */
struct error *report_table_make(const struct profile *profile,
				const struct report_table_options *options,
				struct report_table **out) MUST_USE;
void report_table_free(struct report_table *table);
static inline const char *report_table_text(const struct report_table *table, uint32_t string)
{
	return intern_text(&table->strings, string);
}
