/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/mem.h"
#include "pipeline/relabel.h"

#define SOURCES(...)                                                                               \
	.source_labels = (const char *const[]){__VA_ARGS__},                                       \
	.n_source_labels = ARRAY_LEN(((const char *const[]){__VA_ARGS__}))

/* "a=1 b=2": values without spaces; "_" stands for one. */
static void read_labels(struct label_set *set, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, " ");
		size_t n_name = strcspn(text, "=");
		char value[256];
		size_t n_value = n - n_name - 1;
		memcpy(value, text + n_name + 1, n_value);
		label_set_put(set, text, n_name, value, n_value);
		text += n + (text[n] == ' ');
	}
}

static void print_labels(const struct label_set *set, char *out, size_t size)
{
	out[0] = '\0';
	for (uint32_t i = 0; i < set->n; i++) {
		size_t used = strlen(out);
		snprintf(out + used, size - used, "%s%s=%s", i ? " " : "", set->labels[i].name,
			 set->labels[i].value);
	}
}

struct rule_case {
	const char *before;
	struct relabel_rule rules[3]; /* ended by one without action and fields */
	size_t n_rules;
	const char *after; /* NULL = dropped */
};

static void check(const struct rule_case *rule_case, size_t number)
{
	struct relabel *relabel = relabel_new();
	struct label_set set;
	label_set_init(&set);
	for (size_t i = 0; i < rule_case->n_rules; i++) {
		enum relabel_field field;
		struct error *err = relabel_add(relabel, &rule_case->rules[i], &field);
		if (err)
			fail_msg("case %zu: %s", number, error_text(err));
	}
	read_labels(&set, rule_case->before);
	enum relabel_verdict verdict = relabel_apply(relabel, &set);
	char text[1024];
	print_labels(&set, text, sizeof(text));
	if (!rule_case->after)
		assert_int_equal(verdict, RELABEL_DROPPED);
	else if (verdict != RELABEL_KEPT || strcmp(text, rule_case->after) != 0)
		fail_msg("case %zu: verdict %d, \"%s\" instead of \"%s\"", number, (int)verdict,
			 text, rule_case->after);
	label_set_fini(&set);
	relabel_free(relabel);
}

#define ONE(...) .rules = {{__VA_ARGS__}}, .n_rules = 1

static const struct rule_case cases[] = {
	/* replace: the whole value has to match; the replacement is put into target_label. */
	{"a=foo b=bar",
	 ONE(SOURCES("a"), .regex = "f(.*)", .target_label = "d", .replacement = "ch${1}-ch${1}"),
	 "a=foo b=bar d=choo-choo"},
	{"a=foo", ONE(SOURCES("a"), .regex = "o", .target_label = "d"), "a=foo"},
	{"a=foo", ONE(SOURCES("a"), .regex = "o|fo|foo", .target_label = "d", .replacement = "x"),
	 "a=foo d=x"},
	/* Default regex and replacement copy the value; nothing to copy deletes the target. */
	{"a=foo", ONE(SOURCES("a"), .target_label = "b"), "a=foo b=foo"},
	{"a=foo b=bar", ONE(SOURCES("none"), .target_label = "b"), "a=foo"},
	{"a=foo b=bar", ONE(.target_label = "b", .replacement = ""), "a=foo"},
	{"a=foo", ONE(.target_label = "env", .replacement = "prod"), "a=foo env=prod"},
	/* Separators stand between values, also of labels that are missing. */
	{"a=1 b=2", ONE(SOURCES("a", "b"), .target_label = "c"), "a=1 b=2 c=1;2"},
	{"a=1 c=3", ONE(SOURCES("a", "b", "c"), .separator = "/", .target_label = "d"),
	 "a=1 c=3 d=1//3"},
	{"a=1 b=2", ONE(SOURCES("a", "b"), .separator = "", .target_label = "c"), "a=1 b=2 c=12"},
	/* Groups by number and name; $1x is the group "1x", which does not exist. */
	{"a=foobar",
	 ONE(SOURCES("a"), .regex = "(foo)(?P<rest>.*)", .target_label = "b",
	     .replacement = "${rest}-$1-$2-$0"),
	 "a=foobar b=bar-foo-bar-foobar"},
	{"a=x", ONE(SOURCES("a"), .regex = "(.)", .target_label = "b", .replacement = "$1y-${1}y"),
	 "a=x b=-xy"},
	{"a=x", ONE(SOURCES("a"), .regex = "(.)(y)?", .target_label = "b", .replacement = "[$2$9]"),
	 "a=x b=[]"},
	{"a=x", ONE(SOURCES("a"), .target_label = "b", .replacement = "5$$-$"), "a=x b=5$-$"},
	/* The target may hold groups; what becomes no name changes nothing. */
	{"a=foo:bar",
	 ONE(SOURCES("a"), .regex = "(.*):(.*)", .target_label = "${1}", .replacement = "$2"),
	 "a=foo:bar foo=bar"},
	{"a=1:bar",
	 ONE(SOURCES("a"), .regex = "(.*):(.*)", .target_label = "$1", .replacement = "$2"),
	 "a=1:bar"},
	{"a=1:bar",
	 ONE(SOURCES("a"), .regex = "(.*):(.*)", .target_label = "x_$1", .replacement = "$2"),
	 "a=1:bar x_1=bar"},
	/* '.' matches line breaks, '$' only the end. */
	{"a=x\ny", ONE(SOURCES("a"), .regex = "x.y", .target_label = "b", .replacement = "1"),
	 "a=x\ny b=1"},
	{"a=x\n", ONE(SOURCES("a"), .regex = "x$", .target_label = "b", .replacement = "1"),
	 "a=x\n"},
	{"a=FOO", ONE(SOURCES("a"), .regex = "(?i)f(o+)", .target_label = "b"), "a=FOO b=OO"},
	/* keep, drop */
	{"a=foo", ONE(.action = RELABEL_KEEP, SOURCES("a"), .regex = "foo"), "a=foo"},
	{"a=foo", ONE(.action = RELABEL_KEEP, SOURCES("a"), .regex = "fo"), NULL},
	{"a=foo", ONE(.action = RELABEL_KEEP, SOURCES("b"), .regex = ".+"), NULL},
	{"a=foo", ONE(.action = RELABEL_DROP, SOURCES("a"), .regex = "f|foo"), NULL},
	{"a=foo", ONE(.action = RELABEL_DROP, SOURCES("a"), .regex = "f|fooo"), "a=foo"},
	{"a=foo", ONE(.action = RELABEL_DROP, SOURCES("b"), .regex = ""), NULL},
	/* keepequal, dropequal: a label that is missing is empty */
	{"a=1 b=1", ONE(.action = RELABEL_KEEPEQUAL, SOURCES("a"), .target_label = "b"), "a=1 b=1"},
	{"a=1 b=2", ONE(.action = RELABEL_KEEPEQUAL, SOURCES("a"), .target_label = "b"), NULL},
	{"a=1", ONE(.action = RELABEL_KEEPEQUAL, SOURCES("c"), .target_label = "d"), "a=1"},
	{"a=1 b=1", ONE(.action = RELABEL_DROPEQUAL, SOURCES("a"), .target_label = "b"), NULL},
	{"a=1 b=11", ONE(.action = RELABEL_DROPEQUAL, SOURCES("a"), .target_label = "b"),
	 "a=1 b=11"},
	/* hashmod: md5("baz") ends in …, its last 8 bytes mod 1000 */
	{"c=baz",
	 ONE(.action = RELABEL_HASHMOD, SOURCES("c"), .target_label = "d", .modulus = 1000),
	 "c=baz d=976"},
	{"c=foo\nbar",
	 ONE(.action = RELABEL_HASHMOD, SOURCES("c"), .target_label = "d", .modulus = 1000),
	 "c=foo\nbar d=734"},
	/* labelmap, labeldrop, labelkeep look at names */
	{"__meta_x=1 __meta_y=2 a=3", ONE(.action = RELABEL_LABELMAP, .regex = "__meta_(.+)"),
	 "__meta_x=1 __meta_y=2 a=3 x=1 y=2"},
	{"a=1 a1=2 b=3", ONE(.action = RELABEL_LABELMAP, .regex = "a(.*)", .replacement = "z"),
	 "a=1 a1=2 b=3 z=2"},
	{"a=1 a1=2 b=3", ONE(.action = RELABEL_LABELDROP, .regex = "a.*"), "b=3"},
	{"a=1 a1=2 b=3", ONE(.action = RELABEL_LABELDROP, .regex = "1"), "a=1 a1=2 b=3"},
	{"a=1 a1=2 b=3", ONE(.action = RELABEL_LABELKEEP, .regex = "a|b"), "a=1 b=3"},
	/* labelmap sees the labels as they were: no chain from x_x_a to x_a to a */
	{"x_x_a=1", ONE(.action = RELABEL_LABELMAP, .regex = "x_(.*)"), "x_a=1 x_x_a=1"},
	/* lowercase, uppercase; joined like others */
	{"a=FoO", ONE(.action = RELABEL_LOWERCASE, SOURCES("a"), .target_label = "a"), "a=foo"},
	{"a=FoO b=x", ONE(.action = RELABEL_UPPERCASE, SOURCES("a", "b"), .target_label = "c"),
	 "a=FoO b=x c=FOO;X"},
	{"a=\xc3\x84\xce\xa9z", ONE(.action = RELABEL_LOWERCASE, SOURCES("a"), .target_label = "b"),
	 "a=\xc3\x84\xce\xa9z b=\xc3\xa4\xcf\x89z"},
	{"a=1", ONE(.action = RELABEL_LOWERCASE, SOURCES("b"), .target_label = "a"), ""},
	/* in order: a later rule sees what an earlier one did; a drop ends it */
	{"comm=git",
	 .rules = {{SOURCES("comm"), .target_label = "__tmp", .replacement = "x$1"},
		   {SOURCES("__tmp"), .regex = "x(.*)", .target_label = "y"}},
	 .n_rules = 2, "__tmp=xgit comm=git y=git"},
	{"comm=swapper",
	 .rules = {{.action = RELABEL_DROP, SOURCES("comm"), .regex = "swapper"},
		   {.target_label = "comm", .replacement = "late"}},
	 .n_rules = 2, NULL},
	{"__meta_gitaly_cgroup=repos-889",
	 ONE(SOURCES("__meta_gitaly_cgroup"), .regex = "(repos-\\d+)", .target_label = "cgroup"),
	 "__meta_gitaly_cgroup=repos-889 cgroup=repos-889"},
};

static void rules_mean_what_they_mean_in_prometheus(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check(&cases[i], i);
}

static const struct fault_case {
	struct relabel_rule rule;
	enum relabel_field field;
	const char *text;
} faults[] = {
	{{0}, RELABEL_FIELD_RULE, "action replace needs a target_label"},
	{{.action = RELABEL_HASHMOD, .target_label = "a"},
	 RELABEL_FIELD_RULE,
	 "action hashmod needs a modulus above 0"},
	{{.action = RELABEL_HASHMOD, .target_label = "$1", .modulus = 2},
	 RELABEL_FIELD_TARGET_LABEL,
	 "\"$1\" is no name of a label"},
	{{.target_label = "a-b"}, RELABEL_FIELD_TARGET_LABEL, "\"a-b\" is no name of a label"},
	{{.target_label = "a-$1"}, RELABEL_FIELD_TARGET_LABEL, "\"a-$1\" is no name of a label"},
	{{.target_label = "a", SOURCES("ok", "9")},
	 RELABEL_FIELD_SOURCE_LABELS,
	 "\"9\" is no name of a label"},
	{{.action = RELABEL_LABELDROP, .regex = "a", .target_label = "x"},
	 RELABEL_FIELD_TARGET_LABEL,
	 "action labeldrop takes no target_label"},
	{{.action = RELABEL_LABELKEEP, SOURCES("a")},
	 RELABEL_FIELD_SOURCE_LABELS,
	 "action labelkeep takes no source_labels"},
	{{.action = RELABEL_KEEPEQUAL, SOURCES("a"), .target_label = "b", .regex = "x"},
	 RELABEL_FIELD_REGEX,
	 "action keepequal takes no regex"},
	{{.action = RELABEL_DROPEQUAL, SOURCES("a"), .target_label = "b", .modulus = 1},
	 RELABEL_FIELD_MODULUS,
	 "action dropequal takes no modulus"},
	{{.action = RELABEL_UPPERCASE, SOURCES("a"), .target_label = "b", .replacement = "x"},
	 RELABEL_FIELD_REPLACEMENT,
	 "action uppercase takes no replacement"},
	{{.action = RELABEL_LABELMAP, .replacement = "a-b"},
	 RELABEL_FIELD_REPLACEMENT,
	 "\"a-b\" gives no name of a label"},
	{{.target_label = "a", .regex = "(x"},
	 RELABEL_FIELD_REGEX,
	 "regular expression '(x': missing closing parenthesis at character 3"},
};

static void rules_that_prometheus_refuses_are_refused(void **state)
{
	(void)state;
	struct relabel *relabel = relabel_new();
	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		enum relabel_field field = RELABEL_FIELD_RULE;
		struct error *err = relabel_add(relabel, &faults[i].rule, &field);
		assert_non_null(err);
		assert_string_equal(error_text(err), faults[i].text);
		assert_int_equal(error_get_code(err), ERROR_USAGE);
		assert_int_equal(field, faults[i].field);
		error_free(err);
	}
	assert_int_equal(relabel_n_rules(relabel), 0);
	relabel_free(relabel);
}

static void relabel_gives_up_on_a_regex_that_is_too_costly(void **state)
{
	(void)state;
	struct relabel *relabel = relabel_new();
	enum relabel_field field;
	const struct relabel_rule rule = {SOURCES("a"), .regex = "(a|a)*[bd]", .target_label = "b"};
	assert_null(relabel_add(relabel, &rule, &field));
	struct label_set set;
	label_set_init(&set);
	static const char value[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac";
	label_set_put(&set, "a", 1, value, strlen(value));
	assert_int_equal(relabel_apply(relabel, &set), RELABEL_LIMIT);
	label_set_fini(&set);
	relabel_free(relabel);
}

static void relabel_says_when_labels_do_not_fit(void **state)
{
	(void)state;
	struct relabel *relabel = relabel_new();
	enum relabel_field field;
	const struct relabel_rule twice = {SOURCES("a"), .target_label = "a",
					   .replacement = "$1$1"};
	for (int i = 0; i < 20; i++)
		assert_null(relabel_add(relabel, &twice, &field));
	struct label_set set;
	label_set_init(&set);
	label_set_put(&set, "a", 1, "x", 1);
	assert_int_equal(relabel_apply(relabel, &set), RELABEL_LIMIT);
	label_set_fini(&set);
	relabel_free(relabel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_mean_what_they_mean_in_prometheus),
		cmocka_unit_test(rules_that_prometheus_refuses_are_refused),
		cmocka_unit_test(relabel_gives_up_on_a_regex_that_is_too_costly),
		cmocka_unit_test(relabel_says_when_labels_do_not_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
