/* SPDX-License-Identifier: Apache-2.0 */
/* http_put_client URL N_BYTES [CA_FILE [PROXY [TIMEOUT_MS]]]: one PUT; prints "STATUS MESSAGE". */
#include <stdio.h>
#include <stdlib.h>

#include "forwarder/http_put.h"

static bool read_bytes(void *context, uint64_t offset, uint8_t *out, size_t n)
{
	(void)context;
	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)((offset + i) * 7);
	return true;
}

static void on_done(void *context, int http_status, const char *message)
{
	(void)context;
	printf("%d %s\n", http_status, message);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	uv_loop_t loop;
	uv_loop_init(&loop);
	const struct tls_config tls = {.ca_file = argc > 3 && *argv[3] ? argv[3] : NULL};
	const struct http_put_request request = {
		.url = argv[1],
		.n_bytes = strtoull(argv[2], NULL, 10),
		.read = read_bytes,
		.done = on_done,
		.tls = &tls,
		.proxy = argc > 4 && *argv[4] ? argv[4] : NULL,
		.timeout_ns = argc > 5 ? strtoull(argv[5], NULL, 10) * 1000000 : 0,
	};
	struct http_put *put;
	struct error *err = http_put_start(&loop, &request, &put);
	if (err) {
		fprintf(stderr, "%s\n", error_text(err));
		error_free(err);
	}
	uv_run(&loop, UV_RUN_DEFAULT);
	if (uv_loop_close(&loop) != 0)
		return 1;
	return err ? 64 : 0;
}
