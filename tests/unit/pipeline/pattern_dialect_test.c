/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "pipeline/pattern.h"
#include "pipeline/pattern_dialect.h"

static void what_re2_has_is_taken(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"",
		"(.*)",
		"a+?b*?c??",
		"a{2,3}?x{4}y{5,}",
		"[]a]",
		"[^]\\d]",
		"[[:alpha:]_[:^digit:]]",
		"(?:x)(?i)y(?s-m:z)",
		"(?P<n>x)",
		"(?<n>x)",
		"\\pL\\p{Greek}\\P{^Lu}",
		"\\x41\\x{1F600}\\012",
		"\\Q(?=\\E+",
		"\\.\\*\\(",
		"\\Ax\\bx\\B\\z",
		"a{,5}",
		"a{x}",
		"[+*?{]+",
		"\\++",
		"repos-\\d+",
		"[\\]\\[a-]*",
		"(a|b|)*",
	};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct pattern *pattern = NULL;
		struct error *err = pattern_compile_whole(texts[i], &pattern);
		if (err)
			fail_msg("%s", error_text(err));
		pattern_free(pattern);
	}
}

static void what_re2_lacks_is_refused_with_its_place(void **state)
{
	(void)state;
	static const struct {
		const char *text, *what;
		unsigned character;
	} refused[] = {
		{"a(?=b)", "look-ahead is not supported", 2},
		{"a(?!b)", "look-ahead is not supported", 2},
		{"(?<=b)a", "look-behind is not supported", 1},
		{"xx(?<!b)a", "look-behind is not supported", 3},
		{"(a)\\1", "back-references are not supported", 4},
		{"(a)\\g{1}", "back-references are not supported", 4},
		{"(?<n>a)\\k<n>", "back-references are not supported", 8},
		{"(?P<n>a)(?P=n)", "back-references are not supported", 9},
		{"a(?>b)", "atomic groups are not supported", 2},
		{"a*+", "possessive repetition is not supported", 2},
		{"a{2}+", "possessive repetition is not supported", 2},
		{"(?:a)?+", "possessive repetition is not supported", 6},
		{"a{2}{3}", "repetition of a repetition", 2},
		{"a*?*", "repetition of a repetition", 2},
		{"a{1001}", "more than 1000 repetitions", 2},
		{"a{1,1001}", "more than 1000 repetitions", 2},
		{"(*LIMIT_MATCH=1)a", "verbs are not supported", 1},
		{"(?R)", "recursion is not supported", 1},
		{"(a)(?1)", "recursion is not supported", 4},
		{"(a)(?-1)", "recursion is not supported", 4},
		{"(a)(?&n)", "recursion is not supported", 4},
		{"(a)(?P>n)", "recursion is not supported", 4},
		{"(?(1)a|b)", "conditions are not supported", 1},
		{"(?|a|b)", "groups that share numbers are not supported", 1},
		{"a(?#b)", "comments are not supported", 2},
		{"(?C1)", "callouts are not supported", 1},
		{"(?x) a", "a kind of group that RE2 does not know", 1},
		{"(?'n'a)", "a kind of group that RE2 does not know", 1},
		{"(?^:a)", "a kind of group that RE2 does not know", 1},
		{"a\\K", "an escape that RE2 does not know", 2},
		{"\\R", "an escape that RE2 does not know", 1},
		{"\\h", "an escape that RE2 does not know", 1},
		{"\\v", "an escape that RE2 does not know", 1},
		{"a\\Z", "an escape that RE2 does not know", 2},
		{"[\\b]", "an escape that RE2 does not know", 2},
		{"\\x4", "\\x takes two hexadecimal digits or {…}", 1},
		{"\\p{Xan}", "a property that RE2 does not know", 1},
		{"\\p{L&}", "a property that RE2 does not know", 1},
		{"[[:<:]]", "a class that RE2 does not know", 2},
	};
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct error *err = pattern_dialect_check(refused[i].text);
		if (!err)
			fail_msg("%s was taken", refused[i].text);
		char want[256];
		snprintf(want, sizeof(want), "regular expression '%s': %s at character %u",
			 refused[i].text, refused[i].what, refused[i].character);
		assert_string_equal(error_text(err), want);
		error_free(err);
	}
}

static void unfinished_patterns_are_left_to_pcre2(void **state)
{
	(void)state;
	static const char *const texts[] = {"(",	 "[",  "[a",   "\\",  "\\p",  "\\p{",
					    "[[:alpha:", "*",  "(?",   "(?<", "(?<n", "\\Q",
					    "[^",	 "a)", "\\x{", "{1}"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct pattern *pattern = NULL;
		struct error *err = pattern_compile_whole(texts[i], &pattern);
		/* "\Q" and "{1}" are valid for PCRE2, or not: nothing may go wrong. */
		error_free(err);
		pattern_free(pattern);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_re2_has_is_taken),
		cmocka_unit_test(what_re2_lacks_is_refused_with_its_place),
		cmocka_unit_test(unfinished_patterns_are_left_to_pcre2),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
