/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spool under a test that kills it or fails its system calls:
 *   spool_driver DIR write N     N windows of three requests; says "acked I" for each that is kept
 *   spool_driver DIR deliver     takes all; says "sending TEXT", "over TEXT"
 *   spool_driver DIR list        says "waits TEXT" for all
 * and in the end "counts WAITING LOST", in requests. What it says is written at once.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"
#include "forwarder/spool.h"

enum { TEXT_BYTES = 128, REQUESTS_OF_A_WINDOW = 3 };

static void say(const char *fmt, ...)
{
	char line[2 * TEXT_BYTES];
	va_list args;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	/* By a call that nothing else uses, so that a test can tell it from the spool's own. */
	const struct iovec part = {line, strlen(line)};
	if (pwritev2(STDOUT_FILENO, &part, 1, -1, 0) < 0)
		abort();
}

static void write_windows(struct spool *spool, int n)
{
	for (int i = 0; i < n; i++) {
		struct spool_window *window = spool_begin(spool);
		for (int r = 0; r < REQUESTS_OF_A_WINDOW; r++) {
			char text[TEXT_BYTES];
			snprintf(text, sizeof(text), "window-%d-request-%d", i, r);
			const struct request_summary summary = {.n_samples = 1, .n_profiles = 1};
			spool_append(window, (const uint8_t *)text, strlen(text), &summary);
		}
		struct error *err = spool_commit(window);
		if (!err)
			say("acked %d\n", i);
		error_free(err);
	}
}

static void deliver(struct spool *spool, bool is_over)
{
	struct buf message;
	buf_init(&message, TEXT_BYTES);
	struct spool_request request;
	for (;;) {
		buf_clear(&message);
		struct error *err = spool_take(spool, &request, &message);
		if (err == error_no_entry)
			break;
		if (err) {
			/* One call failed: the next try must do. */
			error_free(err);
			continue;
		}
		say("%s %.*s\n", is_over ? "sending" : "waits", (int)message.size, message.data);
		if (!is_over)
			continue;
		spool_delivered(spool, &request);
		say("over %.*s\n", (int)message.size, message.data);
	}
	buf_fini(&message);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	log_set_level(LOG_LEVEL_ERROR);
	const struct spool_limits limits = {.min_free_bytes = 1};
	struct spool *spool;
	struct error *err =
		spool_open(argv[1], "test", EXPORTER_PARCA, &limits, &clock_system, &spool);
	if (err) {
		say("refused %s\n", error_text(err));
		error_free(err);
		return 1;
	}
	if (strcmp(argv[2], "write") == 0)
		write_windows(spool, argc > 3 ? atoi(argv[3]) : 1);
	else
		deliver(spool, strcmp(argv[2], "deliver") == 0);
	struct spool_counts counts;
	spool_get_counts(spool, &counts);
	uint64_t n_lost = 0;
	for (int loss = 0; loss < SPOOL_LOSS_N; loss++)
		n_lost += counts.lost_requests[loss];
	say("counts %" PRIu64 " %" PRIu64 "\n", counts.requests, n_lost);
	spool_close(spool);
	return 0;
}
