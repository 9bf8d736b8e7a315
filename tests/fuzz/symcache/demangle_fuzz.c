/* SPDX-License-Identifier: Apache-2.0 */
/* A symbol name from elsewhere. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "symcache/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[DEMANGLE_MAX_NAME_BYTES + 16];
	if (size >= sizeof(name))
		return 0;
	memcpy(name, data, size);
	name[size] = 0;
	struct demangled out;
	if (demangle_name(name, SYMCACHE_DEMANGLE_NORMAL, &out))
		assert(strlen(out.text) < DEMANGLE_MAX_OUTPUT_BYTES);
	if (demangle_name(name, SYMCACHE_DEMANGLE_FULL, &out))
		assert(strlen(out.text) < DEMANGLE_MAX_OUTPUT_BYTES);
	return 0;
}
