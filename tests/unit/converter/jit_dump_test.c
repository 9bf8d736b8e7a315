/* SPDX-License-Identifier: Apache-2.0 */
/* Every case in both byte orders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "converter/jit_dump.h"
#include "tests/support/jit_dump_maker.h"

struct fixture {
	struct jit_dump_maker maker;
	struct jit_code_list list;
	struct jit_dump dump;
};

static int begin(void **state, bool is_swapped)
{
	struct fixture *f = mem_zalloc(1, sizeof(*f));
	jit_dump_maker_init(&f->maker, is_swapped);
	jit_code_list_init(&f->list, NULL);
	jit_dump_init(&f->dump, &f->list);
	*state = f;
	return 0;
}

static int setup(void **state)
{
	return begin(state, false);
}

static int setup_swapped(void **state)
{
	return begin(state, true);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	jit_dump_maker_fini(&f->maker);
	jit_dump_fini(&f->dump);
	jit_code_list_fini(&f->list);
	mem_free(f);
	return 0;
}

/* As a file that has n bytes so far, of which step are at hand at a time; where it came to. */
static uint64_t feed(struct fixture *f, uint64_t offset, size_t n, size_t step)
{
	while (offset < n) {
		size_t at_hand = step;
		uint64_t taken = 0;
		while (!taken && at_hand < n - offset + step) {
			/* A copy of exactly that size, for the sanitizer. */
			size_t given = at_hand < n - offset ? at_hand : (size_t)(n - offset);
			uint8_t *bytes = mem_copy(f->maker.data + offset, given);
			taken = jit_dump_read(&f->dump, bytes, given, n - offset);
			mem_free(bytes);
			at_hand += step;
		}
		if (!taken)
			break;
		offset += taken;
	}
	return offset;
}

static uint64_t feed_all(struct fixture *f)
{
	return feed(f, 0, f->maker.size, f->maker.size);
}

static const char *at(struct fixture *f, uint64_t vaddr, uint64_t time_ns)
{
	struct jit_query query = {.vaddr = vaddr, .moment_ns = time_ns};
	jit_code_find(&f->list, &query, 1, 0);
	if (query.code == JIT_CODE_NONE)
		return "-";
	const struct jit_code *code = &f->list.codes[query.code];
	return code->name == JIT_CODE_NONE ? "gone" : jit_code_text(&f->list, code->name);
}

static uint32_t line_at(struct fixture *f, uint64_t vaddr, uint64_t time_ns, const char *file)
{
	struct jit_query query = {.vaddr = vaddr, .moment_ns = time_ns};
	jit_code_find(&f->list, &query, 1, 0);
	assert_int_not_equal(query.code, JIT_CODE_NONE);
	const struct jit_line *line = jit_code_line(&f->list, &f->list.codes[query.code], vaddr);
	if (!line)
		return 0;
	assert_string_equal(jit_code_text(&f->list, line->file), file);
	return line->line;
}

static void jit_dump_code_holds_from_its_load_on(void **state)
{
	struct fixture *f = *state;
	jit_dump_maker_header(&f->maker, 1, 77, 0);
	jit_dump_maker_load(&f->maker, 100, 0x1000, 0x40, 1, "first");
	jit_dump_maker_load(&f->maker, 200, 0x1000, 0x20, 2, "second");
	assert_int_equal(feed_all(f), f->maker.size);
	assert_int_equal(f->dump.state, JIT_DUMP_OK);
	assert_int_equal(f->dump.pid, 77);
	assert_int_equal(f->dump.machine, 62);
	assert_string_equal(at(f, 0x1000, 99), "-");
	assert_string_equal(at(f, 0x1000, 100), "first");
	assert_string_equal(at(f, 0x1010, 200), "second");
	assert_string_equal(at(f, 0x1030, 200), "first");
	assert_int_equal(f->dump.n_skipped, 0);
}

static void jit_dump_move_takes_name_and_lines_along(void **state)
{
	struct fixture *f = *state;
	const struct jit_dump_maker_line lines[] = {{0x1000, 5, "/a.c"}, {0x1010, 6, "/a.c"}};
	jit_dump_maker_header(&f->maker, 1, 77, 0);
	jit_dump_maker_lines(&f->maker, 100, 0x1000, lines, 2);
	jit_dump_maker_load(&f->maker, 100, 0x1000, 0x40, 9, "code");
	jit_dump_maker_move(&f->maker, 200, 0x1000, 0x5000, 0x40, 9);
	jit_dump_maker_move(&f->maker, 300, 0x1, 0x2, 0x40, 8); /* of nothing known */
	assert_int_equal(feed_all(f), f->maker.size);
	assert_string_equal(at(f, 0x1010, 199), "code");
	assert_string_equal(at(f, 0x5010, 199), "-");
	assert_string_equal(at(f, 0x1010, 200), "gone");
	assert_string_equal(at(f, 0x5010, 200), "code");
	assert_int_equal(line_at(f, 0x1010, 150, "/a.c"), 6);
	assert_int_equal(line_at(f, 0x500f, 250, "/a.c"), 5);
	assert_int_equal(f->dump.n_skipped, 1);
}

static void jit_dump_lines_belong_to_the_load_behind_them(void **state)
{
	struct fixture *f = *state;
	const struct jit_dump_maker_line lines[] = {
		{0x1000, 10, "/one.c"}, {0x1008, 20, "\xff"}, {0x1010, 30, "/two.h"}};
	jit_dump_maker_header(&f->maker, 1, 77, 0);
	jit_dump_maker_lines(&f->maker, 100, 0x1000, lines, 3);
	jit_dump_maker_load(&f->maker, 100, 0x1000, 0x40, 1, "with lines");
	jit_dump_maker_load(&f->maker, 100, 0x2000, 0x40, 2, "without");
	jit_dump_maker_lines(&f->maker, 100, 0x9000, lines, 3);
	jit_dump_maker_load(&f->maker, 100, 0x3000, 0x40, 3, "others' lines");
	assert_int_equal(feed_all(f), f->maker.size);
	assert_int_equal(line_at(f, 0x1007, 100, "/one.c"), 10);
	assert_int_equal(line_at(f, 0x1008, 100, "/one.c"), 20);
	assert_int_equal(line_at(f, 0x103f, 100, "/two.h"), 30);
	assert_int_equal(line_at(f, 0x2000, 100, ""), 0);
	assert_int_equal(line_at(f, 0x3000, 100, ""), 0);
}

static void jit_dump_other_records_are_passed_over(void **state)
{
	struct fixture *f = *state;
	jit_dump_maker_header(&f->maker, 1, 77, 0);
	jit_dump_maker_other(&f->maker, 4, 1, 64); /* unwinding information */
	jit_dump_maker_other(&f->maker, 99, 1, 5);
	jit_dump_maker_load(&f->maker, 100, 0x1000, 0x40, 1, "code");
	jit_dump_maker_other(&f->maker, 3, 1, 0); /* close */
	size_t closed = f->maker.size;
	jit_dump_maker_load(&f->maker, 100, 0x2000, 0x40, 1, "too late");
	assert_int_equal(feed_all(f), closed);
	assert_true(f->dump.is_closed);
	assert_string_equal(at(f, 0x1000, 100), "code");
	assert_string_equal(at(f, 0x2000, 100), "-");
	assert_int_equal(f->dump.n_skipped, 0);
}

static void jit_dump_half_record_waits_for_its_rest(void **state)
{
	struct fixture *f = *state;
	jit_dump_maker_header(&f->maker, 1, 77, 0);
	jit_dump_maker_load(&f->maker, 100, 0x1000, 0x40, 1, "code");
	uint64_t done = 0;
	for (size_t n = 1; n <= f->maker.size; n++) {
		done = feed(f, done, n, 7);
		assert_int_equal(f->list.n, n == f->maker.size);
	}
	assert_int_equal(done, f->maker.size);
	assert_string_equal(at(f, 0x1000, 100), "code");
}

static void jit_dump_large_code_is_not_needed_at_hand(void **state)
{
	struct fixture *f = *state;
	jit_dump_maker_header(&f->maker, 1, 77, 0);
	jit_dump_maker_load(&f->maker, 100, 0x100000, 4 << 20, 1, "large");
	jit_dump_maker_load(&f->maker, 100, 0x1000, 1, 2, "small");
	assert_int_equal(feed(f, 0, f->maker.size, 8192), f->maker.size);
	assert_string_equal(at(f, 0x4fffff, 100), "large");
	assert_string_equal(at(f, 0x1000, 100), "small");
}

static void check_refused(struct fixture *f, enum jit_dump_state wanted)
{
	jit_dump_maker_load(&f->maker, 100, 0x1000, 0x40, 1, "code");
	feed_all(f);
	assert_int_equal(f->dump.state, wanted);
	assert_int_equal(f->list.n, 0);
}

static void jit_dump_of_another_version_is_refused(void **state)
{
	struct fixture *f = *state;
	jit_dump_maker_header(&f->maker, 2, 77, 0);
	check_refused(f, JIT_DUMP_VERSION);
}

/* FR-53: a flag that claims the processor's counter. */
static void jit_dump_with_the_processors_clock_is_refused(void **state)
{
	struct fixture *f = *state;
	jit_dump_maker_header(&f->maker, 1, 77, 1);
	check_refused(f, JIT_DUMP_ARCH_CLOCK);
}

static void jit_dump_without_its_magic_is_refused(void **state)
{
	struct fixture *f = *state;
	jit_dump_maker_header(&f->maker, 1, 77, 0);
	f->maker.data[0] ^= 1;
	check_refused(f, JIT_DUMP_FOREIGN);
}

static void jit_dump_is_read_up_to_the_damage(void **state)
{
	struct fixture *f = *state;
	jit_dump_maker_header(&f->maker, 1, 77, 0);
	jit_dump_maker_load(&f->maker, 100, 0x1000, 0x40, 1, "code");
	size_t sound = f->maker.size;
	jit_dump_maker_other(&f->maker, 0, 1, 0);
	memset(f->maker.data + sound + 4, 0, 4); /* its size */
	assert_int_equal(feed_all(f), sound);
	assert_int_equal(f->dump.state, JIT_DUMP_DAMAGED);
	assert_string_equal(at(f, 0x1000, 100), "code");
}

static void jit_dump_record_too_short_for_its_type_is_counted(void **state)
{
	struct fixture *f = *state;
	jit_dump_maker_header(&f->maker, 1, 77, 0);
	for (uint32_t id = 0; id < 3; id++)
		jit_dump_maker_other(&f->maker, id, 1, id == 2 ? 8 : 12);
	jit_dump_maker_load(&f->maker, 100, 0x1000, 0x40, 1, "code");
	assert_int_equal(feed_all(f), f->maker.size);
	assert_int_equal(f->dump.n_skipped, 3);
	assert_string_equal(at(f, 0x1000, 100), "code");
}

#define BOTH(name)                                                                                 \
	cmocka_unit_test_setup_teardown(name, setup, teardown),                                    \
		cmocka_unit_test_setup_teardown(name, setup_swapped, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(jit_dump_code_holds_from_its_load_on),
		BOTH(jit_dump_move_takes_name_and_lines_along),
		BOTH(jit_dump_lines_belong_to_the_load_behind_them),
		BOTH(jit_dump_other_records_are_passed_over),
		BOTH(jit_dump_half_record_waits_for_its_rest),
		BOTH(jit_dump_large_code_is_not_needed_at_hand),
		BOTH(jit_dump_of_another_version_is_refused),
		BOTH(jit_dump_with_the_processors_clock_is_refused),
		BOTH(jit_dump_without_its_magic_is_refused),
		BOTH(jit_dump_is_read_up_to_the_damage),
		BOTH(jit_dump_record_too_short_for_its_type_is_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
