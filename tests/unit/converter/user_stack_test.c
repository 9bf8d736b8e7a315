/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <execinfo.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/mem.h"
#include "converter/user_stack.h"

/* JIT code at 0x700000 in all spaces: followed by its frame pointers, without a table. */
enum { JIT = 0x700000, SP = 0x7000, WORDS = 64, ALL_X86 = 0xff0fff };

struct fixture {
	struct perf_source_info source;
	struct image_table images;
	struct address_space_pool pool;
	struct address_space *space;
	struct symcache *cache;
	struct user_stack stacks;
	struct perf_event_attr attr;
	uint64_t registers[33];
	uint64_t words[WORDS];
	uint64_t chain[16];
	struct sample sample;
};

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

static struct fixture *fixture_new(const char *arch, bool is_swapped, bool may_wait)
{
	/* With a table to be made it starts a process. */
	const struct symcache_config config = {.trust_paths = true,
					       .no_symbols = true,
					       .wants_unwind = may_wait,
					       .no_cache = true};
	struct fixture *f = mem_zalloc(1, sizeof(*f));
	f->source.arch = mem_copy_string(arch);
	f->source.is_swapped = is_swapped;
	f->cache = symcache_new(&config);
	image_table_init(&f->images);
	f->space = address_space_new(&f->pool);
	map(f, JIT, JIT + 0x1000, JIT, "//anon");
	user_stack_init(&f->stacks, &f->source, &f->images, f->cache, may_wait);
	f->attr.sample_regs_user = ALL_X86;
	return f;
}

static void fixture_free(struct fixture *f)
{
	user_stack_fini(&f->stacks);
	address_space_unref(f->space, &f->pool);
	image_table_fini(&f->images);
	symcache_free(f->cache);
	mem_free(f->source.arch);
	mem_free(f);
}

static uint64_t stored(const struct fixture *f, uint64_t value)
{
	return f->source.is_swapped ? __builtin_bswap64(value) : value;
}

/* Bit numbers of perf_regs.h, as they come in an x86-64 sample with ALL_X86. */
enum { X86_BP = 6, X86_SP = 7, X86_IP = 8, X86_R8 = 12, X86_N = 20 };

/* Two JIT frames, the outer of which has a frame pointer of 0; n_chain words of kernel chain. */
static void fill(struct fixture *f, const uint64_t *chain, size_t n_chain)
{
	memset(f->registers, 0, sizeof(f->registers));
	f->registers[X86_BP] = stored(f, SP + 16);
	f->registers[X86_SP] = stored(f, SP);
	f->registers[X86_IP] = stored(f, JIT + 8);
	/* The program's memory is in the machine's own order, whatever the file is in. */
	f->words[2] = 0;
	f->words[3] = JIT + 0x20;
	for (size_t i = 0; i < n_chain; i++)
		f->chain[i] = stored(f, chain[i]);
	f->sample = (struct sample){
		.chain = (const uint8_t *)f->chain,
		.n_chain = n_chain,
		.user_regs_abi = 2,
		.user_regs = (const uint8_t *)f->registers,
		.stack = (const uint8_t *)f->words,
		.stack_bytes = sizeof(f->words),
	};
}

static void unwind(struct fixture *f, uint16_t misc)
{
	assert_true(user_stack_has_room(&f->stacks, &f->sample));
	user_stack_unwind(&f->stacks, &f->attr, f->space, misc, &f->sample);
}

static void expect_chain(const struct fixture *f, const uint64_t *chain, size_t n)
{
	assert_int_equal(f->sample.n_chain, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(sample_u64(f->sample.chain, i, f->source.is_swapped), chain[i]);
}

#define EXPECT_CHAIN(f, ...)                                                                       \
	expect_chain(f, (const uint64_t[]){__VA_ARGS__},                                           \
		     sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void user_part_follows_the_kernel_part(void **state)
{
	(void)state;
	const uint64_t chain[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000010, 0xffffffff81000020};
	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		struct fixture *f = fixture_new("x86_64", is_swapped, false);
		fill(f, chain, ARRAY_LEN(chain));
		unwind(f, PERF_RECORD_MISC_KERNEL);
		EXPECT_CHAIN(f, PERF_CONTEXT_KERNEL, 0xffffffff81000010, 0xffffffff81000020,
			     PERF_CONTEXT_USER, JIT + 8, JIT + 0x20);
		assert_int_equal(f->sample.cut, 0);
		assert_int_equal(f->stacks.totals.unwound, 1);
		assert_int_equal(f->stacks.totals.contested, 0);
		assert_int_equal(f->stacks.totals.stops[UNWIND_STOP_END], 1);
		assert_int_equal(f->stacks.totals.by_frame_pointer, 1);
		fixture_free(f);
	}
}

static void sample_in_user_mode_has_the_user_part_alone(void **state)
{
	(void)state;
	struct fixture *f = fixture_new("x86_64", false, false);
	fill(f, NULL, 0);
	unwind(f, PERF_RECORD_MISC_USER);
	EXPECT_CHAIN(f, PERF_CONTEXT_USER, JIT + 8, JIT + 0x20);
	fixture_free(f);
}

static void cookie_of_a_chain_that_comes_later_is_left_out(void **state)
{
	(void)state;
	const uint64_t chain[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000010,
				  PERF_CONTEXT_USER_DEFERRED, 77};
	struct fixture *f = fixture_new("x86_64", false, false);
	fill(f, chain, ARRAY_LEN(chain));
	unwind(f, PERF_RECORD_MISC_KERNEL);
	EXPECT_CHAIN(f, PERF_CONTEXT_KERNEL, 0xffffffff81000010, PERF_CONTEXT_USER, JIT + 8,
		     JIT + 0x20);
	assert_int_equal(f->stacks.totals.contested, 0);
	fixture_free(f);
}

static void reason_of_an_early_end_stays_with_the_sample(void **state)
{
	(void)state;
	struct fixture *f = fixture_new("x86_64", false, false);
	fill(f, NULL, 0);
	f->registers[X86_BP] = 5;
	unwind(f, PERF_RECORD_MISC_USER);
	EXPECT_CHAIN(f, PERF_CONTEXT_USER, JIT + 8);
	assert_int_equal(f->sample.cut, UNWIND_STOP_NO_TABLE);
	assert_int_equal(f->stacks.totals.stops[UNWIND_STOP_NO_TABLE], 1);
	fixture_free(f);
}

static void longer_chain_that_can_be_believed_stays(void **state)
{
	(void)state;
	const uint64_t longer[] = {PERF_CONTEXT_USER, JIT + 8, JIT + 0x30, JIT + 0x40};
	const uint64_t noise[] = {PERF_CONTEXT_USER, JIT + 8, 0x1234, 0x99, 0x77};
	struct fixture *f = fixture_new("x86_64", false, false);
	/* The walk ends at once: the chain of frame pointers is longer. */
	fill(f, longer, ARRAY_LEN(longer));
	f->registers[X86_BP] = 5;
	unwind(f, PERF_RECORD_MISC_USER);
	expect_chain(f, longer, ARRAY_LEN(longer));
	assert_int_equal(f->sample.cut, 0);
	assert_int_equal(f->stacks.totals.outdone, 1);
	assert_int_equal(f->stacks.totals.contested, 1);
	assert_int_equal(f->stacks.totals.unwound, 0);
	/* What lies in no mapping does not make it longer. */
	fill(f, noise, ARRAY_LEN(noise));
	f->registers[X86_BP] = 5;
	unwind(f, PERF_RECORD_MISC_USER);
	EXPECT_CHAIN(f, PERF_CONTEXT_USER, JIT + 8);
	/* And who reached the start cannot be outdone. */
	fill(f, longer, ARRAY_LEN(longer));
	unwind(f, PERF_RECORD_MISC_USER);
	EXPECT_CHAIN(f, PERF_CONTEXT_USER, JIT + 8, JIT + 0x20);
	assert_int_equal(f->stacks.totals.outdone, 1);
	assert_int_equal(f->stacks.totals.contested, 3);
	fixture_free(f);
}

static void what_cannot_be_unwound_is_left_alone_and_counted(void **state)
{
	(void)state;
	const uint64_t chain[] = {PERF_CONTEXT_USER, JIT + 8};
	static const char *const machines[] = {"x86_64", "x86_64", "x86_64", "riscv64", NULL};
	for (size_t i = 0; machines[i]; i++) {
		struct fixture *f = fixture_new(machines[i], false, false);
		fill(f, chain, ARRAY_LEN(chain));
		if (i == 0)
			f->sample.user_regs_abi = 1; /* 32-bit code */
		if (i == 1)
			f->sample.user_regs = NULL;
		if (i == 2)
			f->attr.sample_regs_user = 1 << X86_BP | 1 << X86_SP;
		unwind(f, PERF_RECORD_MISC_USER);
		expect_chain(f, chain, ARRAY_LEN(chain));
		assert_int_equal(f->stacks.totals.skipped, 1);
		assert_int_equal(f->stacks.totals.unwound, 0);
		fixture_free(f);
	}
}

static void registers_have_their_dwarf_numbers(void **state)
{
	(void)state;
	/* ax bx cx dx si di bp sp ip flags cs ss r8 …: each holds its DWARF number. */
	static const uint64_t x86[X86_N] = {0,	 3,   2, 1, 4,	5,  6,	7,  16, 100,
					    101, 102, 8, 9, 10, 11, 12, 13, 14, 15};
	struct unwind_registers registers;
	const struct sample sample = {.user_regs_abi = 2, .user_regs = (const uint8_t *)x86};
	assert_true(user_stack_read_registers(&sample, ALL_X86, UNWIND_X86_64, false, &registers));
	assert_int_equal(registers.known, 0x1ffff);
	for (unsigned i = 0; i <= UNWIND_X86_64_PC; i++)
		assert_int_equal(registers.values[i], i);

	uint64_t arm[UNWIND_N_REGISTERS];
	for (unsigned i = 0; i < UNWIND_N_REGISTERS; i++)
		arm[i] = __builtin_bswap64(i);
	const struct sample other = {.user_regs_abi = 2, .user_regs = (const uint8_t *)arm};
	assert_true(user_stack_read_registers(&other, ((uint64_t)1 << 33) - 1, UNWIND_ARM64, true,
					      &registers));
	for (unsigned i = 0; i < UNWIND_N_REGISTERS; i++)
		assert_int_equal(registers.values[i], i);
	/* Only some: the mask says which. */
	const uint64_t few[] = {1, 2, 3};
	const struct sample some = {.user_regs_abi = 2, .user_regs = (const uint8_t *)few};
	uint64_t mask = (uint64_t)1 << UNWIND_ARM64_FP | (uint64_t)1 << UNWIND_ARM64_SP |
			(uint64_t)1 << UNWIND_ARM64_PC;
	assert_true(user_stack_read_registers(&some, mask, UNWIND_ARM64, false, &registers));
	assert_int_equal(registers.known, mask);
	assert_int_equal(registers.values[UNWIND_ARM64_PC], 3);
	assert_false(user_stack_read_registers(&some, mask & ~((uint64_t)1 << UNWIND_ARM64_PC),
					       UNWIND_ARM64, false, &registers));
}

static void machine_is_known_by_its_registers_when_nothing_names_it(void **state)
{
	(void)state;
	struct fixture *f = fixture_new("x86_64", false, false);
	mem_free(f->source.arch);
	f->source.arch = NULL;
	fill(f, NULL, 0);
	unwind(f, PERF_RECORD_MISC_USER);
	EXPECT_CHAIN(f, PERF_CONTEXT_USER, JIT + 8, JIT + 0x20);
	/* 32-bit ARM: 16 registers. */
	f->attr.sample_regs_user = 0xffff;
	fill(f, NULL, 0);
	unwind(f, PERF_RECORD_MISC_USER);
	assert_int_equal(f->stacks.totals.skipped, 1);
	fixture_free(f);
}

#if defined(__x86_64__)
/* --- this very process, against the C library's unwinder --- */

enum { OWN_STACK_BYTES = 32 << 10, OWN_FRAMES = 64 };

static struct {
	ucontext_t context;
	uint64_t stack[OWN_STACK_BYTES / sizeof(uint64_t)];
	size_t stack_bytes;
	void *frames[OWN_FRAMES];
	int n_frames;
} own;

/* Across frames, which a sanitizer would not let pass. */
static __attribute__((noinline, no_sanitize_address)) void copy_words(const volatile uint64_t *from,
								      size_t n)
{
	volatile uint64_t *to = own.stack;
	for (size_t i = 0; i < n; i++)
		to[i] = from[i];
}

static __attribute__((noinline)) void capture(void)
{
	own.n_frames = backtrace(own.frames, OWN_FRAMES);
	getcontext(&own.context);
	/* The environment lies above the first frame. */
	uint64_t sp = (uint64_t)own.context.uc_mcontext.gregs[REG_RSP];
	own.stack_bytes = (uintptr_t)environ - sp;
	if (own.stack_bytes > sizeof(own.stack))
		own.stack_bytes = sizeof(own.stack);
	copy_words((const volatile uint64_t *)sp, own.stack_bytes / sizeof(uint64_t));
}

static void handler(int number)
{
	(void)number;
	capture();
}

static void map_own_code(struct fixture *f)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096], path[4096];
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		uint64_t begin, end, offset;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " r-xp %" SCNx64 " %*s %*s %4095s", &begin,
			   &end, &offset, path) == 4)
			map(f, begin, end, offset, path);
	}
	fclose(maps);
}

static void fill_own(struct fixture *f)
{
	static const uint8_t order[X86_N] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI,
					     REG_RDI, REG_RBP, REG_RSP, REG_RIP, REG_EFL,
					     REG_EFL, REG_EFL, REG_R8,	REG_R9,	 REG_R10,
					     REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
	for (size_t i = 0; i < X86_N; i++)
		f->registers[i] = (uint64_t)own.context.uc_mcontext.gregs[order[i]];
	f->sample = (struct sample){
		.user_regs_abi = 2,
		.user_regs = (const uint8_t *)f->registers,
		.stack = (const uint8_t *)own.stack,
		.stack_bytes = own.stack_bytes,
	};
}

static void real_stack_is_unwound_through_a_signal_handler(void **state)
{
	(void)state;
	struct fixture *f = fixture_new("x86_64", false, true);
	map_own_code(f);
	struct sigaction action = {.sa_handler = handler}, before;
	sigaction(SIGUSR1, &action, &before);
	raise(SIGUSR1);
	sigaction(SIGUSR1, &before, NULL);
	fill_own(f);
	unwind(f, PERF_RECORD_MISC_USER);
	assert_int_equal(f->stacks.walk.stop, UNWIND_STOP_END);
	assert_true(own.n_frames > 5);
	/* The first frame of backtrace is capture too, at another place in it; below that may lie
	 * one of a sanitizer. */
	int at = 0, n_markers = 0;
	uint64_t caller = sample_u64(f->sample.chain, 2, false);
	while (at + 1 < own.n_frames && (uintptr_t)own.frames[at + 1] != caller)
		at++;
	const int first = at;
	for (uint64_t i = 0; i < f->sample.n_chain; i++) {
		uint64_t entry = sample_u64(f->sample.chain, i, false);
		if (entry == PERF_CONTEXT_USER) {
			n_markers++;
			continue;
		}
		assert_true(at < own.n_frames);
		if (at > first)
			assert_int_equal(entry, (uintptr_t)own.frames[at]);
		at++;
	}
	assert_int_equal(at, own.n_frames);
	/* Before the leaf, and before what the signal interrupted. */
	assert_int_equal(n_markers, 2);
	fixture_free(f);
}

static void who_may_not_wait_gets_what_is_there(void **state)
{
	(void)state;
	struct fixture *f = fixture_new("x86_64", false, false);
	map_own_code(f);
	capture();
	fill_own(f);
	unwind(f, PERF_RECORD_MISC_USER);
	assert_int_equal(f->stacks.walk.stop, UNWIND_STOP_NO_TABLE);
	assert_int_equal(f->sample.cut, UNWIND_STOP_NO_TABLE);
	fixture_free(f);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(user_part_follows_the_kernel_part),
		cmocka_unit_test(sample_in_user_mode_has_the_user_part_alone),
		cmocka_unit_test(cookie_of_a_chain_that_comes_later_is_left_out),
		cmocka_unit_test(reason_of_an_early_end_stays_with_the_sample),
		cmocka_unit_test(longer_chain_that_can_be_believed_stays),
		cmocka_unit_test(what_cannot_be_unwound_is_left_alone_and_counted),
		cmocka_unit_test(registers_have_their_dwarf_numbers),
		cmocka_unit_test(machine_is_known_by_its_registers_when_nothing_names_it),
#if defined(__x86_64__)
		cmocka_unit_test(real_stack_is_unwound_through_a_signal_handler),
		cmocka_unit_test(who_may_not_wait_gets_what_is_there),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
