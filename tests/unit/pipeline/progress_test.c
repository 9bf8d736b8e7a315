/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/progress.h"

enum { NS_PER_MS = 1000000 };

static char said[512];

/* What is drawn seconds after the beginning. */
static void draw_after(enum progress_unit unit, uint64_t ns, uint64_t done, uint64_t total)
{
	struct progress progress;
	fflush(stderr);
	int saved_fd = dup(STDERR_FILENO);
	FILE *capture = tmpfile();
	assert_non_null(capture);
	dup2(fileno(capture), STDERR_FILENO);
	progress_begin(&progress, true, unit, "working");
	progress.begin_ns -= ns;
	progress.last_ns -= ns;
	progress_update(&progress, done, total);
	fflush(stderr);
	dup2(saved_fd, STDERR_FILENO);
	close(saved_fd);
	rewind(capture);
	said[fread(said, 1, sizeof(said) - 1, capture)] = '\0';
	fclose(capture);
}

static void progress_of_time_states_exactly_what_is_left(void **state)
{
	(void)state;
	uint64_t ms = NS_PER_MS;
	draw_after(PROGRESS_TIME, 1900 * ms, 1900 * ms, 10000 * ms);
	assert_non_null(strstr(said, "working 2 s of 10 s, 8 s left"));
	draw_after(PROGRESS_TIME, 9600 * ms, 9600 * ms, 10000 * ms);
	assert_non_null(strstr(said, "working 10 s of 10 s, 0 s left"));
	draw_after(PROGRESS_TIME, 3000 * ms, 3000 * ms, 0);
	assert_non_null(strstr(said, "working 3 s"));
	assert_null(strstr(said, "left"));
}

static void progress_of_bytes_estimates_from_the_rate(void **state)
{
	(void)state;
	draw_after(PROGRESS_BYTES, 4000ull * NS_PER_MS, 1 << 20, 3 << 20);
	assert_non_null(strstr(said, "working 1.0 MiB of 3.0 MiB, 0.2 MiB/s, 8 s left"));
}

static void progress_is_silent_at_first(void **state)
{
	(void)state;
	draw_after(PROGRESS_BYTES, 900ull * NS_PER_MS, 1 << 20, 3 << 20);
	assert_string_equal(said, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(progress_of_time_states_exactly_what_is_left),
		cmocka_unit_test(progress_of_bytes_estimates_from_the_rate),
		cmocka_unit_test(progress_is_silent_at_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
