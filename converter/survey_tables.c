/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/survey_tables.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/hash_seed.h"
#include "base/mem.h"

#define ROW_NONE UINT32_MAX

void survey_tables_init(struct survey_tables *tables)
{
	*tables = (struct survey_tables){.seed = hash_seed_make()};
	hash_map_init(&tables->tasks);
	hash_map_init(&tables->mappings);
	hash_map_init(&tables->files);
	hash_map_init(&tables->leaves);
	hash_map_init(&tables->by_pid);
	hash_map_init(&tables->by_event_pid);
}

void survey_tables_fini(struct survey_tables *tables, struct survey_report *report)
{
	for (uint32_t i = 0; i < report->n_tasks; i++)
		mem_free(report->tasks[i].comm);
	mem_free(report->tasks);
	mem_free(report->leaves);
	mem_free(tables->mapping_rows);
	hash_map_fini(&tables->tasks);
	hash_map_fini(&tables->mappings);
	hash_map_fini(&tables->files);
	hash_map_fini(&tables->leaves);
	hash_map_fini(&tables->by_pid);
	hash_map_fini(&tables->by_event_pid);
	*tables = (struct survey_tables){0};
}

/* The row of key, a new one at *n when there is none, ROW_NONE when there is none and no room. */
static uint32_t find_row(struct hash_map *map, uint64_t key, uint32_t n, uint32_t max)
{
	const uint64_t *row = hash_map_get(map, key);
	if (row)
		return (uint32_t)*row;
	if (n >= max)
		return ROW_NONE;
	*hash_map_put(map, key, NULL) = n;
	return n;
}

/* Makes room for row n and clears it. */
static void *grow(void *rows, uint32_t n, uint32_t *capacity, size_t row_bytes)
{
	if (n == *capacity) {
		*capacity = n ? n * 2 : 64;
		rows = mem_realloc(rows, *capacity, row_bytes);
	}
	memset((char *)rows + (size_t)n * row_bytes, 0, row_bytes);
	return rows;
}

static uint64_t hash_text(const struct survey_tables *tables, const char *text, uint64_t more)
{
	return XXH3_64bits_withSeed(text, strlen(text), tables->seed ^ hash_mix(more));
}

void survey_tables_add_task(struct survey_tables *tables, struct survey_report *report,
			    const char *comm, uint32_t pid)
{
	uint32_t row = find_row(&tables->tasks, hash_text(tables, comm, pid), report->n_tasks,
				SURVEY_TASKS_MAX);
	if (row == ROW_NONE) {
		report->n_tasks_over++;
		return;
	}
	if (row == report->n_tasks) {
		report->tasks =
			grow(report->tasks, row, &tables->task_capacity, sizeof(*report->tasks));
		report->tasks[row].comm = mem_copy_string(comm);
		report->tasks[row].pid = pid;
		report->n_tasks++;
	}
	report->tasks[row].n_samples++;
}

static void add_mapping(struct survey_tables *tables, struct survey_report *report, uint32_t pid,
			const struct survey_place *place, bool is_kernel)
{
	const char *file = place->image->path;
	uint64_t key = hash_text(tables, file, (uint64_t)is_kernel << 32 | (is_kernel ? 0 : pid));
	uint32_t row =
		find_row(&tables->mappings, key, tables->n_mapping_rows, SURVEY_MAPPINGS_MAX);
	if (row == ROW_NONE) {
		report->n_mappings_over++;
		return;
	}
	if (row == tables->n_mapping_rows) {
		tables->mapping_rows = grow(tables->mapping_rows, row, &tables->mapping_capacity,
					    sizeof(*tables->mapping_rows));
		struct survey_mapping *mapping = &tables->mapping_rows[row];
		mapping->file = file;
		mapping->build_id = place->image->build_id;
		mapping->pid = is_kernel ? 0 : pid;
		mapping->kind = (uint8_t)place->kind;
		tables->n_mapping_rows++;
		if (!is_kernel)
			hash_map_put(&tables->files, hash_text(tables, file, 0), NULL);
	}
	tables->mapping_rows[row].n_samples++;
}

static void add_leaf(struct survey_tables *tables, struct survey_report *report,
		     const struct survey_place *place, uint64_t period)
{
	const char *file = place->image ? place->image->path : "[unknown]";
	uint64_t key = hash_text(tables, file, hash_mix(place->address) + (uint64_t)place->kind);
	uint32_t row = find_row(&tables->leaves, key, report->n_leaves, SURVEY_LEAVES_MAX);
	if (row == ROW_NONE) {
		report->n_leaves_over++;
		return;
	}
	if (row == report->n_leaves) {
		report->leaves =
			grow(report->leaves, row, &tables->leaf_capacity, sizeof(*report->leaves));
		report->leaves[row].file = file;
		report->leaves[row].address = place->address;
		report->leaves[row].kind = (uint8_t)place->kind;
		report->n_leaves++;
	}
	report->leaves[row].n_samples++;
	report->leaves[row].period_sum += period;
}

void survey_tables_add_place(struct survey_tables *tables, struct survey_report *report,
			     uint32_t pid, const struct survey_place *place, uint64_t period)
{
	report->n_by_kind[place->kind]++;
	add_leaf(tables, report, place, period);
	switch (place->kind) {
	case SURVEY_FILE:
	case SURVEY_VDSO:
	case SURVEY_ANON:
	case SURVEY_SPECIAL:
		add_mapping(tables, report, pid, place, false);
		break;
	case SURVEY_KERNEL:
	case SURVEY_MODULE:
	case SURVEY_BPF:
		add_mapping(tables, report, pid, place, true);
		break;
	default:
		break;
	}
}

/* Whether the key is in the set now. */
static bool add_key(struct hash_map *set, uint64_t key)
{
	if (set->n < SURVEY_STACKS_MAX) {
		hash_map_put(set, key, NULL);
		return true;
	}
	return hash_map_get(set, key) != NULL;
}

void survey_tables_add_stack(struct survey_tables *tables, struct survey_report *report,
			     uint32_t pid, uint32_t event, const uint64_t *frames, size_t n)
{
	uint64_t key =
		XXH3_64bits_withSeed(frames, n * sizeof(*frames), tables->seed ^ hash_mix(pid));
	bool is_in = add_key(&tables->by_pid, key);
	is_in &= add_key(&tables->by_event_pid, hash_mix(key ^ hash_mix(event + UINT64_C(1))));
	report->n_stacks_over += !is_in;
}

/* --- order --- */

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_tasks(const void *a, const void *b)
{
	const struct survey_task *x = a, *y = b;
	int order = compare_numbers(y->n_samples, x->n_samples);
	if (!order)
		order = strcmp(x->comm, y->comm);
	return order ? order : compare_numbers(x->pid, y->pid);
}

static bool is_kernel_row(const struct survey_mapping *mapping)
{
	return mapping->kind >= SURVEY_KERNEL;
}

/* Those of processes first. */
static int compare_mappings(const void *a, const void *b)
{
	const struct survey_mapping *x = a, *y = b;
	int order = is_kernel_row(x) - is_kernel_row(y);
	if (!order)
		order = compare_numbers(y->n_samples, x->n_samples);
	if (!order)
		order = compare_numbers(x->pid, y->pid);
	return order ? order : strcmp(x->file, y->file);
}

static int compare_leaves(const void *a, const void *b)
{
	const struct survey_leaf *x = a, *y = b;
	int order = compare_numbers(y->n_samples, x->n_samples);
	if (!order)
		order = strcmp(x->file, y->file);
	if (!order)
		order = compare_numbers(x->address, y->address);
	return order ? order : x->kind - y->kind;
}

static void sort(void *rows, uint32_t n, size_t row_bytes,
		 int (*compare)(const void *, const void *))
{
	if (n)
		qsort(rows, n, row_bytes, compare);
}

void survey_tables_sort(struct survey_tables *tables, struct survey_report *report)
{
	sort(report->tasks, report->n_tasks, sizeof(*report->tasks), compare_tasks);
	sort(report->leaves, report->n_leaves, sizeof(*report->leaves), compare_leaves);
	sort(tables->mapping_rows, tables->n_mapping_rows, sizeof(*tables->mapping_rows),
	     compare_mappings);
	report->user = tables->mapping_rows;
	report->n_user = 0;
	while (report->n_user < tables->n_mapping_rows &&
	       !is_kernel_row(&report->user[report->n_user]))
		report->n_user++;
	report->kernel = tables->mapping_rows ? tables->mapping_rows + report->n_user : NULL;
	report->n_kernel = tables->n_mapping_rows - report->n_user;
	report->n_user_files = (uint32_t)tables->files.n;
	report->n_stacks_by_pid = tables->by_pid.n;
	report->n_stacks_by_event_pid = tables->by_event_pid.n;
}
