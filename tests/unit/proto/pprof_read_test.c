/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "proto/pprof_encode.h"
#include "proto/pprof_read.h"
#include "proto/protobuf_wire.h"
#include "tests/unit/proto/made_up_profile.h"

/* Message bytes by hand. */
struct message {
	uint8_t bytes[4096];
	size_t size;
};

static void add_varint(struct message *m, uint64_t value)
{
	m->size = (size_t)(protobuf_wire_put(m->bytes + m->size, value) - m->bytes);
}

static void add_number(struct message *m, unsigned field, uint64_t value)
{
	add_varint(m, field << 3);
	add_varint(m, value);
}

static void add_bytes(struct message *m, unsigned field, const void *bytes, size_t n)
{
	add_varint(m, field << 3 | 2);
	add_varint(m, n);
	memcpy(m->bytes + m->size, bytes, n);
	m->size += n;
}

static void add_message(struct message *m, unsigned field, const struct message *sub)
{
	add_bytes(m, field, sub->bytes, sub->size);
}

/* samples/count, mapping 1, function 9 "main", location 7 at it, sample of 5 there. */
static struct message small_profile(void)
{
	struct message m = {.size = 0};
	static const char *const strings[] = {"", "samples", "count", "main", "key"};
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		add_bytes(&m, 6, strings[i], strlen(strings[i]));
	struct message type = {.size = 0};
	add_number(&type, 1, 1);
	add_number(&type, 2, 2);
	add_message(&m, 1, &type);
	struct message mapping = {.size = 0};
	add_number(&mapping, 1, 1);
	add_message(&m, 3, &mapping);
	struct message function = {.size = 0};
	add_number(&function, 1, 9);
	add_number(&function, 2, 3);
	add_message(&m, 5, &function);
	struct message line = {.size = 0};
	add_number(&line, 1, 9);
	struct message location = {.size = 0};
	add_number(&location, 1, 7);
	add_number(&location, 2, 1);
	add_message(&location, 4, &line);
	add_message(&m, 4, &location);
	struct message sample = {.size = 0};
	add_number(&sample, 1, 7); /* not packed */
	add_number(&sample, 2, 5);
	add_message(&m, 2, &sample);
	return m;
}

static struct profile *read_good(const void *bytes, size_t size)
{
	struct profile *profile = NULL;
	struct error *err = pprof_read(bytes, size, NULL, &profile, NULL);
	if (err)
		fail_msg("%s", error_text(err));
	return profile;
}

static void expect_error(const void *bytes, size_t size, int number, const char *text)
{
	struct profile *profile = NULL;
	struct error *err = pprof_read(bytes, size, NULL, &profile, NULL);
	assert_non_null(err);
	assert_null(profile);
	if (!strstr(error_text(err), text))
		fail_msg("'%s' is not in '%s'", text, error_text(err));
	assert_int_equal(error_get_number(err), number);
	error_free(err);
}

static void pprof_read_takes_unpacked_numbers_and_sparse_ids(void **state)
{
	(void)state;
	struct message m = small_profile();
	add_number(&m, 99, 1); /* unknown fields of each kind */
	add_bytes(&m, 98, "x", 1);
	add_varint(&m, 97 << 3 | 5);
	m.size += 4;
	add_varint(&m, 96 << 3 | 1);
	m.size += 8;
	struct profile *profile = read_good(m.bytes, m.size);
	assert_int_equal(profile->samples.n, 1);
	assert_int_equal(profile_values(profile, 0)[0], 5);
	uint32_t location = profile->stacks.items[profile->samples.items[0].stack].location;
	assert_int_equal(location, 0);
	const struct profile_line *line = &profile->lines.items[0];
	assert_string_equal(profile_text(profile, profile->functions.items[line->function].name),
			    "main");
	profile_free(profile);
}

static void pprof_read_takes_a_dangling_mapping_for_none(void **state)
{
	(void)state;
	struct message m = small_profile();
	struct message location = {.size = 0};
	add_number(&location, 1, 8);
	add_number(&location, 2, 55);
	add_message(&m, 4, &location);
	struct profile *profile = read_good(m.bytes, m.size);
	assert_int_equal(profile->locations.items[1].mapping, PROFILE_NONE);
	profile_free(profile);
}

static void pprof_read_keeps_text_where_a_label_has_both(void **state)
{
	(void)state;
	struct message m = small_profile();
	struct message both = {.size = 0}, nothing = {.size = 0}, sample = {.size = 0};
	add_number(&both, 1, 4);
	add_number(&both, 2, 3);
	add_number(&both, 3, 77);
	add_number(&nothing, 1, 4);
	add_number(&sample, 2, 1);
	add_message(&sample, 3, &both);
	add_message(&sample, 3, &nothing);
	add_message(&m, 2, &sample);
	struct profile *profile = read_good(m.bytes, m.size);
	assert_int_equal(profile->samples.n, 2);
	struct profile_label_set set =
		profile->label_sets.items[profile->samples.items[1].label_set];
	assert_int_equal(set.n, 1);
	assert_string_equal(profile_text(profile, profile_label_at(profile, set.first).str),
			    "main");
	assert_int_equal(profile_label_at(profile, set.first).num, 0);
	profile_free(profile);
}

static void pprof_read_refuses_what_pprof_refuses(void **state)
{
	(void)state;
	struct message good = small_profile();
	struct message sub = {.size = 0};

	struct message m = good;
	add_message(&m, 3, &sub);
	expect_error(m.bytes, m.size, 611, "mapping with id 0");
	m = good;
	add_message(&m, 5, &sub);
	expect_error(m.bytes, m.size, 611, "function with id 0");
	m = good;
	add_message(&m, 4, &sub);
	expect_error(m.bytes, m.size, 611, "location with id 0");
	m = good;
	add_message(&m, 2, &sub);
	expect_error(m.bytes, m.size, 611, "more or fewer values");

	add_number(&sub, 1, 1);
	m = good;
	add_message(&m, 3, &sub);
	expect_error(m.bytes, m.size, 611, "second mapping with the same id");
	m = good;
	add_number(&m, 14, 5);
	expect_error(m.bytes, m.size, 611, "string index past");
	m = good;
	add_number(&m, 14, UINT64_MAX); /* -1 */
	expect_error(m.bytes, m.size, 611, "string index past");
	m = good;
	add_bytes(&m, 12, "abc", 3);
	expect_error(m.bytes, m.size, 611, "wrong wire type");
	m = good;
	add_varint(&m, 90 << 3 | 3);
	expect_error(m.bytes, m.size, 611, "group");
	m = good;
	add_number(&m, 9, 1);
	add_number(&m, 9, 1);
	expect_error(m.bytes, m.size, 611, "two profiles");
	m = good;
	m.bytes[m.size++] = 6 << 3 | 2;
	m.bytes[m.size++] = 100;
	expect_error(m.bytes, m.size, 611, "runs past");
	m = good;
	m.bytes[m.size++] = 12 << 3;
	memset(m.bytes + m.size, 0xff, 10);
	m.size += 10;
	expect_error(m.bytes, m.size, 611, "cut short");

	m = good;
	struct message sample = {.size = 0};
	add_number(&sample, 1, 3);
	add_number(&sample, 2, 1);
	add_message(&m, 2, &sample);
	expect_error(m.bytes, m.size, 611, "no known location");
	m = good;
	struct message line = {.size = 0}, location = {.size = 0};
	add_number(&line, 1, 4);
	add_number(&location, 1, 8);
	add_message(&location, 4, &line);
	add_message(&m, 4, &location);
	expect_error(m.bytes, m.size, 611, "line of no known function");

	m.size = 0;
	add_bytes(&m, 6, "", 0);
	add_message(&m, 2, &sample);
	expect_error(m.bytes, m.size, 611, "without sample types");
}

static void pprof_read_says_what_a_foreign_file_is(void **state)
{
	(void)state;
	expect_error("", 0, 604, "empty");
	expect_error("PERFILE2xxxxxxxxxxx", 19, 610, "perf.data");
	expect_error("heap profile: 1: 2 [3: 4] @ heap/1\n", 35, 610, "legacy");
	expect_error("--- threadz 1 ---\n", 18, 610, "legacy");
	expect_error("hello there\n", 12, 610, "text");
	expect_error("\x7f"
		     "ELF\2\1\1",
		     7, 610, "ELF");
	const uint64_t words[] = {0, 3, 0, 10000, 0, 1, 1, 0x1234, 0, 1, 0};
	expect_error(words, sizeof(words), 610, "legacy binary");
	struct message m = {.size = 0};
	add_number(&m, 12, 5);
	expect_error(m.bytes, m.size, 610, "no strings");
	add_bytes(&m, 6, "x", 1);
	expect_error(m.bytes, m.size, 610, "string 0");
}

static size_t gzip(const void *bytes, size_t n, uint8_t *out, size_t out_size)
{
	z_stream z = {.next_in = (uint8_t *)bytes,
		      .avail_in = (uInt)n,
		      .next_out = out,
		      .avail_out = (uInt)out_size};
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return out_size - z.avail_out;
}

static void pprof_read_joins_gzip_members(void **state)
{
	(void)state;
	struct message m = small_profile();
	uint8_t packed[4096];
	size_t n = gzip(m.bytes, 20, packed, sizeof(packed));
	n += gzip(m.bytes + 20, m.size - 20, packed + n, sizeof(packed) - n);
	struct profile *profile = read_good(packed, n);
	assert_int_equal(profile->samples.n, 1);
	profile_free(profile);
	for (size_t cut = 2; cut < n; cut++) {
		struct error *err = pprof_read(packed, cut, NULL, &profile, NULL);
		assert_non_null(err);
		error_free(err);
	}
	packed[n - 1] ^= 1;
	expect_error(packed, n, 605, "gzip");
}

static void pprof_read_stops_at_what_unfolds_without_end(void **state)
{
	(void)state;
	enum { ZEROS = 64 << 20, PACKED = 1 << 20 };
	uint8_t *zeros = mem_zalloc(ZEROS, 1);
	uint8_t *packed = mem_alloc(PACKED);
	size_t n = gzip(zeros, ZEROS, packed, PACKED);
	expect_error(packed, n, 605, "unpacks to more than");
	struct pprof_read_options options = {.max_bytes = 1000};
	struct profile *profile = NULL;
	struct error *err = pprof_read(packed, n, &options, &profile, NULL);
	assert_int_equal(error_get_code(err), ERROR_LIMIT);
	error_free(err);
	err = pprof_read(zeros, 1001, &options, &profile, NULL);
	assert_int_equal(error_get_code(err), ERROR_LIMIT);
	error_free(err);
	mem_free(zeros);
	mem_free(packed);
}

/* One byte a frame, none shared: the store would take twenty times the file. */
static void pprof_read_keeps_memory_in_proportion_to_the_file(void **state)
{
	(void)state;
	enum { N_SAMPLES = 12000, DEPTH = 1000 };
	struct message head = small_profile();
	for (unsigned i = 10; i < 120; i++) {
		struct message location = {.size = 0};
		add_number(&location, 1, i);
		add_message(&head, 4, &location);
	}
	struct buf file;
	buf_init(&file, 1 << 28);
	assert_null(buf_append(&file, head.bytes, head.size));
	uint64_t random = 1;
	for (int i = 0; i < N_SAMPLES; i++) {
		uint8_t frames[DEPTH];
		for (int frame = 0; frame < DEPTH; frame++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			frames[frame] = (uint8_t)(10 + (random >> 40) % 110);
		}
		struct message sample = {.size = 0}, outer = {.size = 0};
		add_bytes(&sample, 1, frames, DEPTH);
		add_number(&sample, 2, 1);
		add_message(&outer, 2, &sample);
		assert_null(buf_append(&file, outer.bytes, outer.size));
	}
#ifndef __SANITIZE_ADDRESS__
	size_t before = mem_resident_bytes();
#endif
	struct profile *profile = NULL;
	struct error *err = pprof_read(file.data, file.size, NULL, &profile, NULL);
	assert_int_equal(error_get_code(err), ERROR_LIMIT);
	assert_int_equal(error_get_number(err), 611);
#ifndef __SANITIZE_ADDRESS__ /* which keeps freed memory for a while */
	assert_true(mem_resident_bytes() < before + 4 * file.size + (64 << 20));
#endif
	error_free(err);
	buf_fini(&file);
}

static void pprof_read_survives_every_cut_and_flip(void **state)
{
	(void)state;
	struct profile *made = made_up_profile();
	struct pprof_encode_options options = {.gzip_level = 0};
	struct buf out;
	buf_init(&out, 1 << 20);
	assert_null(pprof_encode_buf(made, &options, &out));
	for (size_t i = 0; i < out.size; i++) {
		struct profile *profile = NULL;
		error_free(pprof_read(out.data, i, NULL, &profile, NULL));
		profile_free(profile);
		for (unsigned bit = 0; bit < 8; bit++) {
			out.data[i] ^= (uint8_t)(1u << bit);
			profile = NULL;
			error_free(pprof_read(out.data, out.size, NULL, &profile, NULL));
			profile_free(profile);
			out.data[i] ^= (uint8_t)(1u << bit);
		}
	}
	buf_fini(&out);
	profile_free(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pprof_read_takes_unpacked_numbers_and_sparse_ids),
		cmocka_unit_test(pprof_read_takes_a_dangling_mapping_for_none),
		cmocka_unit_test(pprof_read_keeps_text_where_a_label_has_both),
		cmocka_unit_test(pprof_read_refuses_what_pprof_refuses),
		cmocka_unit_test(pprof_read_says_what_a_foreign_file_is),
		cmocka_unit_test(pprof_read_joins_gzip_members),
		cmocka_unit_test(pprof_read_stops_at_what_unfolds_without_end),
		cmocka_unit_test(pprof_read_keeps_memory_in_proportion_to_the_file),
		cmocka_unit_test(pprof_read_survives_every_cut_and_flip),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
