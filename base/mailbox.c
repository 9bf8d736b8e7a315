/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of pointers under one mutex. */
#include "base/mailbox.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/mem.h"

enum { NS_PER_S = 1000000000 };

struct mailbox {
	pthread_mutex_t mutex;
	pthread_cond_t has_item; /* waits by CLOCK_MONOTONIC */
	pthread_cond_t has_room;
	void **items;
	size_t capacity;
	size_t first;
	size_t n;
	bool is_closed;
};

struct mailbox *mailbox_new(size_t capacity)
{
	assert(capacity > 0);
	struct mailbox *box = mem_zalloc(1, sizeof(*box));
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&box->mutex, NULL);
	pthread_cond_init(&box->has_item, &attributes);
	pthread_cond_init(&box->has_room, NULL);
	pthread_condattr_destroy(&attributes);
	box->items = mem_zalloc(capacity, sizeof(*box->items));
	box->capacity = capacity;
	return box;
}

void mailbox_free(struct mailbox *box, void (*free_item)(void *item))
{
	if (!box)
		return;
	for (size_t i = 0; free_item && i < box->n; i++)
		free_item(box->items[(box->first + i) % box->capacity]);
	pthread_cond_destroy(&box->has_room);
	pthread_cond_destroy(&box->has_item);
	pthread_mutex_destroy(&box->mutex);
	mem_free(box->items);
	mem_free(box);
}

/* With the mutex held; false when there is no place for it. */
static bool put(struct mailbox *box, void *item)
{
	assert(item);
	if (box->is_closed || box->n == box->capacity)
		return false;
	box->items[(box->first + box->n) % box->capacity] = item;
	box->n++;
	pthread_cond_signal(&box->has_item);
	return true;
}

bool mailbox_put(struct mailbox *box, void *item)
{
	pthread_mutex_lock(&box->mutex);
	bool is_accepted = put(box, item);
	pthread_mutex_unlock(&box->mutex);
	return is_accepted;
}

bool mailbox_put_wait(struct mailbox *box, void *item)
{
	pthread_mutex_lock(&box->mutex);
	while (!box->is_closed && box->n == box->capacity)
		pthread_cond_wait(&box->has_room, &box->mutex);
	bool is_accepted = put(box, item);
	pthread_mutex_unlock(&box->mutex);
	return is_accepted;
}

static struct timespec end_of(uint64_t timeout_ns)
{
	struct timespec end;
	clock_gettime(CLOCK_MONOTONIC, &end);
	uint64_t ns = (uint64_t)end.tv_nsec + timeout_ns % NS_PER_S;
	end.tv_sec += (time_t)(timeout_ns / NS_PER_S + ns / NS_PER_S);
	end.tv_nsec = (long)(ns % NS_PER_S);
	return end;
}

/* With the mutex held. */
static void wait_for_item(struct mailbox *box, uint64_t timeout_ns)
{
	struct timespec end = {0};
	int rc = 0;
	if (timeout_ns != MAILBOX_FOREVER)
		end = end_of(timeout_ns);
	while (!box->is_closed && box->n == 0 && rc != ETIMEDOUT) {
		if (timeout_ns == MAILBOX_FOREVER)
			pthread_cond_wait(&box->has_item, &box->mutex);
		else
			rc = pthread_cond_timedwait(&box->has_item, &box->mutex, &end);
	}
}

bool mailbox_take(struct mailbox *box, uint64_t timeout_ns, void **out)
{
	pthread_mutex_lock(&box->mutex);
	wait_for_item(box, timeout_ns);
	bool is_over = box->is_closed && box->n == 0;
	*out = NULL;
	if (box->n) {
		*out = box->items[box->first];
		box->first = (box->first + 1) % box->capacity;
		box->n--;
		pthread_cond_signal(&box->has_room);
	}
	pthread_mutex_unlock(&box->mutex);
	return !is_over;
}

void mailbox_close(struct mailbox *box)
{
	pthread_mutex_lock(&box->mutex);
	box->is_closed = true;
	pthread_cond_broadcast(&box->has_item);
	pthread_cond_broadcast(&box->has_room);
	pthread_mutex_unlock(&box->mutex);
}
