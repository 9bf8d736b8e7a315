/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/interruption_watch.h"

/* It stays readable: once is enough to end the wait. */
static void came(uv_poll_t *poll, int status, int events)
{
	(void)status, (void)events;
	uv_poll_stop(poll);
}

struct error *interruption_watch_open(struct interruption_watch *watch, uv_loop_t *loop)
{
	struct error *err = interruption_open();
	if (err)
		return err;
	int status = uv_poll_init(loop, &watch->poll, interruption_fd());
	if (status < 0) {
		interruption_close();
		return error_errno(-status, "epoll");
	}
	uv_poll_start(&watch->poll, UV_READABLE, came);
	uv_unref((uv_handle_t *)&watch->poll);
	return NULL;
}

void interruption_watch_close(struct interruption_watch *watch)
{
	uv_close((uv_handle_t *)&watch->poll, NULL);
}
