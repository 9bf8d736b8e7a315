/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names as servers accept them. All write a 0-terminated text of at most n - 1 bytes into out;
 * n is at least 2.
 */
#pragma once

#include <stddef.h>

/* [a-zA-Z_][a-zA-Z0-9_]*: other characters become '_', as does a digit in front. "" gives "_". */
void series_name_make(const char *name, char *out, size_t n);
/* [a-z0-9_]*, for types and units: their parts are joined with ':' and matched by PromQL. */
void series_name_make_type(const char *type, char *out, size_t n);
/* Valid UTF-8; what is longer ends in "..." and not within a character. */
void series_name_make_value(const char *value, char *out, size_t n);
