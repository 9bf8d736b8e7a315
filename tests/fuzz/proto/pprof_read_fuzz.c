/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a pprof profile: what is read must encode, and read again to the same bytes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "proto/pprof_encode.h"
#include "proto/pprof_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode(const struct profile *profile, struct buf *out)
{
	const struct pprof_encode_options options = {.gzip_level = 0};
	struct error *err = pprof_encode_buf(profile, &options, out);
	if (err)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile *profile = NULL;
	struct pprof_read_options options = {.max_bytes = 16 << 20};
	struct error *err = pprof_read(data, size, &options, &profile, NULL);
	if (err) {
		error_free(err);
		return 0;
	}
	struct buf first;
	struct buf second;
	buf_init(&first, (size_t)1 << 30);
	buf_init(&second, (size_t)1 << 30);
	encode(profile, &first);
	if (first.size != pprof_encode_count_bytes(profile))
		abort();
	struct profile *again = NULL;
	err = pprof_read(first.data, first.size, NULL, &again, NULL);
	/* A small odd file may become a larger one that is out of proportion, never a broken one.
	 */
	if (err && error_get_code(err) != ERROR_LIMIT)
		abort();
	if (!err) {
		encode(again, &second);
		if (first.size != second.size || memcmp(first.data, second.data, first.size) != 0)
			abort();
	}
	error_free(err);
	profile_free(again);
	profile_free(profile);
	buf_fini(&first);
	buf_fini(&second);
	return 0;
}
