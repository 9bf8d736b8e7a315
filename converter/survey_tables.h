/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The growing tables of a survey: rows found by 64 bits of a seeded hash of what tells them apart,
 * each table with its bound. Two rows of 2^20 fall together with a chance of 2^-25.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/hash_map.h"
#include "converter/survey.h"
#include "converter/survey_place.h"

struct survey_tables {
	struct hash_map tasks, mappings, files, leaves; /* key → row */
	struct hash_map by_pid, by_event_pid;		/* only keys */
	uint32_t task_capacity, mapping_capacity, leaf_capacity;
	struct survey_mapping *mapping_rows; /* user and kernel together */
	uint32_t n_mapping_rows;
	uint64_t seed;
};

/* Rows of the report itself grow here; the names in them are the image table's, comms are ours. */
void survey_tables_init(struct survey_tables *tables);
void survey_tables_fini(struct survey_tables *tables, struct survey_report *report);

void survey_tables_add_task(struct survey_tables *tables, struct survey_report *report,
			    const char *comm, uint32_t pid);
void survey_tables_add_place(struct survey_tables *tables, struct survey_report *report,
			     uint32_t pid, const struct survey_place *place, uint64_t period);
/* frames: innermost first. */
void survey_tables_add_stack(struct survey_tables *tables, struct survey_report *report,
			     uint32_t pid, uint32_t event, const uint64_t *frames, size_t n);
/* Puts the lists into the order that survey.h states. */
void survey_tables_sort(struct survey_tables *tables, struct survey_report *report);
