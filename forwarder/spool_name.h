/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of spool files, which say what starting up has to know, so that it opens none of them:
 *
 *   SEQUENCE-ENQUEUED-BYTES-REQUESTS-PROFILES-SAMPLES.q1     hexadecimal; the 1 is the version
 *
 * and with .done1 for what was delivered of it, .r1 for what was refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct spool_name {
	uint64_t sequence;    /* order of arrival */
	uint64_t enqueued_ns; /* wall clock */
	uint64_t bytes;	      /* of the file */
	uint32_t n_requests, n_profiles;
	uint64_t n_samples;
};

enum { SPOOL_NAME_BYTES = 112 };
#define SPOOL_WAITING_SUFFIX	".q1"
#define SPOOL_PROGRESS_SUFFIX	".done1"
#define SPOOL_REFUSED_SUFFIX	".r1"
#define SPOOL_UNFINISHED_SUFFIX ".tmp"

void spool_name_format(const struct spool_name *name, const char *suffix,
		       char out[SPOOL_NAME_BYTES]);
/* False unless text is what spool_name_format makes. */
bool spool_name_parse(const char *text, const char *suffix, struct spool_name *out);

/* Names of a folder's files. Zeroed at first. */
struct spool_names {
	struct spool_name *items;
	size_t n, capacity;
};
void spool_names_add(struct spool_names *names, const struct spool_name *name);
/* By sequence. */
void spool_names_sort(struct spool_names *names);
void spool_names_fini(struct spool_names *names);

/* The folder of an exporter: its name with '/' made '~'. */
enum { SPOOL_FOLDER_BYTES = 96 };
void spool_folder_format(const char *exporter, char out[SPOOL_FOLDER_BYTES]);
void spool_folder_parse(const char *folder, char out[SPOOL_FOLDER_BYTES]);
