/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a command's result goes: a file that appears whole or not at all, or standard output. Its
 * name decides its form.
 */
#pragma once

#include <stdbool.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/file.h"
#include "proto/profile.h"

enum output_form {
	OUTPUT_PPROF_GZIP, /* anything else, and "-" */
	OUTPUT_PPROF,	   /* x.pb */
	OUTPUT_PERF_DATA,  /* x.data */
};

enum output_form output_form_of(const char *path);
/* The path for people: "-" is "standard output". */
const char *output_shown(const char *path);

struct output {
	const char *path; /* borrowed */
	struct file_writer writer;
	bool is_open;
};

/*
 * Errors: number 1 when binary would go to a terminal, 701 when it cannot be created. To be called
 * before the work, so that nobody waits for a result that has no place.
 */
struct error *output_open(struct output *output, const char *path) MUST_USE;
/*
 * The same, but an existing file is emptied and written in place, for callers that hold it open:
 * pprof reads the descriptor of the file that it lets perf_to_profile write.
 */
struct error *output_open_in_place(struct output *output, const char *path) MUST_USE;
/* pprof, compressed unless is_plain. Errors have number 702, as those of commit. */
struct error *output_write_profile(struct output *output, const struct profile *profile,
				   bool is_plain) MUST_USE;
struct error *output_commit(struct output *output) MUST_USE;
void output_close(struct output *output);
