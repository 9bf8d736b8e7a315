/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/arena.h"

static void arena_gives_aligned_memory_that_stays(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 0);
	static uint8_t *objects[20000];
	for (size_t i = 0; i < 20000; i++) {
		objects[i] = arena_alloc(&arena, i % 97);
		assert_int_equal((uintptr_t)objects[i] % 16, 0);
		memset(objects[i], (int)(i & 255), i % 97);
	}
	for (size_t i = 0; i < 20000; i++)
		for (size_t j = 0; j < i % 97; j++)
			assert_int_equal(objects[i][j], i & 255);
	arena_fini(&arena);
	assert_null(arena.chunks);
	assert_int_equal(arena.used_bytes, 0);
}

static void arena_large_object_does_not_waste_the_open_chunk(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 0);
	uint8_t *first = arena_alloc(&arena, 16);
	uint8_t *large = arena_alloc(&arena, 4 << 20);
	memset(large, 1, 4 << 20);
	uint8_t *second = arena_alloc(&arena, 16);
	assert_ptr_equal(second, first + 16);
	assert_true(arena.used_bytes >= 4 << 20);
	arena_fini(&arena);
}

static void arena_first_object_may_be_large(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 0);
	memset(arena_alloc(&arena, 3 << 20), 1, 3 << 20);
	memset(arena_alloc(&arena, 100), 1, 100);
	arena_fini(&arena);
}

static void arena_is_full_at_its_cap_and_still_gives(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 1 << 20);
	assert_false(arena_is_full(&arena));
	for (int i = 0; i < 1000; i++)
		arena_alloc(&arena, 2000);
	assert_true(arena_is_full(&arena));
	assert_non_null(arena_alloc(&arena, 100));
	arena_fini(&arena);
	arena_init(&arena, 0);
	arena_alloc(&arena, 8 << 20);
	assert_false(arena_is_full(&arena));
	arena_fini(&arena);
}

static void arena_zero_bytes_give_distinct_objects(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 0);
	assert_ptr_not_equal(arena_alloc(&arena, 0), arena_alloc(&arena, 0));
	arena_fini(&arena);
	arena_fini(&arena);
}

static void arena_copy_string_adds_a_zero(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 0);
	const char *copy = arena_copy_string(&arena, "comm-longer", 4);
	assert_string_equal(copy, "comm");
	assert_string_equal(arena_copy_string(&arena, NULL, 0), "");
	arena_fini(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena_gives_aligned_memory_that_stays),
		cmocka_unit_test(arena_large_object_does_not_waste_the_open_chunk),
		cmocka_unit_test(arena_first_object_may_be_large),
		cmocka_unit_test(arena_is_full_at_its_cap_and_still_gives),
		cmocka_unit_test(arena_zero_bytes_give_distinct_objects),
		cmocka_unit_test(arena_copy_string_adds_a_zero),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
