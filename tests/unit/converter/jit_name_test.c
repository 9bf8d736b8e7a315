/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "converter/jit_name.h"

/* "NAME|FILE|LINE" */
static const char *split(const char *raw)
{
	static char text[256];
	const struct jit_name name = jit_name_split(raw);
	snprintf(text, sizeof(text), "%.*s|%.*s|%u", (int)name.name_bytes, raw,
		 (int)name.file_bytes, name.file ? name.file : "", name.start_line);
	return text;
}

static void jit_name_splits_what_is_without_doubt(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"py::leaf:/srv/app.py", "py::leaf|/srv/app.py|0"},
		{"py::A.f.<locals>.<lambda>:/srv/x:y.py",
		 "py::A.f.<locals>.<lambda>|/srv/x:y.py|0"},
		{"py::f:<string>", "py::f|<string>|0"},
		{"py::", "py::||0"},
		{"py::f", "py::f||0"},
		{"py::f:", "py::f:||0"},
		{"py:::/srv/app.py", "py:::/srv/app.py||0"},
		{"JS:*fib /tmp/fib.js:1:13", "JS:*fib /tmp/fib.js:1:13|/tmp/fib.js|1"},
		{"LazyCompile:*fib /tmp/fib.js:12:13",
		 "LazyCompile:*fib /tmp/fib.js:12:13|/tmp/fib.js|12"},
		{"LazyCompile:~ /tmp/a b.js:7", "LazyCompile:~ /tmp/a b.js:7|/tmp/a b.js|7"},
		{"JS:~get size node:internal/util:3:1",
		 "JS:~get size node:internal/util:3:1|node:internal/util|3"},
		{"JS:^f file:///x/m.mjs:20:5", "JS:^f file:///x/m.mjs:20:5|file:///x/m.mjs|20"},
		{"JS:~ evalmachine.<anonymous>:1:1",
		 "JS:~ evalmachine.<anonymous>:1:1|evalmachine.<anonymous>|1"},
		{"JS:*f a b:1:2", "JS:*f a b:1:2||0"},
		{"JS:*f", "JS:*f||0"},
		{"JS::1:2", "JS::1:2||0"},
		{"JS:*f /x.js:0:0", "JS:*f /x.js:0:0||0"},
		{"JS:*f /x.js:99999999999:1", "JS:*f /x.js:99999999999:1|/x.js:99999999999|1"},
		{"RegExp:[a-z]:1:2", "RegExp:[a-z]:1:2||0"},
		{"Ljava/lang/String;::hash", "Ljava/lang/String;::hash||0"},
		{"", "||0"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_string_equal(split(cases[i][0]), cases[i][1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(jit_name_splits_what_is_without_doubt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
