/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/cpu_set.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"

enum { ONLINE_MAX_BYTES = 64 << 10 };

void cpu_set_init(struct cpu_set *set)
{
	*set = (struct cpu_set){0};
}

void cpu_set_fini(struct cpu_set *set)
{
	mem_free(set->cpus);
	*set = (struct cpu_set){0};
}

/* One decimal below CPU_SET_MAX; NULL if there is none. */
static const char *read_number(const char *s, uint32_t *out)
{
	uint32_t value = 0;
	const char *p = s;

	for (; isdigit((unsigned char)*p) && value < CPU_SET_MAX; p++)
		value = value * 10 + (uint32_t)(*p - '0');
	if (p == s || value >= CPU_SET_MAX)
		return NULL;
	*out = value;
	return p;
}

struct error *cpu_set_parse(const char *text, struct cpu_set *out)
{
	struct cpu_set set CLEANUP(cpu_set_fini) = {0};
	uint32_t least = 0; /* what the next number must reach */

	for (const char *p = text; *p && *p != '\n';) {
		uint32_t first;
		p = read_number(p, &first);
		uint32_t last = first;
		if (p && *p == '-')
			p = read_number(p + 1, &last);
		if (!p || first < least || last < first || (*p && *p != ',' && *p != '\n'))
			return error_new(ERROR_BAD_DATA, "not a list of CPUs: %.64s", text);
		set.cpus = mem_realloc(set.cpus, set.n + (last - first) + 1, sizeof(*set.cpus));
		for (uint32_t cpu = first; cpu <= last; cpu++)
			set.cpus[set.n++] = cpu;
		least = last + 1;
		if (*p == ',')
			p++;
	}
	*out = set;
	set = (struct cpu_set){0};
	return NULL;
}

struct error *cpu_set_read_online(struct cpu_set *out)
{
	struct buf text CLEANUP(buf_fini);

	buf_init(&text, ONLINE_MAX_BYTES);
	struct error *err = file_read_all("/sys/devices/system/cpu/online", &text);
	if (!err)
		err = cpu_set_parse(buf_string(&text), out);
	if (!err && out->n == 0)
		err = error_new(ERROR_BAD_DATA, "no CPU is online");
	return error_wrap(err, "list of online CPUs");
}

bool cpu_set_has(const struct cpu_set *set, uint32_t cpu)
{
	for (uint32_t i = 0; i < set->n; i++) {
		if (set->cpus[i] == cpu)
			return true;
	}
	return false;
}

bool cpu_set_equal(const struct cpu_set *a, const struct cpu_set *b)
{
	return a->n == b->n &&
	       (a->n == 0 || memcmp(a->cpus, b->cpus, a->n * sizeof(*a->cpus)) == 0);
}
