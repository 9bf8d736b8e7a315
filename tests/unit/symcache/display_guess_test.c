/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/display_guess.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* These never change: files that exist rely on them. */
static void display_guess_joins_identifiers(void **state)
{
	(void)state;
	static const struct {
		const char *linkage, *want; /* NULL = no guess */
	} names[] = {
		{"_Z4mainv", "main"},
		{"_ZL6helperPKc", "helper"},
		{"_ZN3Foo3barEi", "Foo::bar"},
		{"_ZNK3Foo3barEv", "Foo::bar"},
		{"_ZNKR3Foo3barEv", "Foo::bar"},
		{"_ZN3FooC1Ev", "Foo::Foo"},
		{"_ZN1a3FooD0Ev", "a::Foo::~Foo"},
		{"_ZN12_GLOBAL__N_13runEv", "(anonymous namespace)::run"},
		{"_ZNSt6thread4joinEv", "std::thread::join"},
		{"_ZSt9terminatev", "std::terminate"},
		{"_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"},
		{"_ZN4core3fmt17h0123456789abcdefEv", "core::fmt"},
		{"main", NULL},
		{"_Z", NULL},
		{"_ZN", NULL},
		{"_ZNSt", NULL},
		{"_ZN9999999999999999999999a", NULL},
		{"_ZN20short", NULL},
		{"", NULL},
	};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char out[64];
		bool has_guess = display_guess(names[i].linkage, out, sizeof(out));
		assert_int_equal(has_guess, names[i].want != NULL);
		if (has_guess)
			assert_string_equal(out, names[i].want);
	}
}

static void display_guess_keeps_to_its_room(void **state)
{
	(void)state;
	char out[9];
	for (size_t max = 0; max < 9; max++)
		assert_false(display_guess("_ZN3Foo3barEi", out, max));
	assert_true(display_guess("_ZN3Foo3barEi", out, 9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(display_guess_joins_identifiers),
		cmocka_unit_test(display_guess_keeps_to_its_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
