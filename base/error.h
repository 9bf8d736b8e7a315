/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one way a function says that it failed: it returns a struct error, or NULL on success.
 * The message is made where the trouble is; each caller that knows more wraps it. A user sees the
 * outermost text first: "perf.data: header: attr size 0 at byte 16".
 */
#pragma once

#include "base/compiler.h"

/* One code for each decision that a caller makes. */
enum error_code {
	ERROR_NO_ENTRY = 1, /* it does not exist */
	ERROR_BAD_DATA,	    /* the input breaks its format */
	ERROR_LIMIT,	    /* a named cap was reached */
	ERROR_AGAIN,	    /* nothing now, try later */
	ERROR_DENIED,	    /* permission */
	ERROR_UNSUPPORTED,  /* valid, but this build, kernel or machine cannot */
	ERROR_CANCELLED,    /* somebody asked to stop */
	ERROR_UNAVAILABLE,  /* the other side is not there */
	ERROR_IO,	    /* the system failed to read or write */
	ERROR_USAGE,	    /* the user's words are off */
};

struct error;

/* Both take printf formats; the result belongs to the caller, who hands it up or frees it. */
struct error *error_new(enum error_code code, const char *fmt, ...) PRINTF_LIKE(2, 3) MUST_USE;
/* As error_new, with ": " and the text of errno_value behind, code chosen from errno_value. */
struct error *error_errno(int errno_value, const char *fmt, ...) PRINTF_LIKE(2, 3) MUST_USE;
/* Takes err (NULL stays NULL) and puts the text and ": " in front. */
struct error *error_wrap(struct error *err, const char *fmt, ...) PRINTF_LIKE(2, 3) MUST_USE;
/* Frequent outcomes that cost nothing; error_free and error_wrap accept them. */
extern struct error *const error_again;
extern struct error *const error_no_entry;

enum error_code error_get_code(const struct error *err);
/* Valid until err is wrapped or freed. */
const char *error_text(const struct error *err);
/*
 * The number of an entry in the table of explained errors ("E601" → 601), 0 if none was set. It
 * travels through wraps; the command line prints it and takes the exit code from that table.
 */
int error_get_number(const struct error *err);
/* Returns err, so that it can stand around a constructor. */
struct error *error_number(struct error *err, int number) MUST_USE;
void error_free(struct error *err);
