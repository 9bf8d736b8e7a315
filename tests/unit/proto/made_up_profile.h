/* SPDX-License-Identifier: Apache-2.0 */
/* A small profile with a bit of everything, for the codec tests. */
#pragma once

#include "proto/profile.h"

static inline struct profile_label made_up_text_label(struct profile *profile, const char *key,
						      const char *text)
{
	return (struct profile_label){.key = profile_string(profile, key),
				      .str = profile_string(profile, text)};
}

static inline struct profile_label made_up_number_label(struct profile *profile, const char *key,
							int64_t number)
{
	return (struct profile_label){
		.key = profile_string(profile, key), .num = number, .is_number = true};
}

static inline uint32_t made_up_location(struct profile *profile, uint32_t mapping, uint64_t address,
					const char *name, int64_t line)
{
	uint32_t location = profile_add_location(profile, mapping, address);
	struct profile_function function = {.name = profile_string(profile, name),
					    .system_name = profile_string(profile, name),
					    .filename = profile_string(profile, "app.c"),
					    .start_line = line - 1};
	struct profile_line lines = {
		.function = profile_function(profile, &function), .line = line, .column = 7};
	profile_set_lines(profile, location, &lines, 1);
	return location;
}

/*
 * main → work → {parse, parse → parse, memcpy inlined into copy}, and an unnamed address of libx.
 * Three processes; totals 10 samples, 100 ms.
 */
static inline struct profile *made_up_profile(void)
{
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	profile_add_sample_type(profile, "cpu", "nanoseconds");
	profile->period_type = profile->sample_types.items[1];
	profile->period = 10000000;
	profile->time_nanos = 1700000000000000000;
	profile->duration_nanos = 2000000000;
	profile->default_sample_type = profile_string(profile, "cpu");
	profile->doc_url = profile_string(profile, "https://example.org/doc");
	profile_add_comment(profile, "lost 3 events");
	profile_add_comment(profile, "second comment");
	struct profile_mapping app = {.memory_start = 0x400000,
				      .memory_limit = 0x500000,
				      .file_offset = 0x1000,
				      .filename = profile_string(profile, "/usr/bin/app"),
				      .build_id = profile_string(profile, "abcdef0123")};
	struct profile_mapping libx = {.memory_start = 0x7f0000001000,
				       .memory_limit = 0x7f0000100000,
				       .filename = profile_string(profile, "/usr/lib/libx.so")};
	uint32_t app_index = profile_add_mapping(profile, &app);
	uint32_t libx_index = profile_add_mapping(profile, &libx);
	uint32_t main_at = made_up_location(profile, app_index, 0x401000, "main", 10);
	uint32_t work_at = made_up_location(profile, app_index, 0x402000, "work", 20);
	uint32_t parse_at = made_up_location(profile, app_index, 0x403000, "parse", 30);
	uint32_t copy_at = made_up_location(profile, app_index, 0x404000, "copy", 40);
	struct profile_function inlined = {.name = profile_string(profile, "memcpy"),
					   .system_name = profile_string(profile, "memcpy"),
					   .filename = profile_string(profile, "string.h")};
	struct profile_line chain[] = {
		{.function = profile_function(profile, &inlined), .line = 5},
		profile->lines.items[profile->locations.items[copy_at].first_line]};
	profile_set_lines(profile, copy_at, chain, 2);
	uint32_t libx_at = profile_add_location(profile, libx_index, 0x7f0000002345);
	profile->locations.items[libx_at].is_folded = true;
	profile_set_symbol_flags(profile);

	uint32_t sets[3];
	static const char *const comms[] = {"app", "app", "other"};
	for (int i = 0; i < 3; i++) {
		struct profile_label labels[] = {made_up_text_label(profile, "comm", comms[i]),
						 made_up_number_label(profile, "pid", i * 100)};
		sets[i] = profile_label_set(profile, labels, 2);
	}
	const uint32_t parse[] = {main_at, work_at, parse_at};
	const uint32_t twice[] = {main_at, work_at, parse_at, parse_at};
	const uint32_t copy[] = {main_at, work_at, copy_at};
	const uint32_t unnamed[] = {main_at, libx_at};
	const struct {
		const uint32_t *path;
		uint32_t n, set;
		int64_t samples;
	} samples[] = {
		{parse, 3, sets[0], 3},	  {twice, 4, sets[0], 2}, {copy, 3, sets[1], 2},
		{unnamed, 2, sets[2], 2}, {NULL, 0, 0, 1},
	};
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		const int64_t values[] = {samples[i].samples, samples[i].samples * 10000000};
		uint32_t stack = profile_stack_path(profile, samples[i].path, samples[i].n);
		(void)profile_add_sample(profile, stack, samples[i].set, values);
	}
	return profile;
}
