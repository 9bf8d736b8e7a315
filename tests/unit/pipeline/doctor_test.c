/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "pipeline/doctor.h"

static void doctor_looks_at_everything_and_offers_remedies(void **state)
{
	(void)state;
	static const char *const names[] = {
		"kernel", "sampling", "paranoid", "capabilities", "kernel_names", "cycles",
		"mlock",  "cgroup",   "tracefs",  "max_rate",	  "open_files",	  "debug_files"};
	struct doctor_result result;
	doctor_examine(&result);
	assert_int_equal(result.n, ARRAY_LEN(names));
	enum doctor_status worst = DOCTOR_OK;
	for (size_t i = 0; i < result.n; i++) {
		const struct doctor_check *check = &result.checks[i];
		assert_string_equal(check->name, names[i]);
		assert_true(check->text[0] != '\0');
		assert_int_equal(check->fix != NULL, check->status != DOCTOR_OK);
		if (check->status > worst)
			worst = check->status;
	}
	assert_int_equal(result.worst, worst);
	assert_string_equal(doctor_status_name(DOCTOR_FAIL), "fail");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(doctor_looks_at_everything_and_offers_remedies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
