/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "converter/stack.h"

/*
 * User space: /bin/app at 0x400000 (offset 0x1000), //anon at 0x700000. Kernel from
 * 0xffffffff81000000, one BPF program at 0xffffffffc0000000.
 */
struct fixture {
	struct image_table images;
	struct address_space_pool pool;
	struct address_space *space;
	struct kernel_space kernel;
	struct location_table locations;
	struct stack_builder builder;
	struct profile *profile;
	bool is_swapped;
	uint64_t words[20000];
};

enum { USER = PERF_RECORD_MISC_USER, KERNEL = PERF_RECORD_MISC_KERNEL };

static void map(struct fixture *f, uint64_t start, uint64_t end, uint64_t offset, const char *path)
{
	bool is_new;
	const struct image_key key = {.path = path};
	const struct space_map m = {.start = start,
				    .end = end,
				    .page_offset = offset,
				    .image = image_table_intern(&f->images, &key, &is_new)};
	address_space_insert(&f->space, &f->pool, &f->images, &m, false);
}

static struct fixture *fixture_new(void)
{
	struct fixture *f = mem_zalloc(1, sizeof(*f));
	image_table_init(&f->images);
	f->space = address_space_new(&f->pool);
	map(f, 0x400000, 0x500000, 0x1000, "/bin/app");
	map(f, 0x700000, 0x800000, 0x700000, "//anon");
	kernel_space_init(&f->kernel, &f->images, &f->pool);
	kernel_space_map(&f->kernel, 0xffffffff81000000, 0x1000000, 0, "[kernel.kallsyms]_text");
	kernel_space_ksymbol(&f->kernel, 0xffffffffc0000000, 0x1000, "bpf_prog_x", false);
	location_table_init(&f->locations);
	f->profile = profile_new();
	profile_add_sample_type(f->profile, "samples", "count");
	stack_builder_init(&f->builder, &f->images, &f->locations, &f->kernel);
	stack_builder_begin(&f->builder, f->profile);
	return f;
}

static void fixture_free(struct fixture *f)
{
	stack_builder_fini(&f->builder);
	location_table_fini(&f->locations);
	kernel_space_fini(&f->kernel);
	address_space_unref(f->space, &f->pool);
	image_table_fini(&f->images);
	profile_free(f->profile);
	mem_free(f);
}

static const uint8_t *swapped(struct fixture *f, const uint64_t *words, size_t n, uint64_t *room)
{
	for (size_t i = 0; i < n; i++)
		room[i] = f->is_swapped ? __builtin_bswap64(words[i]) : words[i];
	return (const uint8_t *)room;
}

static uint32_t build(struct fixture *f, uint16_t misc, const uint64_t *chain, size_t n)
{
	const struct sample sample = {
		.ip = 0x400123,
		.chain = swapped(f, chain, n, f->words),
		.n_chain = n,
	};
	const struct stack_input input = {
		.sample = &sample, .space = f->space, .misc = misc, .is_swapped = f->is_swapped};
	return stack_build(&f->builder, &input);
}

struct expected {
	const char *path;
	uint64_t address;
	bool is_return;
};

/* Leaf first. */
static void check(const struct fixture *f, uint32_t stack, const struct expected *want, size_t n)
{
	size_t i = 0;
	for (; stack; stack = f->profile->stacks.items[stack].parent, i++) {
		assert_true(i < n);
		uint32_t index = f->profile->stacks.items[stack].location;
		const struct location location = location_table_get(&f->locations, index);
		assert_string_equal(image_table_get(&f->images, location.image)->path,
				    want[i].path);
		assert_int_equal(location.address, want[i].address);
		assert_int_equal(location.is_return, want[i].is_return);
	}
	assert_int_equal(i, n);
}

#define CHECK_CHAIN(f, misc, chain, ...)                                                           \
	do {                                                                                       \
		const struct expected want_[] = {__VA_ARGS__};                                     \
		check(f, build(f, misc, chain, ARRAY_LEN(chain)), want_, ARRAY_LEN(want_));        \
	} while (0)

/* FR-41 */
static void stack_markers_switch_between_kernel_and_user(void **state)
{
	(void)state;
	static const uint64_t chain[] = {
		PERF_CONTEXT_KERNEL, 0xffffffff81000100, 0xffffffff81000200,
		PERF_CONTEXT_USER,   0x400100,		 0x400200,
	};
	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		struct fixture *f = fixture_new();
		f->is_swapped = is_swapped;
		CHECK_CHAIN(f, KERNEL, chain, {"[kernel.kallsyms]", 0xffffffff81000100, false},
			    {"[kernel.kallsyms]", 0xffffffff810001ff, true},
			    {"/bin/app", 0x1100, false}, {"/bin/app", 0x11ff, true});
		/* Once more, from the cache of frames. */
		CHECK_CHAIN(f, KERNEL, chain, {"[kernel.kallsyms]", 0xffffffff81000100, false},
			    {"[kernel.kallsyms]", 0xffffffff810001ff, true},
			    {"/bin/app", 0x1100, false}, {"/bin/app", 0x11ff, true});
		assert_int_equal(f->locations.n, 4);
		fixture_free(f);
	}
}

static void stack_words_like_markers_in_the_user_part_change_nothing(void **state)
{
	(void)state;
	struct fixture *f = fixture_new();
	static const uint64_t chain[] = {
		PERF_CONTEXT_KERNEL, 0xffffffff81000100, PERF_CONTEXT_USER, 0x400100,
		PERF_CONTEXT_KERNEL, 0x400200,		 PERF_CONTEXT_HV,   0x400300,
	};
	CHECK_CHAIN(f, KERNEL, chain, {"[kernel.kallsyms]", 0xffffffff81000100, false},
		    {"/bin/app", 0x1100, false}, {"/bin/app", 0x11ff, true},
		    {"/bin/app", 0x12ff, true});
	fixture_free(f);
}

static void stack_markers_know_guests_and_hypervisors(void **state)
{
	(void)state;
	struct fixture *f = fixture_new();
	static const uint64_t chain[] = {
		PERF_CONTEXT_HV,	   0x10, PERF_CONTEXT_GUEST,	  0x20,
		PERF_CONTEXT_GUEST_KERNEL, 0x30, PERF_CONTEXT_GUEST_USER, 0x40,
		(uint64_t)-1000,	   0x50, /* a marker that nobody knows changes nothing */
	};
	CHECK_CHAIN(f, KERNEL, chain, {"[hypervisor]", 0x10, false},
		    {"[guest.kernel]", 0x20, false}, {"[guest.kernel]", 0x30, false},
		    {"[guest.user]", 0x40, false}, {"[guest.user]", 0x50, false});
	fixture_free(f);
}

/* FR-38 */
static void stack_callers_are_the_call_and_the_leaf_is_itself(void **state)
{
	(void)state;
	struct fixture *f = fixture_new();
	/* The caller's return address is the first byte behind the mapping: still a call in it. */
	static const uint64_t chain[] = {PERF_CONTEXT_USER, 0x400000, 0x500000, 0x400000};
	CHECK_CHAIN(f, USER, chain, {"/bin/app", 0x1000, false}, {"/bin/app", 0x100fff, true},
		    {"[broken stack]", 0, false});
	/* The same address as leaf and as caller is two places. */
	static const uint64_t twice[] = {PERF_CONTEXT_USER, 0x400500, 0x400500, 0x400501};
	CHECK_CHAIN(f, USER, twice, {"/bin/app", 0x1500, false}, {"/bin/app", 0x14ff, true},
		    {"/bin/app", 0x1500, true});
	fixture_free(f);
}

static void stack_without_markers_goes_by_the_cpu_mode(void **state)
{
	(void)state;
	struct fixture *f = fixture_new();
	static const uint64_t user[] = {0x400100, 0x400200};
	static const uint64_t kernel[] = {0xffffffff81000100, 0xffffffff81000200};
	CHECK_CHAIN(f, USER, user, {"/bin/app", 0x1100, false}, {"/bin/app", 0x11ff, true});
	CHECK_CHAIN(f, KERNEL, kernel, {"[kernel.kallsyms]", 0xffffffff81000100, false},
		    {"[kernel.kallsyms]", 0xffffffff810001ff, true});
	CHECK_CHAIN(f, PERF_RECORD_MISC_HYPERVISOR, user, {"[hypervisor]", 0x400100, false},
		    {"[hypervisor]", 0x4001ff, false});
	fixture_free(f);
}

static void stack_without_a_chain_is_the_sampled_address(void **state)
{
	(void)state;
	struct fixture *f = fixture_new();
	static const struct expected want[] = {{"/bin/app", 0x1123, false}};
	check(f, build(f, USER, NULL, 0), want, 1);
	static const uint64_t markers[] = {PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER};
	check(f, build(f, USER, markers, 2), want, 1);
	fixture_free(f);
}

/* FR-36 */
static void stack_run_of_callers_in_no_mapping_is_one_mark(void **state)
{
	(void)state;
	struct fixture *f = fixture_new();
	static const uint64_t chain[] = {
		PERF_CONTEXT_USER, 0x400100, 0x10, 0x20, 0x30, 0x400200, 0x40, 0,
	};
	CHECK_CHAIN(f, USER, chain, {"/bin/app", 0x1100, false}, {"[broken stack]", 0, false},
		    {"/bin/app", 0x11ff, true}, {"[broken stack]", 0, false});
	/* A leaf in no mapping says where it was. */
	static const uint64_t leaf[] = {PERF_CONTEXT_USER, 0x99, 0x400200};
	CHECK_CHAIN(f, USER, leaf, {"[unmapped]", 0x99, false}, {"/bin/app", 0x11ff, true});
	fixture_free(f);
}

/* FR-09 */
static void stack_anonymous_code_keeps_its_run_time_address(void **state)
{
	(void)state;
	struct fixture *f = fixture_new();
	static const uint64_t chain[] = {PERF_CONTEXT_USER, 0x700010, 0x700020};
	CHECK_CHAIN(f, USER, chain, {"//anon", 0x700010, false}, {"//anon", 0x70001f, true});
	fixture_free(f);
}

static void stack_finds_bpf_programs_and_forgets_them_when_unloaded(void **state)
{
	(void)state;
	struct fixture *f = fixture_new();
	static const uint64_t chain[] = {PERF_CONTEXT_KERNEL, 0xffffffffc0000010};
	CHECK_CHAIN(f, KERNEL, chain, {"bpf_prog_x", 0xffffffffc0000010, false});
	kernel_space_ksymbol(&f->kernel, 0xffffffffc0000000, 0x1000, "bpf_prog_x", true);
	CHECK_CHAIN(f, KERNEL, chain, {"[kernel.kallsyms]", 0xffffffffc0000010, false});
	fixture_free(f);
}

static void stack_sees_a_new_mapping_at_an_old_address(void **state)
{
	(void)state;
	struct fixture *f = fixture_new();
	static const uint64_t chain[] = {PERF_CONTEXT_USER, 0x400100, 0x400200};
	CHECK_CHAIN(f, USER, chain, {"/bin/app", 0x1100, false}, {"/bin/app", 0x11ff, true});
	map(f, 0x400000, 0x401000, 0, "/lib/b.so");
	CHECK_CHAIN(f, USER, chain, {"/lib/b.so", 0x100, false}, {"/lib/b.so", 0x1ff, true});
	fixture_free(f);
}

/* FR-39: what the kernel wrote is kept whole, up to what a record can hold. */
static void stack_deep_chains_keep_leaf_and_root(void **state)
{
	(void)state;
	struct fixture *f = fixture_new();
	static uint64_t chain[8185];
	chain[0] = PERF_CONTEXT_USER;
	for (size_t i = 1; i < ARRAY_LEN(chain); i++)
		chain[i] = 0x400000 + i * 4;
	uint32_t stack = build(f, USER, chain, ARRAY_LEN(chain));
	uint32_t n = 0, root = 0;
	for (uint32_t node = stack; node; node = f->profile->stacks.items[node].parent, n++)
		root = node;
	assert_int_equal(n, ARRAY_LEN(chain) - 1);
	uint32_t leaf = f->profile->stacks.items[stack].location;
	assert_int_equal(f->locations.items[leaf].address, 0x1004);
	uint32_t last = f->profile->stacks.items[root].location;
	assert_int_equal(f->locations.items[last].address, 0x1000 + 8184 * 4 - 1);
	fixture_free(f);
}

static uint32_t build_lbr(struct fixture *f, const uint64_t *chain, size_t n,
			  const uint64_t *branches, size_t n_branches)
{
	struct sample sample = {.ip = 0x400123, .n_chain = n, .n_branches = n_branches};
	sample.chain = swapped(f, chain, n, f->words);
	sample.branches = swapped(f, branches, n_branches * 3, f->words + n);
	const struct stack_input input = {.sample = &sample,
					  .space = f->space,
					  .misc = KERNEL,
					  .is_swapped = f->is_swapped,
					  .has_lbr_stack = true};
	return stack_build(&f->builder, &input);
}

static void stack_lbr_takes_the_user_part_when_it_reaches_further(void **state)
{
	(void)state;
	static const uint64_t chain[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000100, PERF_CONTEXT_USER,
					 0x400100, 0x400200};
	static const uint64_t branches[] = {0x400300, 0x400100, 0,	  0x400400, 0x400300,
					    0,	      0x400500, 0x400400, 0};
	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		struct fixture *f = fixture_new();
		f->is_swapped = is_swapped;
		static const struct expected deeper[] = {
			{"[kernel.kallsyms]", 0xffffffff81000100, false},
			{"/bin/app", 0x1100, false},
			{"/bin/app", 0x1300, false},
			{"/bin/app", 0x1400, false},
			{"/bin/app", 0x1500, false},
		};
		check(f, build_lbr(f, chain, ARRAY_LEN(chain), branches, 3), deeper, 5);
		/* One branch reaches no further than the chain's two frames. */
		static const struct expected plain[] = {
			{"[kernel.kallsyms]", 0xffffffff81000100, false},
			{"/bin/app", 0x1100, false},
			{"/bin/app", 0x11ff, true},
		};
		check(f, build_lbr(f, chain, ARRAY_LEN(chain), branches, 1), plain, 3);
		/* Kernel only: the branches tell of an earlier moment. */
		check(f, build_lbr(f, chain, 2, branches, 3), plain, 1);
		fixture_free(f);
	}
}

static void stack_deferred_part_goes_behind_the_kernels(void **state)
{
	(void)state;
	static const uint64_t chain[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000100,
					 PERF_CONTEXT_USER_DEFERRED, 0x400200 /* a cookie */};
	static const uint64_t later[] = {PERF_CONTEXT_USER, 0x400100, 0x400200};
	for (int mode = 0; mode < 8; mode++) {
		struct fixture *f = fixture_new();
		f->is_swapped = mode & 1;
		struct sample sample = {.ip = 0xffffffff81000100, .n_chain = ARRAY_LEN(chain)};
		sample.chain = swapped(f, chain, ARRAY_LEN(chain), f->words);
		uint64_t room[3];
		size_t skip = mode & 2 ? 1 : 0; /* with or without the marker */
		const struct stack_input input = {
			.sample = &sample,
			.space = f->space,
			.misc = KERNEL,
			.is_swapped = f->is_swapped,
			.deferred = swapped(f, later + skip, 3 - skip, room),
			.n_deferred = 3 - skip,
			.has_lbr_stack = mode & 4, /* without branches it is nothing */
		};
		static const struct expected want[] = {
			{"[kernel.kallsyms]", 0xffffffff81000100, false},
			{"/bin/app", 0x1100, false},
			{"/bin/app", 0x11ff, true},
		};
		check(f, stack_build(&f->builder, &input), want, 3);
		fixture_free(f);
	}
}

static void stack_deferred_part_that_never_came_leaves_the_kernels(void **state)
{
	(void)state;
	static const uint64_t chain[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000100,
					 PERF_CONTEXT_USER_DEFERRED, 0x400200};
	struct fixture *f = fixture_new();
	CHECK_CHAIN(f, KERNEL, chain, {"[kernel.kallsyms]", 0xffffffff81000100, false});
	/* Cut behind the marker. */
	static const struct expected want[] = {{"[kernel.kallsyms]", 0xffffffff81000100, false}};
	check(f, build(f, KERNEL, chain, 3), want, 1);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stack_markers_switch_between_kernel_and_user),
		cmocka_unit_test(stack_words_like_markers_in_the_user_part_change_nothing),
		cmocka_unit_test(stack_markers_know_guests_and_hypervisors),
		cmocka_unit_test(stack_callers_are_the_call_and_the_leaf_is_itself),
		cmocka_unit_test(stack_without_markers_goes_by_the_cpu_mode),
		cmocka_unit_test(stack_without_a_chain_is_the_sampled_address),
		cmocka_unit_test(stack_run_of_callers_in_no_mapping_is_one_mark),
		cmocka_unit_test(stack_anonymous_code_keeps_its_run_time_address),
		cmocka_unit_test(stack_finds_bpf_programs_and_forgets_them_when_unloaded),
		cmocka_unit_test(stack_sees_a_new_mapping_at_an_old_address),
		cmocka_unit_test(stack_deep_chains_keep_leaf_and_root),
		cmocka_unit_test(stack_lbr_takes_the_user_part_when_it_reaches_further),
		cmocka_unit_test(stack_deferred_part_goes_behind_the_kernels),
		cmocka_unit_test(stack_deferred_part_that_never_came_leaves_the_kernels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
