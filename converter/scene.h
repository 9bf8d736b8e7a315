/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scene in which samples happen: processes, kernel and images as the side-band records tell of
 * them, at the record being processed. Converter and survey feed it the same way.
 */
#pragma once

#include "base/perf_record.h"
#include "converter/image.h"
#include "converter/jit_table.h"
#include "converter/kernel_space.h"
#include "converter/process.h"
#include "converter/record.h"
#include "symcache/symcache.h"

struct scene {
	const struct perf_source_info *source;
	struct symcache *cache; /* NULL: files are never looked at */
	struct image_table images;
	struct jit_table jit;
	struct process_table processes;
	struct kernel_space kernel;
};

enum scene_outcome {
	SCENE_CHANGED,
	SCENE_MALFORMED, /* its fields do not fit its size; nothing changed */
	SCENE_UNMOVED,	 /* a type that bears on no process and no mapping */
};

void scene_init(struct scene *scene, const struct perf_source_info *source, struct symcache *cache);
void scene_fini(struct scene *scene);
/* The sample_id layout of a side-band record: that of its event, else of the first. */
struct sample_layout scene_layout(const struct scene *scene, const struct perf_record *record);
/* How to read a record that is not a sample. */
struct record_view scene_view(const struct scene *scene, const struct perf_record *record);
enum scene_outcome scene_feed(struct scene *scene, const struct record_view *view);
