/* SPDX-License-Identifier: Apache-2.0 */
/* A symbol file from elsewhere: as it is, and with its checksums made right. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symcache/symbol_file.h"
#include "tests/support/symbol_file_seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_ADDRESSES = 64 };

static void look_up(struct symbol_file *file, uint64_t svma)
{
	struct symbol_result result;
	bool is_found = symbol_file_lookup(file, svma, &result);
	assert(is_found == (result.reason == SYMBOL_FOUND) && is_found == (result.n_frames != 0));
	assert(result.n_frames <= SYMBOL_FRAMES_MAX);
	size_t n = 0;
	for (uint32_t i = 0; i < result.n_frames; i++) {
		const struct symbol_frame *frame = &result.frames[i];
		n += strlen(frame->name) + strlen(frame->linkage_name);
		n += frame->file ? strlen(frame->file) : 0;
	}
	assert(n < SIZE_MAX);
}

static void use(const uint8_t *bytes, size_t size)
{
	struct symbol_file *file;
	struct error *err = symbol_file_open_bytes(bytes, size, SYMCACHE_DEMANGLE_NORMAL, &file);
	if (err) {
		error_free(err);
		return;
	}
	look_up(file, 0);
	look_up(file, UINT64_MAX);
	/* Addresses as the file's own words say them. */
	size_t step = size / N_ADDRESSES + 1;
	for (size_t at = 0; at + sizeof(uint64_t) <= size; at += step) {
		uint64_t svma;
		memcpy(&svma, bytes + at, sizeof(svma));
		look_up(file, svma);
		look_up(file, 0x1000 + at * 16);
	}
	error_free(symbol_file_verify(file));
	symbol_file_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	use(data, size);
	uint8_t *sealed = malloc(size ? size : 1);
	if (size)
		memcpy(sealed, data, size);
	symbol_file_seal(sealed, size);
	use(sealed, size);
	free(sealed);
	return 0;
}
