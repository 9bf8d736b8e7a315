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
struct error *output_open(struct output *output, const char *path, bool is_binary) MUST_USE;
/*
 * An existing file, emptied and written in place, for callers that hold it open: pprof reads the
 * descriptor of the file that it lets perf_to_profile write. To be called when there is something
 * to write.
 */
struct error *output_open_in_place(struct output *output, const char *path) MUST_USE;
/* Whether it goes to our standard output, by whatever name. */
bool output_is_standard(const struct output *output);
/* Whether two paths name one file; devices such as /dev/null are nobody's. */
bool output_is_same_path(const char *a, const char *b);
/* pprof, compressed unless is_plain. Errors have number 702, as those of commit. */
struct error *output_write_profile(struct output *output, const struct profile *profile,
				   bool is_plain) MUST_USE;
struct error *output_commit(struct output *output) MUST_USE;
/* Puts the path before err; number 702 unless it has one. */
struct error *output_failed(const char *path, struct error *err) MUST_USE;
void output_close(struct output *output);
