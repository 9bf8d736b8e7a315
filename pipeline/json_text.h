/* SPDX-License-Identifier: Apache-2.0 */
/* Strings as JSON wants them. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/*
 * Writes text in quotes, with what JSON forbids escaped and bytes that are not UTF-8 made U+FFFD;
 * NULL is written as null.
 */
void json_text_write(FILE *out, const char *text);
void json_text_write_n(FILE *out, const char *text, size_t size);
