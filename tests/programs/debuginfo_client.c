/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads the debug information of files over a real channel, in plaintext:
 *
 *   debuginfo_client HOST:PORT STATE_FILE FILE HEX …
 *
 * HEX is the build-id that FILE is said to have. Ends when nothing is pending or after 20 seconds,
 * and prints "HEX STATE" for each, then what was counted.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "forwarder/debuginfo_upload.h"
#include "forwarder/debuginfo_wire.h"
#include "forwarder/grpc_channel.h"

enum { TICK_MS = 20, LIMIT_MS = 20000 };

struct client {
	struct debuginfo_upload *upload;
	struct grpc_channel *channel;
	uv_timer_t timer;
	char **words; /* FILE HEX … */
	int n_words;
	unsigned n_ticks;
};

static enum debuginfo_state state_of(const struct client *client, const char *hex)
{
	struct build_id id;
	if (!build_id_parse(hex, &id))
		return DEBUGINFO_UNKNOWN;
	return debuginfo_upload_state(client->upload, &id);
}

static void tick(uv_timer_t *timer)
{
	struct client *client = timer->data;
	bool is_pending = false;
	debuginfo_upload_tick(client->upload);
	for (int i = 0; i + 1 < client->n_words; i += 2)
		is_pending |= state_of(client, client->words[i + 1]) == DEBUGINFO_PENDING;
	if (is_pending && ++client->n_ticks < LIMIT_MS / TICK_MS)
		return;
	uv_timer_stop(timer);
	uv_close((uv_handle_t *)timer, NULL);
	uv_stop(timer->loop);
}

static void offer_all(const struct client *client)
{
	for (int i = 0; i + 1 < client->n_words; i += 2) {
		struct build_id id;
		int fd = open(client->words[i], O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && build_id_parse(client->words[i + 1], &id))
			debuginfo_upload_offer(client->upload, &id, fd);
	}
}

static void report(const struct client *client)
{
	static const char *const names[] = {"unknown", "pending", "done", "refused"};
	struct debuginfo_upload_counts counts;
	debuginfo_upload_get_counts(client->upload, &counts);
	for (int i = 0; i + 1 < client->n_words; i += 2)
		printf("%s %s\n", client->words[i + 1],
		       names[state_of(client, client->words[i + 1])]);
	printf("uploaded=%llu bytes=%llu known=%llu refused=%llu failures=%llu\n%s\n",
	       (unsigned long long)counts.n_uploaded, (unsigned long long)counts.n_uploaded_bytes,
	       (unsigned long long)counts.n_known, (unsigned long long)counts.n_refused,
	       (unsigned long long)counts.n_failures, counts.last_error);
}

int main(int argc, char **argv)
{
	if (argc < 5) {
		fprintf(stderr, "usage: debuginfo_client HOST:PORT STATE_FILE FILE HEX …\n");
		return 64;
	}
	uv_loop_t loop;
	if (uv_loop_init(&loop) < 0)
		return 1;
	struct client client = {.words = argv + 3, .n_words = argc - 3};
	const struct remote_config remote = {.endpoint = argv[1], .insecure = true, .proxy = ""};
	struct error *err = grpc_channel_new(&loop, &clock_system, &remote, &client.channel);
	if (err) {
		fprintf(stderr, "%s\n", error_text(err));
		error_free(err);
		return 1;
	}
	struct debuginfo_wire wire = {.loop = &loop, .channel = client.channel, .remote = &remote};
	const struct debuginfo_upload_config config = {
		.transport = debuginfo_wire_transport(&wire),
		.state_file = argv[2],
		.jitter_ns = 1000000,
	};
	client.upload = debuginfo_upload_new(&config);
	offer_all(&client);
	uv_timer_init(&loop, &client.timer);
	client.timer.data = &client;
	uv_timer_start(&client.timer, tick, 0, TICK_MS);
	uv_run(&loop, UV_RUN_DEFAULT);
	report(&client);
	debuginfo_upload_free(client.upload);
	grpc_channel_close(client.channel);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	return 0;
}
