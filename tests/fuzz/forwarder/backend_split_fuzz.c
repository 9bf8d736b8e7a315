/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a request of the spool. The first byte chooses the backend. What can be listed and
 * split must give parts that can be listed too, with the same number of samples altogether.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "forwarder/backend.h"
#include "proto/pprof_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_INPUT_BYTES = 64 << 10 };

struct tally {
	const struct backend *backend;
	uint64_t n_samples;
	unsigned n_requests;
};

static struct error *count_profile(void *context, const char *series, const uint8_t *pprof,
				   size_t n)
{
	struct tally *tally = context;
	(void)series;
	struct profile *profile;
	const struct pprof_read_options options = {.max_bytes = 16 << 20};
	struct error *err = pprof_read(pprof, n, &options, &profile, NULL);
	if (err)
		return err;
	tally->n_samples += profile->samples.n;
	profile_free(profile);
	return NULL;
}

static struct error *count_request(void *context, const uint8_t *message, size_t n,
				   const struct request_summary *summary)
{
	struct tally *tally = context;
	(void)summary;
	tally->n_requests++;
	struct error *err = tally->backend->profiles(message, n, count_profile, tally);
	if (err && error_get_code(err) != ERROR_LIMIT)
		abort();
	error_free(err);
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum exporter_kind kinds[] = {EXPORTER_PARCA, EXPORTER_PYROSCOPE,
						   EXPORTER_OTLP};
	if (!size || size > MAX_INPUT_BYTES)
		return 0;
	const struct backend *backend = backend_of_kind(kinds[data[0] % ARRAY_LEN(kinds)]);
	struct exporter_config config = {.remote = {.gzip = data[0] & 0x80}};
	struct tally whole = {.backend = backend}, parts = {.backend = backend};
	struct error *err = backend->profiles(data + 1, size - 1, count_profile, &whole);
	struct error *split_err =
		backend->split(&config, data + 1, size - 1, count_request, &parts);
	/* OTLP leaves out samples of zeros, which pprof has; there the parts may be less. */
	if (!err && !split_err &&
	    (backend == backend_of_kind(EXPORTER_OTLP) ? parts.n_samples > whole.n_samples
						       : parts.n_samples != whole.n_samples))
		abort();
	if (!split_err && backend != backend_of_kind(EXPORTER_OTLP) && parts.n_requests < 2)
		abort();
	error_free(err);
	error_free(split_err);
	return 0;
}
