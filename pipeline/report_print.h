/* SPDX-License-Identifier: Apache-2.0 */
/* A report table on paper. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/compiler.h"
#include "base/error.h"
#include "pipeline/report_table.h"

enum report_print_format { REPORT_PRINT_TEXT, REPORT_PRINT_JSON, REPORT_PRINT_CSV };

/* False when the name is none of text, json, csv. */
bool report_print_parse_format(const char *name, enum report_print_format *out);
/* Text of others, with control characters replaced: nothing in it may steer a terminal. */
void report_print_plain(FILE *out, const char *text);
/* ERROR_IO when out does not take it. */
struct error *report_print(const struct report_table *table, enum report_print_format format,
			   FILE *out) MUST_USE;
/* The value in the unit that reads best: "1.25s", "30ms", "4.5MB", or the number alone. */
void report_print_value(int64_t value, const char *unit, char *out, size_t size);
