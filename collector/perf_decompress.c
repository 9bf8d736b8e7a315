/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/perf_decompress.h"

#include <zstd.h>

void perf_decompress_fini(struct perf_decompress *decompress)
{
	ZSTD_freeDCtx(decompress->zstd);
	*decompress = (struct perf_decompress){0};
}

void perf_decompress_feed(struct perf_decompress *decompress, const uint8_t *payload, size_t n)
{
	decompress->next = payload;
	decompress->n_left = n;
	decompress->n_in += n;
}

static struct error *fail(enum error_code code, const char *why)
{
	return error_number(error_new(code, "decompression failed: %s", why), 605);
}

struct error *perf_decompress_read(struct perf_decompress *decompress, uint8_t *out, size_t size,
				   size_t *n_out)
{
	if (!decompress->zstd) {
		decompress->zstd = ZSTD_createDCtx();
		if (!decompress->zstd)
			return fail(ERROR_LIMIT, "no memory for a zstd stream");
	}
	ZSTD_inBuffer input = {.src = decompress->next, .size = decompress->n_left};
	ZSTD_outBuffer output = {.dst = out, .size = size};
	while (output.pos < output.size) {
		size_t in_before = input.pos;
		size_t out_before = output.pos;
		size_t rc = ZSTD_decompressStream(decompress->zstd, &output, &input);
		if (ZSTD_isError(rc))
			return fail(ERROR_BAD_DATA, ZSTD_getErrorName(rc));
		/* zstd may hold output back although all input is taken: ask until it gives none.
		 */
		if (input.pos == in_before && output.pos == out_before)
			break;
		if (input.pos == input.size && rc == 0)
			break;
	}
	decompress->next += input.pos;
	decompress->n_left -= input.pos;
	decompress->n_out += output.pos;
	if (decompress->n_out > PERF_DECOMPRESS_FREE_BYTES &&
	    decompress->n_out / PERF_DECOMPRESS_RATIO_MAX > decompress->n_in)
		return fail(ERROR_LIMIT, "the records expand more than 2048 times");
	*n_out = output.pos;
	return NULL;
}
