/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"

static void mem_gives_unique_pointers_for_zero_bytes(void **state)
{
	(void)state;
	void *a = mem_alloc(0);
	void *b = mem_zalloc(0, 8);
	void *c = mem_copy(NULL, 0);
	assert_non_null(a);
	assert_non_null(b);
	assert_non_null(c);
	assert_ptr_not_equal(a, b);
	mem_free(a);
	mem_free(b);
	mem_free(c);
	mem_free(NULL);
}

static void mem_zalloc_zeroes_and_realloc_keeps(void **state)
{
	(void)state;
	uint32_t *p = mem_zalloc(100, sizeof(*p));
	for (int i = 0; i < 100; i++)
		assert_int_equal(p[i], 0);
	p[99] = 7;
	p = mem_realloc(p, 10000, sizeof(*p));
	assert_int_equal(p[99], 7);
	p = mem_realloc(p, 0, sizeof(*p));
	assert_non_null(p);
	mem_free(p);
}

static void mem_copies_and_formats_strings(void **state)
{
	(void)state;
	char *copy = mem_copy_string("git");
	char *text = mem_format("%s-%d", copy, 42);
	assert_string_equal(text, "git-42");
	mem_free(copy);
	mem_free(text);
}

/* The signal that ends a child which asks for n * size bytes. */
static int signal_of_asking(size_t n, size_t size)
{
	pid_t child = fork();
	if (child == 0) {
		struct rlimit no_core = {0, 0};
		setrlimit(RLIMIT_CORE, &no_core);
		close(STDERR_FILENO);
		signal(SIGABRT, SIG_DFL);
		mem_realloc(NULL, n, size);
		_exit(0);
	}
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void mem_aborts_when_the_size_overflows(void **state)
{
	(void)state;
	assert_int_equal(signal_of_asking(SIZE_MAX / 2, 4), SIGABRT);
	assert_int_equal(signal_of_asking(1, 16), 0);
}

static void mem_resident_bytes_is_plausible_and_grows(void **state)
{
	(void)state;
	size_t before = mem_resident_bytes();
	assert_true(before > 64 << 10);
	size_t bytes = 64 << 20;
	char *p = mem_alloc(bytes);
	memset(p, 1, bytes);
	assert_true(p[bytes - 1] == 1);
	assert_true(mem_resident_bytes() > before + bytes / 2);
	mem_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mem_gives_unique_pointers_for_zero_bytes),
		cmocka_unit_test(mem_zalloc_zeroes_and_realloc_keeps),
		cmocka_unit_test(mem_copies_and_formats_strings),
		cmocka_unit_test(mem_aborts_when_the_size_overflows),
		cmocka_unit_test(mem_resident_bytes_is_plausible_and_grows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
