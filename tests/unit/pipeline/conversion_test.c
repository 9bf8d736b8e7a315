/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "pipeline/conversion.h"

static struct conversion_options options;

static int reset(void **state)
{
	(void)state;
	conversion_options_init(&options);
	return 0;
}

static void assert_refused(int id, const char *value, const char *part)
{
	struct error *err = conversion_options_set(&options, id, value);
	assert_non_null(err);
	assert_int_equal(error_get_code(err), ERROR_USAGE);
	assert_non_null(strstr(error_text(err), part));
	error_free(err);
}

static void conversion_labels_are_a_set_of_names(void **state)
{
	(void)state;
	assert_int_equal(options.labels, CONVERTER_LABEL_COMM | CONVERTER_LABEL_PID);
	assert_null(conversion_options_set(&options, CONVERSION_LABELS, "cpu,tid,cpu"));
	assert_int_equal(options.labels, CONVERTER_LABEL_CPU | CONVERTER_LABEL_TID);
	assert_null(conversion_options_set(&options, CONVERSION_LABELS, "none"));
	assert_int_equal(options.labels, 0);
	assert_refused(CONVERSION_LABELS, "comm,thraed", "did you mean \"thread\"?");
	assert_refused(CONVERSION_LABELS, "", "empty list");
	assert_int_equal(conversion_label_of("cgroup"), CONVERTER_LABEL_CGROUP);
	assert_int_equal(conversion_label_of("none"), 0);
}

static void conversion_debug_roots_replace_the_default_in_order(void **state)
{
	(void)state;
	assert_null(options.symbols.debug_roots);
	for (int i = 0; i < CONVERSION_DEBUG_ROOTS_MAX; i++)
		assert_null(conversion_options_set(&options, CONVERSION_DEBUG_ROOT,
						   i ? "/other" : "/first"));
	assert_refused(CONVERSION_DEBUG_ROOT, "/more", "--debug-root");
	assert_string_equal(options.symbols.debug_roots[0], "/first");
	assert_null(options.symbols.debug_roots[CONVERSION_DEBUG_ROOTS_MAX]);
}

static void conversion_demangling_is_one_of_three(void **state)
{
	(void)state;
	assert_int_equal(options.symbols.demangle, SYMCACHE_DEMANGLE_NORMAL);
	assert_null(conversion_options_set(&options, CONVERSION_DEMANGLE, "full"));
	assert_int_equal(options.symbols.demangle, SYMCACHE_DEMANGLE_FULL);
	assert_null(conversion_options_set(&options, CONVERSION_DEMANGLE, "none"));
	assert_int_equal(options.symbols.demangle, SYMCACHE_DEMANGLE_NONE);
	assert_refused(CONVERSION_DEMANGLE, "some", "full, normal, none");
}

static void conversion_options_reach_symcache(void **state)
{
	(void)state;
	static const int ids[] = {CONVERSION_EVENT,   CONVERSION_STRICT,  CONVERSION_NO_SYMBOLS,
				  CONVERSION_SYSROOT, CONVERSION_VMLINUX, CONVERSION_TRUST_PATHS,
				  CONVERSION_KALLSYMS};
	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		assert_null(conversion_options_set(&options, ids[i], "word"));
	assert_string_equal(options.event, "word");
	assert_string_equal(options.symbols.sysroot, "word");
	assert_string_equal(options.symbols.vmlinux, "word");
	assert_string_equal(options.symbols.kallsyms, "word");
	assert_true(options.is_strict && options.symbols.no_symbols && options.symbols.trust_paths);
}

static void assert_unusable(int id, const char *value, const char *part)
{
	conversion_options_init(&options);
	assert_null(conversion_options_set(&options, id, value));
	struct error *err = conversion_options_check(&options);
	assert_non_null(err);
	assert_int_equal(error_get_number(err), 614);
	if (!strstr(error_text(err), part))
		fail_msg("\"%s\" is not in \"%s\"", part, error_text(err));
	error_free(err);
}

static void conversion_paths_that_cannot_be_used_are_errors(void **state)
{
	(void)state;
	assert_null(conversion_options_check(&options));
	assert_unusable(CONVERSION_KALLSYMS, "/nosuch", "--kallsyms /nosuch: No such file");
	assert_unusable(CONVERSION_KALLSYMS, "/tmp", "not a file");
	assert_unusable(CONVERSION_KALLSYMS, "/dev/null", "not a file");
	assert_unusable(CONVERSION_VMLINUX, "/nosuch", "--vmlinux /nosuch: No such file");
	assert_unusable(CONVERSION_VMLINUX, "/etc/passwd", "not an ELF file");
	assert_unusable(CONVERSION_DEBUG_ROOT, "/nosuch", "--debug-root /nosuch: No such file");
	assert_unusable(CONVERSION_SYSROOT, "/etc/passwd", "not a folder");
	conversion_options_init(&options);
	assert_null(conversion_options_set(&options, CONVERSION_KALLSYMS, "/etc/passwd"));
	assert_null(conversion_options_set(&options, CONVERSION_VMLINUX, "/proc/self/exe"));
	assert_null(conversion_options_set(&options, CONVERSION_SYSROOT, "/"));
	assert_null(conversion_options_set(&options, CONVERSION_DEBUG_ROOT, "/tmp"));
	assert_null(conversion_options_check(&options));
	assert_string_equal(options.first, "kallsyms");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(conversion_labels_are_a_set_of_names, reset),
		cmocka_unit_test_setup(conversion_debug_roots_replace_the_default_in_order, reset),
		cmocka_unit_test_setup(conversion_demangling_is_one_of_three, reset),
		cmocka_unit_test_setup(conversion_options_reach_symcache, reset),
		cmocka_unit_test_setup(conversion_paths_that_cannot_be_used_are_errors, reset),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
