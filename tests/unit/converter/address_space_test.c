/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "converter/address_space.h"

struct fixture {
	struct image_table images;
	struct address_space_pool pool;
	struct address_space *space;
};

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){0};
	image_table_init(&f->images);
	f->space = address_space_new(&f->pool);
}

static void fixture_fini(struct fixture *f)
{
	address_space_unref(f->space, &f->pool);
	assert_int_equal(f->pool.n_maps, 0);
	image_table_fini(&f->images);
}

static uint32_t image_of(struct fixture *f, const char *path)
{
	bool is_new;
	const struct image_key key = {.path = path};
	return image_table_intern(&f->images, &key, &is_new);
}

static void put(struct fixture *f, uint64_t start, uint64_t end, uint64_t page_offset,
		const char *path)
{
	const struct space_map map = {
		.start = start, .end = end, .page_offset = page_offset, .image = image_of(f, path)};
	address_space_insert(&f->space, &f->pool, &f->images, &map, false);
}

static void put_synthetic(struct fixture *f, uint64_t start, uint64_t end, uint64_t page_offset,
			  const char *path)
{
	const struct space_map map = {
		.start = start, .end = end, .page_offset = page_offset, .image = image_of(f, path)};
	address_space_insert(&f->space, &f->pool, &f->images, &map, true);
}

static const char *path_at(const struct fixture *f, uint64_t vaddr)
{
	const struct space_map *map = address_space_find(f->space, vaddr);
	return map ? image_table_get(&f->images, map->image)->path : "-";
}

static uint64_t offset_at(const struct fixture *f, uint64_t vaddr)
{
	const struct space_map *map = address_space_find(f->space, vaddr);
	return map ? vaddr - map->start + map->page_offset : UINT64_MAX;
}

static void check_order(const struct address_space *space)
{
	for (uint32_t i = 0; i < space->n; i++) {
		assert_true(space->maps[i].start < space->maps[i].end);
		if (i)
			assert_true(space->maps[i - 1].end <= space->maps[i].start);
	}
}

static void address_space_finds_what_covers_an_address(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	assert_null(address_space_find(f.space, 0x1000));
	put(&f, 0x1000, 0x3000, 0x10000, "/bin/a");
	put(&f, 0x5000, 0x6000, 0, "/bin/b");
	assert_string_equal(path_at(&f, 0xfff), "-");
	assert_string_equal(path_at(&f, 0x1000), "/bin/a");
	assert_string_equal(path_at(&f, 0x2fff), "/bin/a");
	assert_string_equal(path_at(&f, 0x3000), "-");
	assert_string_equal(path_at(&f, 0x5000), "/bin/b");
	assert_string_equal(path_at(&f, 0x6000), "-");
	assert_int_equal(offset_at(&f, 0x2fff), 0x11fff);
	fixture_fini(&f);
}

static void address_space_cuts_only_the_overlapped_bytes(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	put(&f, 0x10000, 0x16000, 0x1000, "/bin/app");
	put(&f, 0x13000, 0x14000, 0x4000, "/lib/other.so"); /* the middle */
	assert_int_equal(f.space->n, 3);
	assert_string_equal(path_at(&f, 0x12fff), "/bin/app");
	assert_string_equal(path_at(&f, 0x13000), "/lib/other.so");
	assert_string_equal(path_at(&f, 0x14000), "/bin/app");
	assert_int_equal(offset_at(&f, 0x14000), 0x5000);
	assert_int_equal(offset_at(&f, 0x15fff), 0x6fff);
	put(&f, 0xf000, 0x11000, 0, "/lib/left.so");
	assert_string_equal(path_at(&f, 0x10fff), "/lib/left.so");
	assert_int_equal(offset_at(&f, 0x11000), 0x2000);
	put(&f, 0x15000, 0x17000, 0, "/lib/right.so");
	assert_int_equal(offset_at(&f, 0x14fff), 0x5fff);
	assert_int_equal(offset_at(&f, 0x15000), 0);
	put(&f, 0, 0x100000, 0, "/lib/all.so");
	assert_int_equal(f.space->n, 1);
	fixture_fini(&f);
}

/* FR-04: dlopen, dlclose, dlopen of another library at the same base. */
static void address_space_keeps_libraries_at_one_address_apart_by_time(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	uint64_t generation = 0;
	for (int i = 0; i < 6; i++) {
		const char *path = i % 2 ? "/lib/b.so" : "/lib/a.so";
		put(&f, 0x7f0000, 0x7f5000, 0x1000, path);
		assert_string_equal(path_at(&f, 0x7f1234), path);
		assert_true(f.space->generation != generation);
		generation = f.space->generation;
		assert_int_equal(f.space->n, 1);
	}
	fixture_fini(&f);
}

static void address_space_insert_of_what_is_there_changes_nothing(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	put(&f, 0x1000, 0x5000, 0x1000, "/bin/a");
	uint64_t generation = f.space->generation;
	put(&f, 0x1000, 0x5000, 0x1000, "/bin/a");
	put(&f, 0x2000, 0x3000, 0x2000, "/bin/a"); /* a piece of it, at the offset it has */
	put(&f, 0x3000, 0x3000, 0, "/bin/b");	   /* nothing at all */
	assert_int_equal(f.space->generation, generation);
	assert_int_equal(f.space->n, 1);
	put(&f, 0x2000, 0x3000, 0x9000, "/bin/a"); /* another offset */
	assert_true(f.space->generation != generation);
	assert_int_equal(offset_at(&f, 0x2000), 0x9000);
	fixture_fini(&f);
}

static void address_space_is_copied_when_a_sharer_changes_it(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	put(&f, 0x1000, 0x2000, 0, "/bin/a");
	struct address_space *parent = address_space_ref(f.space);
	assert_ptr_equal(parent, f.space);
	uint64_t generation = parent->generation;
	put(&f, 0x1000, 0x2000, 0, "/bin/a"); /* no change, no copy */
	assert_ptr_equal(parent, f.space);
	put(&f, 0x1800, 0x3000, 0, "/bin/b");
	assert_ptr_not_equal(parent, f.space);
	assert_int_equal(parent->n, 1);
	assert_int_equal(parent->n_refs, 1);
	assert_int_equal(parent->generation, generation);
	assert_int_equal(f.pool.n_maps, 3);
	assert_string_equal(path_at(&f, 0x1000), "/bin/a");
	assert_string_equal(path_at(&f, 0x1900), "/bin/b");
	address_space_unref(parent, &f.pool);
	fixture_fini(&f);
}

static void address_space_evicts_the_oldest_beyond_its_bound(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	uint64_t n = ADDRESS_SPACE_MAX_MAPS * 2 + 100;
	for (uint64_t i = 0; i < n; i++) {
		put(&f, i * 0x2000, i * 0x2000 + 0x1000, 0, "/lib/x.so");
		assert_true(f.space->n <= ADDRESS_SPACE_MAX_MAPS);
	}
	assert_int_equal(f.pool.n_maps, f.space->n);
	assert_string_equal(path_at(&f, 0), "-");
	/* Three quarters of the newest are always there. */
	for (uint64_t i = n - ADDRESS_SPACE_MAX_MAPS / 4 * 3; i < n; i++)
		assert_string_equal(path_at(&f, i * 0x2000), "/lib/x.so");
	check_order(f.space);
	fixture_fini(&f);
}

/* All pieces of one old mapping are of one age; a bound must hold against them too. */
static void address_space_stays_bounded_when_one_mapping_is_cut_to_pieces(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	put(&f, 0, 1ull << 40, 0, "/lib/huge.so");
	for (uint64_t i = 0; i < ADDRESS_SPACE_MAX_MAPS * 2; i++) {
		put(&f, 0x1000 + i * 0x2000, 0x2000 + i * 0x2000, 0, "/lib/hole.so");
		assert_true(f.space->n <= ADDRESS_SPACE_MAX_MAPS + 2);
	}
	check_order(f.space);
	assert_int_equal(f.pool.n_maps, f.space->n);
	fixture_fini(&f);
}

static void address_space_stitches_huge_pages_over_the_middle_of_a_file(void **state)
{
	(void)state;
	static const char *const kinds[] = {"//anon", "/memfd:huge (deleted)",
					    "/anon_hugepage (deleted)",
					    "/dev/hugepages/libhugetlbfs.tmp"};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct fixture f;
		fixture_init(&f);
		put(&f, 0x400000, 0xe00000, 0, "/bin/app");
		put(&f, 0x600000, 0xc00000, 0x600000, kinds[i]);
		assert_string_equal(path_at(&f, 0x700000), "/bin/app");
		assert_int_equal(offset_at(&f, 0x700000), 0x300000);
		assert_int_equal(offset_at(&f, 0xc00000), 0x800000);
		fixture_fini(&f);
	}
}

static void address_space_stitches_whichever_piece_comes_last(void **state)
{
	(void)state;
	static const struct {
		uint64_t start, end, offset;
		const char *path;
	} pieces[3] = {
		{0x400000, 0x600000, 0, "/bin/app"},
		{0x600000, 0xc00000, 0x600000, "//anon"},
		{0xc00000, 0xe00000, 0x800000, "/bin/app"},
	};
	static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
					 {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
	for (int o = 0; o < 6; o++) {
		struct fixture f;
		fixture_init(&f);
		for (int i = 0; i < 3; i++) {
			int p = orders[o][i];
			put(&f, pieces[p].start, pieces[p].end, pieces[p].offset, pieces[p].path);
		}
		assert_string_equal(path_at(&f, 0x700000), "/bin/app");
		assert_int_equal(offset_at(&f, 0x700000), 0x300000);
		fixture_fini(&f);
	}
}

static void address_space_does_not_stitch_what_it_cannot_prove(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	/* JIT code between two files, between two offsets that do not fit, and with a gap. */
	put(&f, 0x10000, 0x20000, 0, "/bin/a");
	put(&f, 0x20000, 0x30000, 0, "//anon");
	put(&f, 0x30000, 0x40000, 0x20000, "/bin/b");
	assert_string_equal(path_at(&f, 0x25000), "//anon");
	put(&f, 0x30000, 0x40000, 0x10000, "/bin/a");
	assert_string_equal(path_at(&f, 0x25000), "//anon");
	put(&f, 0x31000, 0x40000, 0x21000, "/bin/a");
	put(&f, 0x30000, 0x31000, 0x99000, "/bin/c");
	assert_string_equal(path_at(&f, 0x25000), "//anon");
	/* A file in the middle is that file. */
	put(&f, 0x50000, 0x60000, 0, "/bin/a");
	put(&f, 0x60000, 0x70000, 0, "/lib/x.so");
	put(&f, 0x70000, 0x80000, 0x20000, "/bin/a");
	assert_string_equal(path_at(&f, 0x65000), "/lib/x.so");
	fixture_fini(&f);
}

/* FR-54: code that perf inject --jit put there, and the runtime's own mapping of the area later. */
static void address_space_keeps_injected_code_under_anonymous_memory(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	put(&f, 0x10000, 0x11000, 0, "/tmp/jitted-77-1.so");
	put(&f, 0x12000, 0x13000, 0, "/lib/gone.so");
	put(&f, 0xf000, 0x20000, 0, "//anon");
	assert_string_equal(path_at(&f, 0xf800), "//anon");
	assert_string_equal(path_at(&f, 0x10800), "/tmp/jitted-77-1.so");
	assert_string_equal(path_at(&f, 0x12800), "//anon");
	put(&f, 0x10000, 0x11000, 0, "/tmp/jitted-77-2.so");
	assert_string_equal(path_at(&f, 0x10800), "/tmp/jitted-77-2.so");
	put(&f, 0x10000, 0x11000, 0, "/lib/new.so");
	assert_string_equal(path_at(&f, 0x10800), "/lib/new.so");
	check_order(f.space);
	assert_int_equal(f.pool.n_maps, f.space->n);
	fixture_fini(&f);
}

static void address_space_synthetic_mapping_fills_gaps_only(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	put(&f, 0x2000, 0x3000, 0, "/bin/real");
	put(&f, 0x5000, 0x6000, 0, "/bin/real");
	put_synthetic(&f, 0x1000, 0x8000, 0x1000, "/bin/proc");
	assert_int_equal(f.space->n, 5);
	assert_string_equal(path_at(&f, 0x1000), "/bin/proc");
	assert_string_equal(path_at(&f, 0x2000), "/bin/real");
	assert_string_equal(path_at(&f, 0x3000), "/bin/proc");
	assert_int_equal(offset_at(&f, 0x3000), 0x3000);
	assert_int_equal(offset_at(&f, 0x6000), 0x6000);
	put_synthetic(&f, 0x2000, 0x6000, 0, "/bin/late");
	assert_string_equal(path_at(&f, 0x4000), "/bin/proc");
	put(&f, 0x4000, 0x4800, 0, "/bin/real");
	assert_string_equal(path_at(&f, 0x4000), "/bin/real");
	check_order(f.space);
	fixture_fini(&f);
}

static void address_space_reaches_the_last_page(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	put(&f, 0xffffffffff600000, 0xffffffffff601000, 0, "[vsyscall]");
	put(&f, UINT64_MAX - 10, UINT64_MAX, 0, "/lib/top.so");
	put_synthetic(&f, 0, UINT64_MAX, 0, "/lib/all.so");
	assert_string_equal(path_at(&f, 0xffffffffff600fff), "[vsyscall]");
	assert_string_equal(path_at(&f, UINT64_MAX - 1), "/lib/top.so");
	assert_string_equal(path_at(&f, UINT64_MAX), "-");
	assert_string_equal(path_at(&f, 0), "/lib/all.so");
	check_order(f.space);
	fixture_fini(&f);
}

/* --- against a model: one entry a byte --- */

enum { MODEL_BYTES = 256, MODEL_FILES = 5, MODEL_STEPS = 400 };

struct model {
	int file[MODEL_BYTES]; /* -1 = nothing */
	uint64_t offset[MODEL_BYTES];
};

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void model_put(struct model *model, uint64_t start, uint64_t end, uint64_t offset, int file,
		      bool only_gaps)
{
	for (uint64_t i = start; i < end; i++) {
		if (only_gaps && model->file[i] >= 0)
			continue;
		model->file[i] = file;
		model->offset[i] = offset + (i - start);
	}
}

static void check_model(const struct fixture *f, const struct model *model,
			const char paths[MODEL_FILES][16])
{
	check_order(f->space);
	assert_int_equal(f->pool.n_maps, f->space->n);
	for (uint64_t i = 0; i < MODEL_BYTES; i++) {
		if (model->file[i] < 0) {
			assert_null(address_space_find(f->space, i));
			continue;
		}
		assert_string_equal(path_at(f, i), paths[model->file[i]]);
		assert_int_equal(offset_at(f, i), model->offset[i]);
	}
}

static void address_space_agrees_with_a_map_of_bytes(void **state)
{
	(void)state;
	static const char paths[MODEL_FILES][16] = {"/bin/a", "/bin/b", "/bin/c", "/bin/d",
						    "[special]"};
	uint64_t seed = 0xadd7e55;
	for (int run = 0; run < 100; run++) {
		struct fixture f;
		struct model model;
		fixture_init(&f);
		memset(model.file, -1, sizeof(model.file));
		for (int step = 0; step < MODEL_STEPS; step++) {
			uint64_t start = next_random(&seed) % MODEL_BYTES;
			uint64_t end = start + next_random(&seed) % (MODEL_BYTES - start + 1);
			if (next_random(&seed) % 4)
				end = start + (end - start) % 16;
			/* Few offsets, so that pieces often fit their neighbours. */
			uint64_t offset = start + next_random(&seed) % 2 * 1000;
			int file = (int)(next_random(&seed) % MODEL_FILES);
			bool only_gaps = next_random(&seed) % 3 == 0;
			if (only_gaps)
				put_synthetic(&f, start, end, offset, paths[file]);
			else
				put(&f, start, end, offset, paths[file]);
			model_put(&model, start, end, offset, file, only_gaps);
			if (step % 10 == 0)
				check_model(&f, &model, paths);
		}
		check_model(&f, &model, paths);
		fixture_fini(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_space_finds_what_covers_an_address),
		cmocka_unit_test(address_space_cuts_only_the_overlapped_bytes),
		cmocka_unit_test(address_space_keeps_libraries_at_one_address_apart_by_time),
		cmocka_unit_test(address_space_insert_of_what_is_there_changes_nothing),
		cmocka_unit_test(address_space_is_copied_when_a_sharer_changes_it),
		cmocka_unit_test(address_space_evicts_the_oldest_beyond_its_bound),
		cmocka_unit_test(address_space_stays_bounded_when_one_mapping_is_cut_to_pieces),
		cmocka_unit_test(address_space_stitches_huge_pages_over_the_middle_of_a_file),
		cmocka_unit_test(address_space_stitches_whichever_piece_comes_last),
		cmocka_unit_test(address_space_does_not_stitch_what_it_cannot_prove),
		cmocka_unit_test(address_space_keeps_injected_code_under_anonymous_memory),
		cmocka_unit_test(address_space_synthetic_mapping_fills_gaps_only),
		cmocka_unit_test(address_space_reaches_the_last_page),
		cmocka_unit_test(address_space_agrees_with_a_map_of_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
