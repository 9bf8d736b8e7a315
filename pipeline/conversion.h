/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What record, convert and report have in common: a source's records through converter and symcache
 * to one profile, with the options that steer it and the warnings that come of it.
 *
 * A file: conversion_read_file does it all. A live source: conversion_open, conversion_sink into a
 * pipeline, conversion_finish, conversion_close.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "collector/collector.h"
#include "converter/converter.h"
#include "pipeline/cli.h"
#include "pipeline/pipeline.h"
#include "pipeline/progress.h"
#include "symcache/symcache.h"

enum { CONVERSION_DEBUG_ROOTS_MAX = 8 };

struct conversion_options {
	struct symcache_config symbols; /* debug_roots points to the list below, or is NULL */
	const char *debug_roots[CONVERSION_DEBUG_ROOTS_MAX + 1];
	size_t n_debug_roots;
	struct symcache_debuginfod debuginfod; /* symbols.debuginfod points here, or is NULL */
	uint32_t labels;
	const char *event;
	const char *main_path; /* see converter_config */
	/* Name of the first option that makes no sense without perf.data, NULL = none was set. */
	const char *first;
	bool is_strict;
};

/* Ids of the options below; commands number their own from 1. */
enum conversion_option {
	CONVERSION_EVENT = 100,
	CONVERSION_LABELS,
	CONVERSION_STRICT,
	CONVERSION_NO_SYMBOLS,
	CONVERSION_TRUST_PATHS,
	CONVERSION_SYSROOT,
	CONVERSION_DEBUG_ROOT,
	CONVERSION_VMLINUX,
	CONVERSION_KALLSYMS,
	CONVERSION_DEMANGLE,
	CONVERSION_SYMBOL_CACHE,
	CONVERSION_NO_SYMBOL_CACHE,
	CONVERSION_DEBUGINFOD,
	CONVERSION_DEBUGINFOD_WAIT,
};

/* Tables for cli_spec.shared: what makes sense for any source, and for files. */
extern const struct cli_option conversion_symbol_options[];
extern const struct cli_option conversion_file_options[];

void conversion_options_init(struct conversion_options *options);
/* A cli_set_fn for the ids above. */
struct error *conversion_options_set(struct conversion_options *options, int id,
				     const char *value) MUST_USE;
/*
 * Whether the files and folders that the options name can be used; number 614. To be called before
 * any work.
 */
struct error *conversion_options_check(const struct conversion_options *options) MUST_USE;
/* 0 when it is not the name of a label. */
uint32_t conversion_label_of(const char *name);

struct conversion {
	struct symcache *cache;
	struct converter *converter;
	bool is_live, has_names;
};

/* options and info are borrowed and outlive the conversion. */
void conversion_open(struct conversion *conversion, const struct conversion_options *options,
		     const struct perf_source_info *info);
struct pipeline_sink conversion_sink(struct conversion *conversion);
/*
 * Names everything, says what was lost or malformed (losses: what did not reach the converter), and
 * gives the profile, which the caller owns.
 */
struct error *conversion_finish(struct conversion *conversion, const struct cli *cli,
				struct pipeline_losses losses, struct profile **out) MUST_USE;
void conversion_close(struct conversion *conversion);
/* Says what was lost, malformed, late or forgotten on the way. */
void conversion_warn_of_losses(const struct cli *cli, const struct converter_totals *totals,
			       struct pipeline_losses losses);

/* path: a perf.data file, folder, or "-". Errors have number 613 when it cannot be opened at all.
 */
struct error *conversion_open_file(const char *path, struct progress *progress,
				   struct record_source **out) MUST_USE;
/*
 * After a file was drained: says what was damaged or skipped; with is_strict the first damage
 * becomes the error instead.
 */
struct error *conversion_state_warnings(struct record_source *source, const char *path,
					bool is_strict, const struct cli *cli) MUST_USE;
/* The input's name for people: "-" is "standard input". */
const char *conversion_input_shown(const char *path);
/* Both and all between, to a profile. */
struct error *conversion_read_file(const struct conversion_options *options, const char *path,
				   const struct cli *cli, struct profile **out) MUST_USE;
