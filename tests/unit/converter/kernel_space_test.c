/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "converter/kernel_space.h"

struct fixture {
	struct image_table images;
	struct address_space_pool pool;
	struct kernel_space kernel;
};

static void fixture_init(struct fixture *f)
{
	*f = (struct fixture){0};
	image_table_init(&f->images);
	kernel_space_init(&f->kernel, &f->images, &f->pool);
}

static void fixture_fini(struct fixture *f)
{
	kernel_space_fini(&f->kernel);
	image_table_fini(&f->images);
}

static const char *path_at(const struct fixture *f, uint64_t vaddr)
{
	return image_table_get(&f->images, kernel_space_find(&f->kernel, vaddr))->path;
}

static void kernel_space_takes_the_recorded_text(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	assert_false(f.kernel.has_text);
	kernel_space_map(&f.kernel, 0xffffffff9c000000, 0xe00000, 0xffffffff9c000000,
			 "[kernel.kallsyms]_text");
	assert_true(f.kernel.has_text);
	assert_int_equal(f.kernel.text_start, 0xffffffff9c000000);
	assert_int_equal(f.kernel.text_end, 0xffffffff9ce00000);
	assert_int_equal(f.kernel.text_page_offset, 0xffffffff9c000000);
	assert_string_equal(f.kernel.relocation_symbol, "_text");
	/* A second one (another machine's, or a kexec) replaces it. */
	kernel_space_map(&f.kernel, 0xffffffff81000000, UINT64_MAX, 0, "[kernel.kallsyms]");
	assert_null(f.kernel.relocation_symbol);
	assert_int_equal(f.kernel.text_end, UINT64_MAX);
	fixture_fini(&f);
}

static void kernel_space_takes_the_build_id_of_the_kernel_alone(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	const struct build_id id = build_id_make("12345678901234567890", 20);
	const struct build_id none = {0};
	kernel_space_identify(&f.kernel, "[nf_tables]", &id);
	kernel_space_identify(&f.kernel, "[guest.kernel.kallsyms]_text", &id);
	assert_false(build_id_is_set(&f.kernel.build_id));
	kernel_space_identify(&f.kernel, "[kernel.kallsyms]_text", &id);
	kernel_space_identify(&f.kernel, "[kernel.kallsyms]_text", &none);
	assert_true(build_id_equal(&f.kernel.build_id, &id));
	fixture_fini(&f);
}

static void kernel_space_holds_modules_and_leaves_the_guest_out(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	kernel_space_map(&f.kernel, 0xffffffffc0000000, 0x4000, 0, "[nf_tables]");
	kernel_space_map(&f.kernel, 0xffffffffc0010000, 0x4000, 0, "/lib/modules/6.1/ext4.ko.xz");
	kernel_space_map(&f.kernel, 0xffffffff81000000, 0x4000, 0, "[guest.kernel.kallsyms]_text");
	assert_false(f.kernel.has_text);
	assert_string_equal(path_at(&f, 0xffffffffc0000010), "[kernel.kallsyms]");
	assert_int_equal(kernel_space_find(&f.kernel, 0xffffffffc0010000), IMAGE_INDEX_KERNEL);
	assert_int_equal(kernel_space_find(&f.kernel, 0xffffffff81000000), IMAGE_INDEX_KERNEL);
	fixture_fini(&f);
}

/* FR-47 */
static void kernel_space_bpf_programs_come_and_go_with_time(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	uint64_t at = 0xffffffffc0200000;
	assert_string_equal(path_at(&f, at), "[kernel.kallsyms]");
	kernel_space_ksymbol(&f.kernel, at, 0x100, "bpf_prog_one", false);
	uint64_t generation = kernel_space_generation(&f.kernel);
	assert_string_equal(path_at(&f, at), "bpf_prog_one");
	assert_string_equal(path_at(&f, at + 0xff), "bpf_prog_one");
	assert_string_equal(path_at(&f, at + 0x100), "[kernel.kallsyms]");
	kernel_space_ksymbol(&f.kernel, at, 0x100, "bpf_prog_one", true);
	assert_true(kernel_space_generation(&f.kernel) != generation);
	assert_string_equal(path_at(&f, at), "[kernel.kallsyms]");
	kernel_space_ksymbol(&f.kernel, at - 0x10, 0x80, "bpf_prog_two", false);
	assert_string_equal(path_at(&f, at), "bpf_prog_two");
	fixture_fini(&f);
}

/* An agent lives for months: the same program loaded again is not another one. */
static void kernel_space_bpf_programs_loaded_again_take_no_room(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	kernel_space_ksymbol(&f.kernel, 0xffffffffc0000000, 0x100, "bpf_prog_one", false);
	uint32_t n = f.images.n;
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t at = 0xffffffffc0000000 + i % 7 * 0x1000;
		kernel_space_ksymbol(&f.kernel, at, 0x100, "bpf_prog_one", false);
		assert_string_equal(path_at(&f, at), "bpf_prog_one");
		kernel_space_ksymbol(&f.kernel, at, 0x100, "bpf_prog_one", true);
	}
	assert_int_equal(f.images.n, n);
	/* A file of that name is another thing. */
	bool is_new;
	const struct image_key key = {.path = "bpf_prog_one"};
	uint32_t file = image_table_intern(&f.images, &key, &is_new);
	assert_true(is_new);
	assert_int_equal(image_table_get(&f.images, file)->kind, IMAGE_FILE);
	kernel_space_ksymbol(&f.kernel, 0xffffffffc0000000, 0x100, "bpf_prog_one", false);
	assert_int_equal(f.images.n, n + 1);
	assert_int_equal(
		image_table_get(&f.images, kernel_space_find(&f.kernel, 0xffffffffc0000000))->kind,
		IMAGE_KSYMBOL);
	fixture_fini(&f);
}

static void kernel_space_ranges_may_reach_the_end_of_the_address_space(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	kernel_space_ksymbol(&f.kernel, UINT64_MAX - 0x10, 0x100, "bpf_prog_top", false);
	kernel_space_ksymbol(&f.kernel, 0x1000, 0, "bpf_prog_empty", false);
	assert_string_equal(path_at(&f, UINT64_MAX - 1), "bpf_prog_top");
	assert_string_equal(path_at(&f, 0x1000), "[kernel.kallsyms]");
	fixture_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_space_takes_the_recorded_text),
		cmocka_unit_test(kernel_space_takes_the_build_id_of_the_kernel_alone),
		cmocka_unit_test(kernel_space_holds_modules_and_leaves_the_guest_out),
		cmocka_unit_test(kernel_space_bpf_programs_come_and_go_with_time),
		cmocka_unit_test(kernel_space_bpf_programs_loaded_again_take_no_room),
		cmocka_unit_test(kernel_space_ranges_may_reach_the_end_of_the_address_space),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
