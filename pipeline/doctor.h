/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at what this host allows a sampling user, by trying where trying is possible. */
#pragma once

#include <stddef.h>

enum doctor_status { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

enum { DOCTOR_CHECKS_MAX = 16, DOCTOR_TEXT_BYTES = 240 };

struct doctor_check {
	const char *name; /* stable, for scripts: "paranoid" */
	enum doctor_status status;
	char text[DOCTOR_TEXT_BYTES]; /* what was seen and what follows */
	const char *fix;	      /* one command; NULL when nothing is to mend */
};

struct doctor_result {
	struct doctor_check checks[DOCTOR_CHECKS_MAX];
	size_t n;
	enum doctor_status worst;
};

void doctor_examine(struct doctor_result *out);
const char *doctor_status_name(enum doctor_status status);
