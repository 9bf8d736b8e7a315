/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of everything that can be said to a person under a number: what it means, why it
 * happens, how to mend it, and the exit code it leads to. Errors carry only the number.
 */
#pragma once

#include <stddef.h>

/* What perfpipe returns. A command started by `record` returns its own status instead. */
enum exit_code {
	EXIT_CODE_DONE = 0,
	EXIT_CODE_FAILED = 1,
	EXIT_CODE_USAGE = 2,
	EXIT_CODE_BAD_INPUT = 65,
	EXIT_CODE_NO_INPUT = 66,
	EXIT_CODE_UNAVAILABLE = 69,
	EXIT_CODE_INTERNAL = 70,
	EXIT_CODE_CANNOT_CREATE = 73,
	EXIT_CODE_IO = 74,
	EXIT_CODE_TEMPORARY = 75, /* it is spooled: try later */
	EXIT_CODE_DENIED = 77,
	EXIT_CODE_CONFIG = 78,
	EXIT_CODE_NOT_EXECUTABLE = 126,
	EXIT_CODE_NOT_FOUND = 127,
	EXIT_CODE_SIGNAL = 128, /* plus the signal's number */
};

enum explain_severity { EXPLAIN_ERROR = 'E', EXPLAIN_WARNING = 'W' };

struct explain_entry {
	char severity; /* enum explain_severity, the letter before the number */
	int number;
	int exit_code; /* 0 for warnings */
	const char *title;
	const char *why;
	const char *fix;
};

/* The entry of that severity, else the one of the other severity, NULL when the number is new. */
const struct explain_entry *explain_find(enum explain_severity severity, int number);
const struct explain_entry *explain_list(size_t *n_out);
