/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/demangle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void assert_form(const char *mangled, enum symcache_demangle mode, const char *wanted)
{
	struct demangled out;
	bool is_done = demangle_name(mangled, mode, &out);
	assert_string_equal(is_done ? out.text : mangled, wanted);
}

static void demangle_normal_keeps_template_arguments_and_drops_parameters(void **state)
{
	(void)state;
	enum symcache_demangle normal = SYMCACHE_DEMANGLE_NORMAL;
	assert_form("_Z3maxIiET_S0_S0_", normal, "max<int>");
	assert_form("_ZN3Foo3barEi", normal, "Foo::bar");
	assert_form("_ZNK3Foo3barEi", normal, "Foo::bar");
	assert_form("_ZNSt6vectorIiSaIiEE9push_backERKi", normal,
		    "std::vector<int, std::allocator<int> >::push_back");
	assert_form("_ZN3Foo3barEi.cold", normal, "Foo::bar");
	assert_form("_ZN3Foo3barEi.constprop.0.isra.3", normal, "Foo::bar");
	assert_form("_ZN3FooC2Ev", normal, "Foo::Foo");
	assert_form("_ZTv0_n12_N3Foo3barEv", normal, "virtual thunk to Foo::bar()");
}

static void demangle_full_keeps_everything(void **state)
{
	(void)state;
	enum symcache_demangle full = SYMCACHE_DEMANGLE_FULL;
	assert_form("_Z3maxIiET_S0_S0_", full, "int max<int>(int, int)");
	assert_form("_ZN3Foo3barEi.cold", full, "Foo::bar(int) [clone .cold]");
	assert_form("_ZNK3Foo3barEi", full, "Foo::bar(int) const");
}

static void demangle_none_leaves_names_alone(void **state)
{
	(void)state;
	assert_form("_ZN3Foo3barEi", SYMCACHE_DEMANGLE_NONE, "_ZN3Foo3barEi");
}

static void demangle_reads_both_manglings_of_rust(void **state)
{
	(void)state;
	enum symcache_demangle normal = SYMCACHE_DEMANGLE_NORMAL;
	assert_form("_ZN3std2rt10lang_start17h0123456789abcdefE", normal, "std::rt::lang_start");
	assert_form("_ZN3std2rt10lang_start17h0123456789abcdefE", SYMCACHE_DEMANGLE_FULL,
		    "std::rt::lang_start::h0123456789abcdef");
	assert_form("_RNvCs1234_7mycrate3foo", normal, "mycrate::foo");
	assert_form("_RINvNtC3std3mem8align_ofdE", normal, "std::mem::align_of::<f64>");
	assert_form("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE.llvm.1234567890", normal,
		    "core::fmt::Write::write_fmt");
}

static void demangle_reads_d(void **state)
{
	(void)state;
	enum symcache_demangle normal = SYMCACHE_DEMANGLE_NORMAL, full = SYMCACHE_DEMANGLE_FULL;
	assert_form("_D8demangle4testFaZv", normal, "demangle.test");
	assert_form("_D8demangle4testFaZv", full, "demangle.test(char)");
	assert_form("_D8demangle4testMxFZv", normal, "demangle.test");
	assert_form("_D8demangle4testMxFZv", full, "demangle.test() const");
	assert_form("_D3foo3barFiZ3bazMFNaNbZi", normal, "foo.bar(int).baz");
	assert_form("_D8demangle9__T4testZv", normal, "demangle.test!()");
	assert_form("_D8demangle3fooQeFiZv", normal, "demangle.foo.foo");
	assert_form("_D8demangle4testFaZv@plt", normal, "demangle.test@plt");
	assert_form("_Dmain", normal, "D main");
	assert_form("_DYNAMIC", normal, "_DYNAMIC");
	assert_form("$s4main3fooyyF", normal, "$s4main3fooyyF");
}

/* Pairs of pairs of pairs: each back reference doubles what it stands for. */
static void demangle_of_d_is_bounded(void **state)
{
	(void)state;
	char name[512] = "_D8demangle4testFB2ii";
	for (int i = 0; i < 40; i++) {
		char pair[16];
		snprintf(pair, sizeof(pair), "B2Q%cQ%c", i ? 'g' : 'f', i ? 'i' : 'h');
		strcat(name, pair);
	}
	strcat(name, "Zv");
	struct demangled out;
	clock_t start = clock();
	assert_false(demangle_name(name, SYMCACHE_DEMANGLE_FULL, &out));
	assert_true(clock() - start < CLOCKS_PER_SEC / 10);
}

static void demangle_leaves_what_is_not_mangled(void **state)
{
	(void)state;
	static const char *const names[] = {
		"main", "_start",     "_Z",    "_ZN",	"_R",
		"",	"foo.part.0", "_Zfoo", "_Z3fo", "_RINvNtC01_ofdE"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_form(names[i], SYMCACHE_DEMANGLE_NORMAL, names[i]);
}

/* Each level doubles the output: 10^11 characters if nobody stopped it. */
static void demangle_gives_up_on_exponential_names_at_once(void **state)
{
	(void)state;
	char name[512] = "_Z1f1AIiiE";
	size_t n = strlen(name);
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	for (unsigned i = 0; i < 34; i++) {
		const char part[] = {'S', '_',	     'I', 'S', digits[i], '_',
				     'S', digits[i], '_', 'E', 0};
		memcpy(name + n, part, sizeof(part));
		n += sizeof(part) - 1;
		if (i == 1)
			assert_form(
				name, SYMCACHE_DEMANGLE_FULL,
				"f(A<int, int>, A<A<int, int>, A<int, int> >, "
				"A<A<A<int, int>, A<int, int> >, A<A<int, int>, A<int, int> > >)");
	}
	struct timespec start, end;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	assert_form(name, SYMCACHE_DEMANGLE_FULL, name);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	assert_true(end.tv_sec - start.tv_sec < 2);
}

/* Deep nesting and many template scopes are what costs the demangler's stack most. */
static void demangle_survives_the_longest_names_that_it_takes(void **state)
{
	(void)state;
	static const char *const units[] = {"P",     "1AI",  "RT_", "FvP", "N1A",
					    "XspT_", "DpT_", "IiE", "Z1f"};
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		char name[DEMANGLE_MAX_NAME_BYTES + 1] = "_Z1fIiEv";
		size_t n = strlen(name);
		size_t unit = strlen(units[i]);
		while (n + unit + 1 < sizeof(name)) {
			memcpy(name + n, units[i], unit);
			n += unit;
		}
		name[n++] = 'i';
		name[n] = 0;
		struct demangled out;
		(void)demangle_name(name, SYMCACHE_DEMANGLE_FULL, &out);
		(void)demangle_name(name, SYMCACHE_DEMANGLE_NORMAL, &out);
	}
}

static void demangle_takes_names_of_over_1024_bytes(void **state)
{
	(void)state;
	char name[DEMANGLE_MAX_NAME_BYTES + 64] = "_Z1f";
	size_t n = strlen(name);
	while (n < 1800)
		name[n++] = 'i';
	name[n] = 0;
	assert_form(name, SYMCACHE_DEMANGLE_NORMAL, "f");
	while (n < DEMANGLE_MAX_NAME_BYTES + 1)
		name[n++] = 'i';
	name[n] = 0;
	assert_form(name, SYMCACHE_DEMANGLE_NORMAL, name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(demangle_normal_keeps_template_arguments_and_drops_parameters),
		cmocka_unit_test(demangle_full_keeps_everything),
		cmocka_unit_test(demangle_none_leaves_names_alone),
		cmocka_unit_test(demangle_reads_both_manglings_of_rust),
		cmocka_unit_test(demangle_reads_d),
		cmocka_unit_test(demangle_of_d_is_bounded),
		cmocka_unit_test(demangle_leaves_what_is_not_mangled),
		cmocka_unit_test(demangle_gives_up_on_exponential_names_at_once),
		cmocka_unit_test(demangle_survives_the_longest_names_that_it_takes),
		cmocka_unit_test(demangle_takes_names_of_over_1024_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
