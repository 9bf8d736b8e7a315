/* SPDX-License-Identifier: Apache-2.0 */
/* Magic numbers and first lines of what users give to a profile reader by mistake. */
#include "proto/foreign_profile.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

static const struct {
	const char *magic;
	const char *name;
} known[] = {
	{"PERFILE2", "a perf.data file"},
	{"2ELIFREP", "a perf.data file of the other byte order"},
	{"PERFFILE", "a perf.data file of version 1"},
	{"\x7f"
	 "ELF",
	 "an ELF file"},
	{"\x28\xb5\x2f\xfd", "zstd-compressed"},
	{"\xfd"
	 "7zXZ",
	 "xz-compressed"},
	{"BZh", "bzip2-compressed"},
	{"PK\x03\x04", "a zip archive"},
	{"go 1.", "a Go execution trace"},
	{"heap profile:", "a heap profile of the legacy text format"},
	{"goroutine profile:", "a goroutine profile of the legacy text format"},
	{"threadcreate profile:", "a thread profile of the legacy text format"},
	{"--- contention", "a contention profile of the legacy text format"},
	{"--- mutex", "a mutex profile of the legacy text format"},
	{"--- threadz", "a thread profile of the legacy text format"},
	{"--- heapz", "a heap profile of the legacy text format"},
	{"--- growthz", "a heap growth profile of the legacy text format"},
	{"--- symbol", "a symbolized profile of the legacy text format"},
	{"{", "JSON text"},
	{"<", "HTML or XML text"},
};

/* gperftools' CPU profile begins with the words 0, 3, 0, period, 0 of 4 or 8 bytes. */
static bool is_legacy_cpu(const uint8_t *p, size_t size, size_t word)
{
	if (size < 5 * word)
		return false;
	for (size_t i = 0; i < 5; i++) {
		if (i == 3)
			continue;
		uint8_t first = p[i * word];
		uint8_t last = p[i * word + word - 1];
		uint8_t expected = i == 1 ? 3 : 0;
		bool is_little = first == expected && !last;
		bool is_big = last == expected && !first;
		if (!is_little && !is_big)
			return false;
		for (size_t byte = 1; byte + 1 < word; byte++) {
			if (p[i * word + byte])
				return false;
		}
	}
	return true;
}

const char *foreign_profile_name(const void *bytes, size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		size_t n = strlen(known[i].magic);
		if (size >= n && !memcmp(bytes, known[i].magic, n))
			return known[i].name;
	}
	if (is_legacy_cpu(bytes, size, 8) || is_legacy_cpu(bytes, size, 4))
		return "a CPU profile of the legacy binary format";
	const uint8_t *p = bytes;
	size_t head = size < 256 ? size : 256;
	for (size_t i = 0; i < head; i++) {
		bool is_text = (p[i] >= 0x20 && p[i] < 0x7f) || p[i] == '\n' || p[i] == '\t' ||
			       p[i] == '\r';
		if (!is_text)
			return NULL;
	}
	return head ? "text" : NULL;
}
