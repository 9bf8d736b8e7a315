/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/config_value.h"

#include <stddef.h>
#include <string.h>

#include "base/compiler.h"

bool config_value_bool(const char *text, bool *out)
{
	*out = strcmp(text, "true") == 0;
	return *out || strcmp(text, "false") == 0;
}

/* Digits at *p; moves behind them. */
static bool read_digits(const char **p, uint64_t *out)
{
	uint64_t value = 0;
	const char *start = *p;
	for (; **p >= '0' && **p <= '9'; (*p)++) {
		if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(**p - '0'), &value))
			return false;
	}
	*out = value;
	return *p > start;
}

bool config_value_integer(const char *text, uint64_t *out)
{
	return read_digits(&text, out) && *text == '\0';
}

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit *find_unit(const struct unit *units, size_t n, const char *name,
				    size_t n_name)
{
	for (size_t i = 0; i < n; i++) {
		if (strlen(units[i].name) == n_name && memcmp(units[i].name, name, n_name) == 0)
			return &units[i];
	}
	return NULL;
}

bool config_value_duration(const char *text, uint64_t *ns_out)
{
	static const struct unit units[] = {
		{"d", UINT64_C(86400000000000)},
		{"h", UINT64_C(3600000000000)},
		{"m", UINT64_C(60000000000)},
		{"s", UINT64_C(1000000000)},
		{"ms", 1000000},
		{"us", 1000},
		{"ns", 1},
	};
	*ns_out = 0;
	if (strcmp(text, "0") == 0)
		return true;
	const struct unit *last = NULL;
	do {
		uint64_t value;
		if (!read_digits(&text, &value))
			return false;
		size_t n = strspn(text, "dhmsnu");
		const struct unit *unit = find_unit(units, ARRAY_LEN(units), text, n);
		if (!unit || (last && unit <= last) ||
		    __builtin_mul_overflow(value, unit->factor, &value) ||
		    __builtin_add_overflow(*ns_out, value, ns_out))
			return false;
		last = unit;
		text += n;
	} while (*text);
	return true;
}

bool config_value_size(const char *text, uint64_t *bytes_out)
{
	static const struct unit units[] = {
		{"", 1},
		{"B", 1},
		{"KiB", UINT64_C(1) << 10},
		{"MiB", UINT64_C(1) << 20},
		{"GiB", UINT64_C(1) << 30},
		{"TiB", UINT64_C(1) << 40},
	};
	if (!read_digits(&text, bytes_out))
		return false;
	const struct unit *unit = find_unit(units, ARRAY_LEN(units), text, strlen(text));
	return unit && !__builtin_mul_overflow(*bytes_out, unit->factor, bytes_out);
}

bool config_value_percent(const char *text, double *out)
{
	uint64_t whole;
	if (!read_digits(&text, &whole))
		return false;
	double value = (double)whole;
	if (*text == '.') {
		double unit = 0.1;
		const char *digits = ++text;
		for (; *text >= '0' && *text <= '9'; text++, unit /= 10)
			value += unit * (*text - '0');
		if (text == digits)
			return false;
	}
	*out = value;
	return strcmp(text, "%") == 0;
}
