/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates of the profile store and the pprof codecs on a made-up profile of the size that an hour of
 * a busy host gives: 1.1 M samples of 8 frames or so, 5,000 locations, 3,000 label sets.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/mem.h"
#include "proto/pprof_encode.h"
#include "proto/pprof_read.h"
#include "proto/profile.h"

enum {
	N_SAMPLES = 1100000,
	N_LOCATIONS = 5000,
	N_LABEL_SETS = 3000,
	MIN_DEPTH = 4,
	MAX_DEPTH = 13,
	TEXT_BYTES = 64,
};

static double cpu_seconds(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void add_locations(struct profile *profile)
{
	char text[TEXT_BYTES];
	struct profile_mapping mapping = {.memory_start = 0x1000,
					  .memory_limit = 0x4000000,
					  .filename = profile_string(profile, "/usr/bin/busy")};
	uint32_t index = profile_add_mapping(profile, &mapping);
	for (uint32_t i = 0; i < N_LOCATIONS; i++) {
		uint32_t location = profile_add_location(profile, index, 0x1000 + (uint64_t)i * 37);
		snprintf(text, sizeof(text), "module::function_number_%u", i);
		struct profile_function function = {.name = profile_string(profile, text)};
		function.system_name = function.name;
		struct profile_line line = {.function = profile_function(profile, &function),
					    .line = i + 1};
		profile_set_lines(profile, location, &line, 1);
	}
}

static void add_label_sets(struct profile *profile)
{
	char text[TEXT_BYTES];
	for (uint32_t i = 0; i < N_LABEL_SETS; i++) {
		snprintf(text, sizeof(text), "worker-%u", i % 100);
		struct profile_label labels[] = {
			{.key = profile_string(profile, "comm"),
			 .str = profile_string(profile, text)},
			{.key = profile_string(profile, "pid"), .num = 1000 + i, .is_number = true},
		};
		(void)profile_label_set(profile, labels, 2);
	}
}

/* Chains share their upper half, as chains do. */
static void add_samples(struct profile *profile)
{
	static const int64_t values[] = {1, 10101010};
	uint64_t state = 1;
	uint32_t chain[MAX_DEPTH];
	for (uint32_t i = 0; i < N_SAMPLES; i++) {
		uint32_t n = MIN_DEPTH + next_random(&state) % (MAX_DEPTH - MIN_DEPTH);
		for (uint32_t frame = 0; frame < n; frame++) {
			uint32_t choices = frame < n - 3 ? 4 : N_LOCATIONS;
			chain[frame] = (frame * 100 + next_random(&state) % choices) % N_LOCATIONS;
		}
		uint32_t stack = profile_stack_path(profile, chain, n);
		uint32_t set = 1 + next_random(&state) % N_LABEL_SETS;
		(void)profile_add_sample(profile, stack, set, values);
	}
}

static void report(const char *what, double seconds, double n_samples, size_t bytes)
{
	printf("%-12s %7.3f s CPU %8.2f M samples/s %8.1f MB/s\n", what, seconds,
	       n_samples / seconds * 1e-6, (double)bytes / seconds * 1e-6);
}

static struct error *encode(const struct profile *profile, int gzip_level, const char *what,
			    struct buf *out)
{
	struct pprof_encode_options options = {.gzip_level = gzip_level};
	buf_clear(out);
	double start = cpu_seconds();
	struct error *err = pprof_encode_buf(profile, &options, out);
	report(what, cpu_seconds() - start, profile->samples.n, out->size);
	return err;
}

static struct error *decode(const struct buf *in, const char *what)
{
	struct profile *profile = NULL;
	struct pprof_read_counts counts = {0};
	double start = cpu_seconds();
	struct error *err = pprof_read(in->data, in->size, NULL, &profile, &counts);
	if (err)
		return err;
	report(what, cpu_seconds() - start, (double)counts.samples, (size_t)counts.bytes);
	profile_free(profile);
	return NULL;
}

int main(void)
{
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	profile_add_sample_type(profile, "cpu", "nanoseconds");
	profile->period_type = profile->sample_types.items[1];
	add_locations(profile);
	add_label_sets(profile);
	double start = cpu_seconds();
	add_samples(profile);
	double seconds = cpu_seconds() - start;
	report("store", seconds, N_SAMPLES, profile_memory_bytes(profile));
	printf("%u samples, %u stack nodes, %.1f MB, %.1f B a node\n", profile->samples.n,
	       profile->stacks.n, (double)profile_memory_bytes(profile) * 1e-6,
	       (double)profile_memory_bytes(profile) / profile->stacks.n);

	struct buf out;
	buf_init(&out, (size_t)1 << 30);
	struct error *err = buf_reserve(&out, (size_t)256 << 20);
	if (!err)
		memset(out.data, 1, (size_t)256 << 20); /* page faults are not the encoder's */
	start = cpu_seconds();
	uint64_t n_bytes = pprof_encode_count_bytes(profile);
	report("count bytes", cpu_seconds() - start, profile->samples.n, (size_t)n_bytes);
	if (!err)
		err = encode(profile, 0, "encode raw", &out);
	if (!err)
		err = decode(&out, "decode raw");
	if (!err)
		err = encode(profile, 1, "encode gz 1", &out);
	if (!err)
		err = decode(&out, "decode gz 1");
	if (!err)
		err = encode(profile, 6, "encode gz 6", &out);
	if (err)
		fprintf(stderr, "pprof_codec_bench: %s\n", error_text(err));
	int status = err ? 1 : 0;
	error_free(err);
	buf_fini(&out);
	profile_free(profile);
	return status;
}
