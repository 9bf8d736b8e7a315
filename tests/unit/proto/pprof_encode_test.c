/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "proto/gunzip.h"
#include "proto/pprof_encode.h"
#include "proto/pprof_read.h"
#include "tests/unit/proto/made_up_profile.h"

static void encode(const struct profile *profile, int gzip_level, struct buf *out)
{
	struct pprof_encode_options options = {.gzip_level = gzip_level};
	buf_init(out, 1 << 28);
	assert_null(pprof_encode_buf(profile, &options, out));
}

static void pprof_encode_gives_the_same_bytes_each_time(void **state)
{
	(void)state;
	for (int level = 0; level <= 9; level += 3) {
		struct profile *a = made_up_profile();
		struct profile *b = made_up_profile();
		struct buf first, second;
		encode(a, level, &first);
		encode(b, level, &second);
		assert_int_equal(first.size, second.size);
		assert_memory_equal(first.data, second.data, first.size);
		if (level) {
			static const uint8_t no_mtime[4] = {0};
			assert_memory_equal(first.data + 4, no_mtime, 4);
		} else {
			assert_int_equal(first.size, pprof_encode_count_bytes(a));
		}
		buf_fini(&first);
		buf_fini(&second);
		profile_free(a);
		profile_free(b);
	}
}

static void pprof_encode_gives_the_same_bytes_after_reading_back(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	struct buf raw, packed, again;
	encode(profile, 0, &raw);
	encode(profile, 6, &packed);
	struct profile *back = NULL;
	assert_null(pprof_read(packed.data, packed.size, NULL, &back, NULL));
	encode(back, 0, &again);
	assert_int_equal(raw.size, again.size);
	assert_memory_equal(raw.data, again.data, raw.size);
	buf_fini(&raw);
	buf_fini(&packed);
	buf_fini(&again);
	profile_free(back);
	profile_free(profile);
}

/* Field numbers at top level, each once, in the order of their first appearance. */
static void pprof_encode_keeps_its_field_order(void **state)
{
	(void)state;
	static const uint8_t expected[] = {1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13, 14, 15};
	struct profile *profile = made_up_profile();
	struct buf out;
	encode(profile, 0, &out);
	size_t n = 0;
	for (size_t i = 0; i < out.size;) {
		uint8_t tag = out.data[i++];
		if (!n || expected[n - 1] != tag >> 3)
			assert_int_equal(expected[n++], tag >> 3);
		uint64_t value = 0;
		unsigned shift = 0;
		do {
			value |= (uint64_t)(out.data[i] & 0x7f) << shift;
			shift += 7;
		} while (out.data[i++] & 0x80);
		if ((tag & 7) == 2)
			i += value;
	}
	assert_int_equal(n, sizeof(expected));
	buf_fini(&out);
	profile_free(profile);
}

static void pprof_encode_takes_stacks_and_strings_larger_than_its_block(void **state)
{
	(void)state;
	enum { DEPTH = 200000, TEXT = 300000 };
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	char *long_text = mem_alloc(TEXT + 1);
	memset(long_text, 'x', TEXT);
	long_text[TEXT] = 0;
	uint32_t stack = 0;
	for (uint32_t i = 0; i < DEPTH; i++) {
		(void)profile_add_location(profile, PROFILE_NONE, i);
		stack = profile_stack_push(profile, stack, i);
	}
	profile_add_comment(profile, long_text);
	const int64_t one = 1;
	(void)profile_add_sample(profile, stack, 0, &one);
	struct buf out, again;
	encode(profile, 0, &out);
	struct profile *back = NULL;
	struct pprof_read_counts counts;
	assert_null(pprof_read(out.data, out.size, NULL, &back, &counts));
	assert_int_equal(counts.location_refs, DEPTH);
	encode(back, 0, &again);
	assert_int_equal(out.size, again.size);
	assert_memory_equal(out.data, again.data, out.size);
	assert_string_equal(profile_text(back, back->comments.items[0]), long_text);
	buf_fini(&out);
	buf_fini(&again);
	mem_free(long_text);
	profile_free(back);
	profile_free(profile);
}

static void pprof_encode_leaves_out_labels_without_a_value(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	struct profile_label labels[] = {made_up_text_label(profile, "cgroup", ""),
					 made_up_number_label(profile, "cpu", 0),
					 made_up_number_label(profile, "nice", -5)};
	const int64_t one = 1;
	(void)profile_add_sample(profile, 0, profile_label_set(profile, labels, 3), &one);
	struct buf out;
	encode(profile, 0, &out);
	struct profile *back = NULL;
	struct pprof_read_counts counts;
	assert_null(pprof_read(out.data, out.size, NULL, &back, &counts));
	assert_int_equal(counts.labels, 2);
	struct profile_label_set set = back->label_sets.items[back->samples.items[0].label_set];
	assert_int_equal(set.n, 2);
	assert_string_equal(profile_text(back, profile_label_at(back, set.first).unit), "cpu");
	assert_int_equal(profile_label_at(back, set.first + 1).num, -5);
	buf_fini(&out);
	profile_free(back);
	profile_free(profile);
}

/* Larger than a member of gzip's: several are one stream. Stacks longer than what is walked once.
 */
static void pprof_encode_writes_large_profiles_in_members(void **state)
{
	(void)state;
	enum { N_LOCATIONS = 1000, DEPTH = 3000, N_SAMPLES = 1500 };
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	for (uint32_t i = 0; i < N_LOCATIONS; i++)
		(void)profile_add_location(profile, PROFILE_NONE, i);
	uint32_t stack = 0;
	for (uint32_t i = 0; i < DEPTH; i++)
		stack = profile_stack_push(profile, stack, i * 7 % N_LOCATIONS);
	const int64_t one = 1;
	for (uint32_t i = 0; i < N_SAMPLES; i++) {
		uint32_t leaf = profile_stack_push(profile, stack, i % N_LOCATIONS);
		struct profile_label label = {
			.key = profile_string(profile, "pid"), .num = i, .is_number = true};
		(void)profile_add_sample(profile, leaf, profile_label_set(profile, &label, 1),
					 &one);
	}
	struct buf plain, packed, unpacked;
	encode(profile, 0, &plain);
	encode(profile, 6, &packed);
	buf_init(&unpacked, SIZE_MAX);
	assert_true(plain.size > 8 << 20);
	assert_null(gunzip_all(packed.data, packed.size, &unpacked));
	assert_int_equal(unpacked.size, plain.size);
	assert_memory_equal(unpacked.data, plain.data, plain.size);
	struct profile *back = NULL;
	struct pprof_read_counts counts;
	assert_null(pprof_read(packed.data, packed.size, NULL, &back, &counts));
	assert_int_equal(back->samples.n, N_SAMPLES);
	profile_free(back);
	buf_fini(&unpacked);
	buf_fini(&packed);
	buf_fini(&plain);
	profile_free(profile);
}

static struct error *fail_after(void *context, const void *bytes, size_t n)
{
	(void)bytes;
	(void)n;
	int *left = context;
	return (*left)-- > 0 ? NULL : error_new(ERROR_IO, "full");
}

static void pprof_encode_hands_on_the_error_of_its_sink(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	for (int level = 0; level < 2; level++) {
		struct pprof_encode_options options = {.gzip_level = level};
		int left = 0;
		struct error *err = pprof_encode(profile, &options, fail_after, &left);
		assert_non_null(err);
		assert_string_equal(error_text(err), "full");
		error_free(err);
	}
	profile_free(profile);
}

/* The lines of `go tool pprof ARGS file`; NULL when there is no go. */
static FILE *start_go_pprof(const char *args, const char *path)
{
	const char *go = access("/usr/local/go/bin/go", X_OK) == 0 ? "/usr/local/go/bin/go"
			 : access("/usr/bin/go", X_OK) == 0	   ? "/usr/bin/go"
								   : NULL;
	if (!go)
		return NULL;
	char *command = mem_format("PPROF_BINARY_PATH=/nonexistent %s tool pprof %s %s 2>&1", go,
				   args, path);
	FILE *pipe = popen(command, "r");
	mem_free(command);
	return pipe;
}

static void go_tool_pprof_reads_what_is_written(void **state)
{
	(void)state;
	for (int level = 0; level < 2; level++) {
		struct profile *profile = made_up_profile();
		struct pprof_encode_options options = {.gzip_level = level};
		char path[] = "/tmp/perfpipe_encode_XXXXXX";
		int fd = mkstemp(path);
		assert_true(fd >= 0);
		assert_null(pprof_encode_fd(profile, &options, fd));
		close(fd);
		profile_free(profile);
		FILE *pipe = start_go_pprof("-raw -symbolize=none", path);
		if (!pipe) {
			unlink(path);
			print_message("no go to read the profile with\n");
			skip();
		}
		static char text[1 << 16];
		size_t n = fread(text, 1, sizeof(text) - 1, pipe);
		text[n] = 0;
		int status = pclose(pipe);
		unlink(path);
		if (status)
			fail_msg("go tool pprof: %s", text);
		static const char *const wanted[] = {
			"PeriodType: cpu nanoseconds", "Period: 10000000", "Duration: 2",
			"samples/count cpu/nanoseconds[dflt]", "comm:[other]", "pid:[200]",
			/* Frames are left to the referee: some releases of go number them anew. */
			"3   30000000: ", "2   20000000: ",
			/* A number 0 survives through its unit. */
			"pid:[0 pid]", "memcpy string.h:5", "lost 3 events", "abcdef0123"};
		for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
			if (!strstr(text, wanted[i]))
				fail_msg("'%s' is not in: %s", wanted[i], text);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pprof_encode_gives_the_same_bytes_each_time),
		cmocka_unit_test(pprof_encode_gives_the_same_bytes_after_reading_back),
		cmocka_unit_test(pprof_encode_keeps_its_field_order),
		cmocka_unit_test(pprof_encode_takes_stacks_and_strings_larger_than_its_block),
		cmocka_unit_test(pprof_encode_leaves_out_labels_without_a_value),
		cmocka_unit_test(pprof_encode_writes_large_profiles_in_members),
		cmocka_unit_test(pprof_encode_hands_on_the_error_of_its_sink),
		cmocka_unit_test(go_tool_pprof_reads_what_is_written),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
