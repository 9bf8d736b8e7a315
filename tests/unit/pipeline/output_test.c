/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/output.h"

static void output_form_follows_the_name(void **state)
{
	(void)state;
	assert_int_equal(output_form_of("a.pb.gz"), OUTPUT_PPROF_GZIP);
	assert_int_equal(output_form_of("a"), OUTPUT_PPROF_GZIP);
	assert_int_equal(output_form_of("-"), OUTPUT_PPROF_GZIP);
	assert_int_equal(output_form_of("a.pb"), OUTPUT_PPROF);
	assert_int_equal(output_form_of("/x/perf.data"), OUTPUT_PERF_DATA);
	assert_int_equal(output_form_of(".pb"), OUTPUT_PPROF_GZIP);
}

static size_t size_and_head(const char *path, uint8_t head[2])
{
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	uint8_t bytes[4096];
	size_t n = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	assert_true(n >= 2);
	memcpy(head, bytes, 2);
	return n;
}

static void write_to(const char *path, bool is_plain)
{
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	struct output output;
	assert_null(output_open(&output, path, true));
	assert_null(output_write_profile(&output, profile, is_plain));
	assert_null(output_commit(&output));
	output_close(&output);
	profile_free(profile);
}

static void output_writes_gzip_or_plain_protobuf(void **state)
{
	(void)state;
	char folder[] = "/tmp/output_test-XXXXXX";
	assert_non_null(mkdtemp(folder));
	char path[64];
	uint8_t head[2];
	snprintf(path, sizeof(path), "%s/p", folder);
	write_to(path, false);
	size_and_head(path, head);
	assert_int_equal(head[0], 0x1f);
	assert_int_equal(head[1], 0x8b);
	write_to(path, true);
	size_and_head(path, head);
	assert_int_equal(head[0], 0x0a);
	unlink(path);
	assert_int_equal(rmdir(folder), 0); /* nothing temporary stays */
}

static void output_without_commit_leaves_the_old_file(void **state)
{
	(void)state;
	char folder[] = "/tmp/output_test-XXXXXX";
	assert_non_null(mkdtemp(folder));
	char path[64];
	uint8_t head[2];
	snprintf(path, sizeof(path), "%s/p", folder);
	write_to(path, false);
	size_t before = size_and_head(path, head);
	struct output output;
	assert_null(output_open(&output, path, true));
	output_close(&output);
	assert_int_equal(size_and_head(path, head), before);
	unlink(path);
	assert_int_equal(rmdir(folder), 0);
}

static void output_says_what_cannot_be_created_or_written(void **state)
{
	(void)state;
	struct output output;
	struct error *err = output_open(&output, "/nonexistent/folder/p.pb.gz", true);
	assert_non_null(err);
	assert_int_equal(error_get_number(err), 701);
	error_free(err);
	output_close(&output);

	if (access("/dev/full", W_OK) != 0)
		skip();
	struct profile *profile = profile_new();
	assert_null(output_open(&output, "/dev/full", true));
	err = output_write_profile(&output, profile, true);
	if (!err)
		err = output_commit(&output);
	assert_non_null(err);
	assert_int_equal(error_get_number(err), 702);
	error_free(err);
	output_close(&output);
	profile_free(profile);
}

static void output_knows_one_file_by_its_names(void **state)
{
	(void)state;
	char folder[] = "/tmp/output_test-XXXXXX";
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	char path[64];
	snprintf(path, sizeof(path), "%s/p", folder);
	assert_true(output_is_same_path("p", "./p"));
	assert_true(output_is_same_path(path, "p"));
	assert_false(output_is_same_path("p", "q"));
	write_to("p", false);
	assert_int_equal(symlink("p", "q"), 0);
	assert_true(output_is_same_path("p", "q"));
	assert_false(output_is_same_path("p", "r"));
	assert_true(output_is_same_path("-", "/dev/stdout"));
	assert_false(output_is_same_path("-", "p"));
	unlink("q");
	unlink("p");
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void output_refuses_binary_on_a_terminal_by_any_name(void **state)
{
	(void)state;
	int leader = posix_openpt(O_RDWR | O_NOCTTY);
	if (leader < 0 || grantpt(leader) < 0 || unlockpt(leader) < 0)
		skip();
	struct output output;
	struct error *err = output_open(&output, ptsname(leader), true);
	assert_non_null(err);
	assert_int_equal(error_get_code(err), ERROR_USAGE);
	error_free(err);
	assert_false(output.is_open);
	assert_null(output_open(&output, ptsname(leader), false));
	output_close(&output);
	close(leader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(output_form_follows_the_name),
		cmocka_unit_test(output_writes_gzip_or_plain_protobuf),
		cmocka_unit_test(output_without_commit_leaves_the_old_file),
		cmocka_unit_test(output_says_what_cannot_be_created_or_written),
		cmocka_unit_test(output_knows_one_file_by_its_names),
		cmocka_unit_test(output_refuses_binary_on_a_terminal_by_any_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
