/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "pipeline/report_print.h"
#include "pipeline/report_table.h"
#include "proto/pprof_encode.h"
#include "tests/unit/proto/made_up_profile.h"

enum { MS = 1000000 };

static struct report_table *make(const struct profile *profile,
				 const struct report_table_options *options)
{
	struct report_table *table = NULL;
	struct error *err = report_table_make(profile, options, &table);
	if (err)
		fail_msg("%s", error_text(err));
	return table;
}

static const struct report_table_row *find(const struct report_table *table, const char *name)
{
	for (uint32_t i = 0; i < table->n_rows; i++) {
		if (!strcmp(report_table_text(table, table->rows[i].name), name))
			return &table->rows[i];
	}
	return NULL;
}

static void expect(const struct report_table *table, const char *name, int64_t flat_ms,
		   int64_t cum_ms)
{
	const struct report_table_row *row = find(table, name);
	if (!row)
		fail_msg("no row %s", name);
	assert_int_equal(row->flat, flat_ms * MS);
	assert_int_equal(row->cum, cum_ms * MS);
}

static void report_table_counts_flat_and_cum_once_a_sample(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	struct report_table_options options = {0};
	struct report_table *table = make(profile, &options);
	assert_string_equal(report_table_text(table, table->type), "cpu");
	assert_int_equal(table->total, 100 * MS);
	assert_int_equal(table->n_rows, 6);
	expect(table, "parse", 50, 50); /* recursion counts once */
	expect(table, "memcpy", 20, 20);
	expect(table, "copy", 0, 20); /* inlined memcpy is its leaf */
	expect(table, "work", 0, 70);
	expect(table, "main", 0, 90);
	expect(table, "libx.so+0x1345", 20, 20);
	/* By flat, then by name. */
	static const char *const order[] = {"parse", "libx.so+0x1345", "memcpy",
					    "copy",  "main",	       "work"};
	for (uint32_t i = 0; i < 6; i++)
		assert_string_equal(report_table_text(table, table->rows[i].name), order[i]);
	report_table_free(table);
	options = (struct report_table_options){.is_by_cum = true, .node_count = 2};
	table = make(profile, &options);
	assert_int_equal(table->n_rows, 2);
	assert_int_equal(table->n_all_rows, 6);
	assert_string_equal(report_table_text(table, table->rows[0].name), "main");
	assert_string_equal(report_table_text(table, table->rows[1].name), "work");
	report_table_free(table);
	profile_free(profile);
}

static void report_table_focus_keeps_and_ignore_drops_samples(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	struct report_table_options options = {.focus = "^copy$"};
	struct report_table *table = make(profile, &options);
	assert_int_equal(table->n_rows, 4);
	assert_int_equal(table->total, 100 * MS); /* percents refer to the whole */
	assert_int_equal(table->kept, 20 * MS);
	expect(table, "memcpy", 20, 20);
	expect(table, "main", 0, 20);
	report_table_free(table);

	options = (struct report_table_options){.ignore = "string\\.h"}; /* a file name */
	table = make(profile, &options);
	assert_null(find(table, "memcpy"));
	expect(table, "work", 0, 50);
	report_table_free(table);

	options = (struct report_table_options){.focus = "libx"}; /* a module */
	table = make(profile, &options);
	expect(table, "main", 0, 20);
	assert_int_equal(table->kept, 20 * MS);
	report_table_free(table);
	profile_free(profile);
}

static void report_table_hide_gives_the_time_to_the_caller(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	struct report_table_options options = {.hide = "^(parse|memcpy)$"};
	struct report_table *table = make(profile, &options);
	expect(table, "work", 50, 70);
	expect(table, "copy", 20, 20);
	assert_null(find(table, "parse"));
	report_table_free(table);
	options.hide = "."; /* everything: only the sample without frames is left */
	table = make(profile, &options);
	assert_int_equal(table->n_rows, 0);
	assert_int_equal(table->kept, 10 * MS);
	report_table_free(table);
	profile_free(profile);
}

static void report_table_tagfocus_takes_texts_and_ranges(void **state)
{
	(void)state;
	static const struct {
		const char *tags[2];
		uint32_t n;
		int64_t kept_ms;
	} cases[] = {
		{{"comm=app"}, 1, 70}, {{"comm=^o"}, 1, 20},	       {{"pid=100"}, 1, 20},
		{{"pid=100:"}, 1, 40}, {{"pid=:100"}, 1, 70},	       {{"pid=50:150"}, 1, 20},
		{{"pid=7"}, 1, 0},     {{"comm=app", "pid=0"}, 2, 50}, {{"none=x"}, 1, 0},
	};
	struct profile *profile = made_up_profile();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct report_table_options options = {.tagfocus = cases[i].tags,
						       .n_tagfocus = cases[i].n};
		struct report_table *table = make(profile, &options);
		assert_int_equal(table->kept, cases[i].kept_ms * MS);
		report_table_free(table);
	}
	profile_free(profile);
}

static void report_table_sorts_by_labels(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	static const char *const keys[] = {"comm", "pid", "function"};
	struct report_table_options options = {.sort = keys, .n_sort = 2};
	struct report_table *table = make(profile, &options);
	assert_int_equal(table->n_rows, 4);
	static const struct {
		const char *comm, *pid;
		int64_t ms;
	} wanted[] = {{"app", "0", 50}, {"app", "100", 20}, {"other", "200", 20}, {"", "", 10}};
	for (uint32_t i = 0; i < 4; i++) {
		const struct report_table_row *row = &table->rows[i];
		const uint32_t *values = table->values + row->values * 2;
		assert_string_equal(report_table_text(table, values[0]), wanted[i].comm);
		assert_string_equal(report_table_text(table, values[1]), wanted[i].pid);
		assert_int_equal(row->flat, wanted[i].ms * MS);
		assert_int_equal(row->cum, wanted[i].ms * MS);
	}
	report_table_free(table);
	options = (struct report_table_options){.sort = (const char *const[]){"comm", "function"},
						.n_sort = 2};
	table = make(profile, &options);
	assert_int_equal(table->n_rows, 5 + 2); /* main is in both */
	report_table_free(table);
	profile_free(profile);
}

static void report_table_refuses_what_makes_no_sense(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	static const char *const no_value[] = {"comm"};
	const struct report_table_options bad[] = {
		{.focus = "("},
		{.hide = "[z-a]"},
		{.tagfocus = no_value, .n_tagfocus = 1},
		{.column = "heap"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct report_table *table = NULL;
		struct error *err = report_table_make(profile, &bad[i], &table);
		assert_int_equal(error_get_code(err), ERROR_USAGE);
		error_free(err);
	}
	profile_free(profile);
}

static void report_table_gives_up_on_an_expression_without_end(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	(void)made_up_location(profile, PROFILE_NONE, 1,
			       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", 1);
	struct report_table_options options = {.focus = "^(a+)+$"};
	struct report_table *table = NULL;
	struct error *err = report_table_make(profile, &options, &table);
	assert_int_equal(error_get_code(err), ERROR_LIMIT);
	error_free(err);
	profile_free(profile);
}

static void report_print_scales_units(void **state)
{
	(void)state;
	static const struct {
		int64_t value;
		const char *unit, *text;
	} cases[] = {
		{0, "nanoseconds", "0"},
		{999, "nanoseconds", "999ns"},
		{1500, "ns", "1.5us"},
		{20 * MS, "nanoseconds", "20ms"},
		{1234567890, "nanoseconds", "1.23s"},
		{90000, "ms", "1.5min"},
		{4718592, "bytes", "4.5MB"},
		{-2048, "bytes", "-2kB"},
		{100, "bytes", "100B"},
		{12345678, "count", "12345678"},
		{100, "s", "1.67min"},
		{7200, "seconds", "2h"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[64];
		report_print_value(cases[i].value, cases[i].unit, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
	}
}

static char *print(const struct report_table *table, enum report_print_format format)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	assert_null(report_print(table, format, out));
	fclose(out);
	return text;
}

static void report_print_shows_text_json_and_csv(void **state)
{
	(void)state;
	struct profile *profile = made_up_profile();
	profile_add_comment(profile, "tab\there \x1b[31m");
	struct report_table_options options = {.node_count = 2};
	struct report_table *table = make(profile, &options);
	char *text = print(table, REPORT_PRINT_TEXT);
	assert_non_null(strstr(text, "Column: cpu (nanoseconds), total 100ms\n"));
	assert_non_null(strstr(text, "Note:   lost 3 events\n"));
	assert_non_null(strstr(text, "tab?here ?[31m\n"));
	assert_non_null(strstr(text, "Rows:   2 of 6, 70ms of 100ms (70.00%)\n"));
	assert_non_null(strstr(text, "      flat   flat%    sum%        cum    cum%  name\n"));
	assert_non_null(strstr(text,
			       "      50ms  50.00%  50.00%       50ms  50.00%  parse\n"
			       "      20ms  20.00%  70.00%       20ms  20.00%  libx.so+0x1345\n"));
	free(text);
	text = print(table, REPORT_PRINT_CSV);
	assert_string_equal(text, "flat,flat_percent,sum_percent,cum,cum_percent,name\n"
				  "50000000,50.0000,50.0000,50000000,50.0000,parse\n"
				  "20000000,20.0000,70.0000,20000000,20.0000,libx.so+0x1345\n");
	free(text);
	text = print(table, REPORT_PRINT_JSON);
	assert_non_null(strstr(text, "\"rows_total\": 6"));
	assert_non_null(strstr(text, "{\"name\": \"parse\", \"flat\": 50000000, \"flat_percent\": "
				     "50.0000, \"sum_percent\": 50.0000, \"cum\": 50000000, "
				     "\"cum_percent\": 50.0000}"));
	free(text);
	report_table_free(table);
	static const char *const keys[] = {"comm"};
	options = (struct report_table_options){.sort = keys, .n_sort = 1};
	table = make(profile, &options);
	text = print(table, REPORT_PRINT_TEXT);
	assert_non_null(strstr(text, "  comm=app\n"));
	assert_non_null(strstr(text, "  comm=(none)\n"));
	free(text);
	text = print(table, REPORT_PRINT_CSV);
	assert_non_null(strstr(text, ",cum_percent,comm\n"));
	free(text);
	report_table_free(table);
	profile_free(profile);
}

static void report_print_knows_its_formats(void **state)
{
	(void)state;
	enum report_print_format format;
	assert_true(report_print_parse_format("csv", &format));
	assert_int_equal(format, REPORT_PRINT_CSV);
	assert_false(report_print_parse_format("yaml", &format));
}

static void report_table_takes_a_profile_without_anything(void **state)
{
	(void)state;
	struct profile *profile = profile_new();
	struct report_table_options options = {.focus = "x"};
	struct report_table *table = make(profile, &options);
	assert_int_equal(table->n_rows, 0);
	for (int format = REPORT_PRINT_TEXT; format <= REPORT_PRINT_CSV; format++)
		free(print(table, (enum report_print_format)format));
	report_table_free(table);
	profile_free(profile);
}

/* Every row that `go tool pprof -top ARGS` prints, laid beside ours. */
static void compare_with_go(const char *go, const char *path, const char *args,
			    const struct report_table *table)
{
	char *command = mem_format("PPROF_BINARY_PATH=/nonexistent %s tool pprof -top -unit=ms "
				   "-nodefraction=0 -symbolize=none %s %s 2>&1",
				   go, args, path);
	FILE *pipe = popen(command, "r");
	assert_non_null(pipe);
	char line[1024];
	uint32_t n = 0;
	while (fgets(line, sizeof(line), pipe)) {
		double flat, flat_percent, sum_percent, cum, cum_percent;
		char name[256];
		if (sscanf(line, " %lf%*[ms] %lf%% %lf%% %lf%*[ms] %lf%% %255[^\n]", &flat,
			   &flat_percent, &sum_percent, &cum, &cum_percent, name) != 6 &&
		    /* A plain 0 has no unit. */
		    sscanf(line, " %lf %lf%% %lf%% %lf%*[ms] %lf%% %255[^\n]", &flat, &flat_percent,
			   &sum_percent, &cum, &cum_percent, name) != 6)
			continue;
		char *end = strstr(name, " (inline)");
		if (!end)
			end = strstr(name, " (partial-inline)");
		if (end)
			*end = 0;
		/* pprof names what has no function by its module alone. */
		const char *own = strcmp(name, "[libx.so]") ? name : "libx.so+0x1345";
		const struct report_table_row *row = find(table, own);
		if (!row)
			fail_msg("%s: go shows %s", args, name);
		assert_int_equal(row->flat, (int64_t)(flat * MS + 0.5));
		assert_int_equal(row->cum, (int64_t)(cum * MS + 0.5));
		n++;
	}
	assert_int_equal(pclose(pipe), 0);
	mem_free(command);
	assert_int_equal(n, table->n_rows);
}

static void report_table_agrees_with_go_tool_pprof(void **state)
{
	(void)state;
	const char *go = access("/usr/local/go/bin/go", X_OK) == 0 ? "/usr/local/go/bin/go"
			 : access("/usr/bin/go", X_OK) == 0	   ? "/usr/bin/go"
								   : NULL;
	if (!go) {
		print_message("no go to compare with\n");
		skip();
	}
	struct profile *profile = made_up_profile();
	struct pprof_encode_options encode = {.gzip_level = 6};
	char path[] = "/tmp/perfpipe_report_XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_null(pprof_encode_fd(profile, &encode, fd));
	close(fd);
	static const char *const comm[] = {"comm=app"};
	const struct {
		const char *args;
		struct report_table_options options;
	} cases[] = {
		{"", {0}},
		{"-focus=copy", {.focus = "copy"}},
		{"-ignore=parse", {.ignore = "parse"}},
		{"-hide='^(parse|memcpy)$'", {.hide = "^(parse|memcpy)$"}},
		{"-hide=libx", {.hide = "libx"}},
		{"-focus=app.c -ignore=string.h", {.focus = "app.c", .ignore = "string.h"}},
		{"-tagfocus=comm=app", {.tagfocus = comm, .n_tagfocus = 1}},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct report_table *table = make(profile, &cases[i].options);
		compare_with_go(go, path, cases[i].args, table);
		report_table_free(table);
	}
	unlink(path);
	profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(report_table_counts_flat_and_cum_once_a_sample),
		cmocka_unit_test(report_table_focus_keeps_and_ignore_drops_samples),
		cmocka_unit_test(report_table_hide_gives_the_time_to_the_caller),
		cmocka_unit_test(report_table_tagfocus_takes_texts_and_ranges),
		cmocka_unit_test(report_table_sorts_by_labels),
		cmocka_unit_test(report_table_refuses_what_makes_no_sense),
		cmocka_unit_test(report_table_gives_up_on_an_expression_without_end),
		cmocka_unit_test(report_print_scales_units),
		cmocka_unit_test(report_print_shows_text_json_and_csv),
		cmocka_unit_test(report_print_knows_its_formats),
		cmocka_unit_test(report_table_takes_a_profile_without_anything),
		cmocka_unit_test(report_table_agrees_with_go_tool_pprof),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
