/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a stream of records holds, for `perfpipe inspect`: a consumer beside the converter that
 * counts instead of building a profile. Processes and maps are tracked as the converter does, so
 * that what it says of a file is what a conversion would find there.
 *
 * Order of calls: survey_new; survey_feed for every batch; survey_finish → a report; survey_free.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/build_id.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/perf_record.h"

/* Rows that are kept; what comes after in a full table is counted as a whole. */
enum {
	SURVEY_LEAVES_MAX = 1 << 18,
	SURVEY_STACKS_MAX = 1 << 20,
	SURVEY_TASKS_MAX = 1 << 16,
	SURVEY_MAPPINGS_MAX = 1 << 17,
};

/* Where the address of a sample lies. */
enum survey_kind {
	SURVEY_FILE,	/* address = file offset */
	SURVEY_VDSO,	/* address = offset in it */
	SURVEY_ANON,	/* this and all below: run-time address */
	SURVEY_SPECIAL, /* [vsyscall], [heap], [uprobes] … */
	SURVEY_KERNEL,
	SURVEY_MODULE,
	SURVEY_BPF,
	SURVEY_GUEST_KERNEL,
	SURVEY_GUEST_USER,
	SURVEY_HYPERVISOR,
	SURVEY_UNKNOWN,		/* no mapping covers it */
	SURVEY_KERNEL_UNMAPPED, /* in the kernel, where no record tells what is */
	SURVEY_KINDS
};
/* "file", "vdso" … */
const char *survey_kind_name(enum survey_kind kind);

struct survey_event {
	uint64_t n_samples;
	uint64_t period_sum;
	uint64_t n_read_values; /* of groups that were read with its samples */
};

/* Samples of one process under one thread name. */
struct survey_task {
	char *comm;
	uint32_t pid;
	uint64_t n_samples;
};

/* A file that samples of a process lie in; pid 0 for the kernel's. */
struct survey_mapping {
	const char *file;
	struct build_id build_id; /* of its MMAP2, may be empty */
	uint32_t pid;
	uint8_t kind; /* enum survey_kind */
	uint64_t n_samples;
};

struct survey_leaf {
	const char *file; /* "[unknown]" where nothing is mapped */
	uint64_t address;
	uint64_t n_samples, period_sum;
	uint8_t kind; /* enum survey_kind */
};

struct survey_chains {
	uint64_t n_with, n_empty;
	uint64_t n_entries; /* with context markers */
	uint64_t n_frames, n_kernel_frames, n_user_frames;
	uint64_t max_frames; /* of one sample */
};

struct survey_report {
	/* By index of the source's events. */
	struct survey_event *events;
	uint32_t n_events;
	uint64_t n_samples;
	uint64_t first_ns, last_ns; /* 0 = no sample has a time */
	uint64_t n_no_event, n_malformed, n_malformed_records;

	struct survey_chains chains;
	uint64_t n_user_regs, n_user_stacks, user_stack_bytes;
	uint64_t n_with_branches, n_branches;
	uint64_t n_raw;
	uint64_t n_deferred_records, n_deferred_merged, n_deferred_left;
	uint64_t n_lost_records, n_lost_events;
	uint64_t n_lost_samples_records, n_lost_samples;

	/* Most samples first; equal ones by name, then by number. */
	struct survey_task *tasks;
	uint32_t n_tasks;
	struct survey_mapping *user;
	uint32_t n_user, n_user_files; /* distinct (pid, file), distinct files */
	struct survey_mapping *kernel;
	uint32_t n_kernel;
	struct survey_leaf *leaves;
	uint32_t n_leaves;
	uint64_t n_by_kind[SURVEY_KINDS];
	uint64_t n_stacks_by_pid, n_stacks_by_event_pid;

	/* Samples that found their table full: the lists are then not complete. */
	uint64_t n_tasks_over, n_mappings_over, n_leaves_over, n_stacks_over;
};

struct survey;

/* source is borrowed, outlives the survey and may still grow (pipe mode). */
struct survey *survey_new(const struct perf_source_info *source);
void survey_free(struct survey *survey);
/* A perf_record_sink_fn; context is the survey. */
struct error *survey_feed(void *context, const struct perf_record *records, size_t n) MUST_USE;
/* Belongs to the survey. Nothing may be fed afterwards. */
const struct survey_report *survey_finish(struct survey *survey);
