/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile made to fit what a server takes: labels, names and types it accepts, stacks and strings
 * as long as it allows. The profile that comes in is left as it is.
 *
 * Labels. Those that begin with "__" exist for relabelling only and stay here. Of two labels of a
 * series with one name the first counts. A sample's label whose name a label of the series, or an
 * earlier one of the sample, has already gets "exported_" in front, and a number behind when that
 * is taken too; with an equal value it is left out, as it says nothing new. An empty value is no
 * label. Labels of a sample are sorted by name. Past the maximum, those behind are left out.
 *
 * Types. Reduced to [a-z0-9_]; a column that is then like one before it gets "_2" behind its type.
 * Without a period type, the default column (else the last) stands for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "forwarder/backend.h"
#include "proto/profile.h"

enum { SERIES_MAX_LABELS = 64, SERIES_MAX_NAME_BYTES = 1024 };

struct series_rules {
	const char *const *dropped; /* labels of samples that are left out */
	size_t n_dropped;
	const char *const *withheld; /* as dropped, NULL-terminated; NULL = none */
	/* Labels of samples are labels of the series in the end: numbers become decimal text, names
	 * are [a-zA-Z_][a-zA-Z0-9_]* and differ from those of the series. */
	bool is_flat;
	bool keeps_types;    /* sample types and period type stay as they are */
	bool drops_measures; /* numbers in a unit of size or time name nothing */
	/* The server's word for a label's name; NULL = its own. */
	const char *(*translate)(const char *name);
	uint32_t max_labels;	   /* of a series, its own and a sample's; 0 = SERIES_MAX_LABELS */
	uint32_t max_value_bytes;  /* 0 = no limit */
	uint32_t max_depth;	   /* frames; 0 = no limit */
	uint32_t max_string_bytes; /* of names and files; 0 = no limit */
	/* Samples of locations without mapping, or without name and address, would be lost. */
	bool needs_places;
};

/* What stands for frames that were left out of the middle of a stack. */
#define SERIES_TRUNCATED "[truncated stack]"

struct series {
	struct profile *profile;  /* own copy */
	char *name;		  /* valid: "process_cpu" */
	struct key_value *labels; /* valid, in the order given */
	size_t n_labels;
	struct arena arena; /* texts */
};

/* rules are borrowed for the call. */
void series_init(struct series *series, const struct series_rules *rules,
		 const struct outgoing_profile *outgoing);
void series_fini(struct series *series);

/* The events that samples stand for, where the first column counts them, else the rows. */
uint64_t series_count_samples(const struct profile *profile);
/* The rules that all servers share, with config's drop_labels, or the kind's when it has none. */
struct series_rules series_rules_make(const struct exporter_config *config,
				      const char *const *kind_drops, size_t n_kind_drops);
/* Adds what a request summary says of one profile. */
void series_add_to_summary(struct request_summary *summary, const struct profile *profile);
/* 'name{a="b",c="d"}' for people; the caller frees it. */
char *series_describe(const char *name, const struct key_value *labels, size_t n_labels);
