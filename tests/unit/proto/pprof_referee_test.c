/* SPDX-License-Identifier: Apache-2.0 */
/* protobuf-c's generated code as the second opinion on both hand-written codecs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <proto/profile.pb-c.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "proto/pprof_encode.h"
#include "proto/pprof_read.h"
#include "tests/unit/proto/made_up_profile.h"

static Perftools__Profiles__Profile *encode_and_unpack(const struct profile *profile)
{
	struct buf out;
	buf_init(&out, 1 << 24);
	struct pprof_encode_options options = {.gzip_level = 0};
	assert_null(pprof_encode_buf(profile, &options, &out));
	Perftools__Profiles__Profile *message =
		perftools__profiles__profile__unpack(NULL, out.size, out.data);
	assert_non_null(message);
	/* The referee's own bytes have the same size: nothing is written twice or in vain. */
	assert_int_equal(perftools__profiles__profile__get_packed_size(message), out.size);
	buf_fini(&out);
	return message;
}

static const char *text(const Perftools__Profiles__Profile *message, int64_t string)
{
	assert_in_range(string, 0, message->n_string_table - 1);
	return message->string_table[string];
}

static void pprof_encode_writes_what_protobuf_c_reads(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	Perftools__Profiles__Profile *m = encode_and_unpack(profile);
	assert_int_equal(m->n_sample_type, 2);
	assert_string_equal(text(m, m->sample_type[0]->type), "samples");
	assert_string_equal(text(m, m->sample_type[1]->unit), "nanoseconds");
	assert_int_equal(m->n_sample, 5);
	const Perftools__Profiles__Sample *twice = m->sample[1];
	assert_int_equal(twice->n_location_id, 4);
	assert_int_equal(twice->location_id[0], 3); /* leaf first */
	assert_int_equal(twice->location_id[3], 1);
	assert_int_equal(twice->n_value, 2);
	assert_int_equal(twice->value[0], 2);
	assert_int_equal(twice->value[1], 20000000);
	assert_int_equal(twice->n_label, 2);
	assert_string_equal(text(m, twice->label[0]->key), "comm");
	assert_string_equal(text(m, twice->label[0]->str), "app");
	assert_string_equal(text(m, twice->label[1]->num_unit), "pid"); /* number 0 */
	assert_int_equal(m->sample[2]->label[1]->num, 100);
	assert_int_equal(m->sample[2]->label[1]->num_unit, 0);
	assert_int_equal(m->sample[4]->n_location_id, 0);
	assert_int_equal(m->n_mapping, 2);
	assert_int_equal(m->mapping[0]->id, 1);
	assert_int_equal(m->mapping[0]->memory_start, 0x400000);
	assert_int_equal(m->mapping[0]->file_offset, 0x1000);
	assert_string_equal(text(m, m->mapping[0]->build_id), "abcdef0123");
	assert_true(m->mapping[0]->has_functions && m->mapping[0]->has_inline_frames);
	assert_false(m->mapping[1]->has_functions);
	assert_int_equal(m->n_location, 5);
	for (size_t i = 0; i < m->n_location; i++)
		assert_int_equal(m->location[i]->id, i + 1);
	assert_int_equal(m->location[3]->n_line, 2);
	uint64_t inner = m->location[3]->line[0]->function_id;
	assert_string_equal(text(m, m->function[inner - 1]->name), "memcpy");
	assert_int_equal(m->location[3]->line[1]->line, 40);
	assert_int_equal(m->location[3]->line[1]->column, 7);
	assert_int_equal(m->location[4]->address, 0x7f0000002345);
	assert_int_equal(m->location[4]->mapping_id, 2);
	assert_true(m->location[4]->is_folded);
	assert_int_equal(m->function[0]->start_line, 9);
	assert_int_equal(m->time_nanos, 1700000000000000000);
	assert_int_equal(m->duration_nanos, 2000000000);
	assert_string_equal(text(m, m->period_type->type), "cpu");
	assert_int_equal(m->period, 10000000);
	assert_int_equal(m->n_comment, 2);
	assert_string_equal(text(m, m->comment[1]), "second comment");
	assert_string_equal(text(m, m->default_sample_type), "cpu");
	assert_string_equal(text(m, m->doc_url), "https://example.org/doc");
	perftools__profiles__profile__free_unpacked(m, NULL);
	profile_free(profile);
}

static void pprof_read_reads_what_protobuf_c_writes(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	Perftools__Profiles__Profile *m = encode_and_unpack(profile);
	/* Sparse, unordered ids. */
	for (size_t i = 0; i < m->n_location; i++)
		m->location[i]->id = 1000000000000 - i * 7;
	for (size_t i = 0; i < m->n_sample; i++) {
		for (size_t frame = 0; frame < m->sample[i]->n_location_id; frame++) {
			uint64_t *id = &m->sample[i]->location_id[frame];
			*id = m->location[*id - 1]->id;
		}
	}
	m->sample[0]->value[1] = -5;
	size_t size = perftools__profiles__profile__get_packed_size(m);
	uint8_t *bytes = mem_alloc(size);
	assert_int_equal(perftools__profiles__profile__pack(m, bytes), size);
	struct profile *again = NULL;
	struct pprof_read_counts counts;
	assert_null(pprof_read(bytes, size, NULL, &again, &counts));
	assert_int_equal(counts.samples, 5);
	assert_int_equal(counts.location_refs, 3 + 4 + 3 + 2);
	assert_int_equal(counts.labels, 8);
	assert_int_equal(again->samples.n, 5);
	assert_int_equal(profile_values(again, 0)[1], -5);
	profile_values(again, 0)[1] = profile_values(profile, 0)[1];
	/* Both give the same message once ids are dense again. */
	struct buf first, second;
	buf_init(&first, 1 << 24);
	buf_init(&second, 1 << 24);
	struct pprof_encode_options options = {.gzip_level = 0};
	assert_null(pprof_encode_buf(profile, &options, &first));
	assert_null(pprof_encode_buf(again, &options, &second));
	assert_int_equal(first.size, second.size);
	assert_memory_equal(first.data, second.data, first.size);
	buf_fini(&first);
	buf_fini(&second);
	mem_free(bytes);
	perftools__profiles__profile__free_unpacked(m, NULL);
	profile_free(again);
	profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pprof_encode_writes_what_protobuf_c_reads),
		cmocka_unit_test(pprof_read_reads_what_protobuf_c_writes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
