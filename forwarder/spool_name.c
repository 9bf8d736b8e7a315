/* SPDX-License-Identifier: Apache-2.0 */
/* Spool file names, to and from text. */
#include "forwarder/spool_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void spool_name_format(const struct spool_name *name, const char *suffix,
		       char out[SPOOL_NAME_BYTES])
{
	snprintf(out, SPOOL_NAME_BYTES,
		 "%016" PRIx64 "-%016" PRIx64 "-%" PRIx64 "-%" PRIx32 "-%" PRIx32 "-%" PRIx64 "%s",
		 name->sequence, name->enqueued_ns, name->bytes, name->n_requests, name->n_profiles,
		 name->n_samples, suffix);
}

/* Hexadecimal digits up to the end character, at most those of 64 bits. */
static bool parse_number(const char **text, char end, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;
	const char *p = *text;
	for (int n = 0; *p != end; n++, p++) {
		unsigned digit;
		if (*p >= '0' && *p <= '9')
			digit = (unsigned)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			digit = (unsigned)(*p - 'a') + 10;
		else
			return false;
		if (n == 16)
			return false;
		value = value << 4 | digit;
	}
	*text = p + 1;
	*out = value;
	return value <= max;
}

bool spool_name_parse(const char *text, const char *suffix, struct spool_name *out)
{
	struct spool_name name;
	uint64_t n_requests, n_profiles;
	const char *p = text;
	if (!parse_number(&p, '-', UINT64_MAX, &name.sequence) ||
	    !parse_number(&p, '-', UINT64_MAX, &name.enqueued_ns) ||
	    !parse_number(&p, '-', UINT64_MAX, &name.bytes) ||
	    !parse_number(&p, '-', UINT32_MAX, &n_requests) ||
	    !parse_number(&p, '-', UINT32_MAX, &n_profiles) ||
	    !parse_number(&p, '.', UINT64_MAX, &name.n_samples))
		return false;
	name.n_requests = (uint32_t)n_requests;
	name.n_profiles = (uint32_t)n_profiles;
	char again[SPOOL_NAME_BYTES];
	spool_name_format(&name, suffix, again);
	if (strcmp(text, again) != 0)
		return false;
	*out = name;
	return true;
}

void spool_names_add(struct spool_names *names, const struct spool_name *name)
{
	if (names->n == names->capacity) {
		names->capacity = names->capacity ? names->capacity * 2 : 64;
		names->items = mem_realloc(names->items, names->capacity, sizeof(*names->items));
	}
	names->items[names->n++] = *name;
}

static int by_sequence(const void *a, const void *b)
{
	const struct spool_name *x = a, *y = b;
	if (x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	return memcmp(x, y, sizeof(*x));
}

void spool_names_sort(struct spool_names *names)
{
	if (names->n)
		qsort(names->items, names->n, sizeof(*names->items), by_sequence);
}

void spool_names_fini(struct spool_names *names)
{
	mem_free(names->items);
	*names = (struct spool_names){0};
}

static void replace(const char *from_text, char from, char to, char out[SPOOL_FOLDER_BYTES])
{
	snprintf(out, SPOOL_FOLDER_BYTES, "%s", from_text);
	for (char *p = out; *p; p++)
		*p = *p == from ? to : *p;
}

void spool_folder_format(const char *exporter, char out[SPOOL_FOLDER_BYTES])
{
	replace(exporter, '/', '~', out);
}

void spool_folder_parse(const char *folder, char out[SPOOL_FOLDER_BYTES])
{
	replace(folder, '~', '/', out);
}
