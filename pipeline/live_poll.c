/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/live_poll.h"

#include <string.h>

#include "base/mem.h"

enum { NS_PER_S = 1000000000 };

/* A descriptor that hung up is kept as its complement, which poll leaves alone. */
static int hung_up(int fd)
{
	return ~fd;
}

void live_poll_init(struct live_poll *set, size_t n_own)
{
	*set = (struct live_poll){
		.fds = mem_zalloc(n_own, sizeof(*set->fds)),
		.n_fds = n_own,
		.n_own = n_own,
	};
	for (size_t i = 0; i < n_own; i++)
		set->fds[i].fd = -1;
}

void live_poll_fini(struct live_poll *set)
{
	mem_free(set->fds);
	*set = (struct live_poll){0};
}

void live_poll_set(struct live_poll *set, size_t place, int fd)
{
	set->fds[place] = (struct pollfd){.fd = fd, .events = POLLIN};
}

void live_poll_set_source(struct live_poll *set, struct record_source *source)
{
	size_t n_source = 0;
	const int *source_fds = source ? collector_live_fds(source, &n_source) : NULL;
	size_t n = set->n_own + n_source;
	if (n != set->n_fds) {
		set->fds = mem_realloc(set->fds, n, sizeof(*set->fds));
		memset(set->fds + set->n_own, 0, n_source * sizeof(*set->fds));
		set->n_fds = n;
	}
	for (size_t i = 0; i < n_source; i++) {
		struct pollfd *pollfd = &set->fds[set->n_own + i];
		pollfd->events = POLLIN;
		if (pollfd->fd != hung_up(source_fds[i]))
			pollfd->fd = source_fds[i];
	}
}

/*
 * A descriptor whose task is gone stays readable for good (POLLHUP), which would turn waiting into
 * spinning; those rings are looked at when the interval is over.
 */
static void ignore_hung_up(struct live_poll *set)
{
	for (size_t i = set->n_own; i < set->n_fds; i++) {
		if (set->fds[i].revents & (POLLHUP | POLLERR | POLLNVAL))
			set->fds[i].fd = hung_up(set->fds[i].fd);
	}
}

bool live_poll_wait(struct live_poll *set, uint64_t timeout_ns)
{
	struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / NS_PER_S),
				   .tv_nsec = (long)(timeout_ns % NS_PER_S)};
	if (ppoll(set->fds, set->n_fds, &timeout, NULL) <= 0)
		return false;
	ignore_hung_up(set);
	return true;
}

bool live_poll_is_ready(const struct live_poll *set, size_t place)
{
	return set->fds[place].revents != 0;
}
