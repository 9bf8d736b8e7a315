/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of pointers under one mutex. The eventfd is raised when the box gets its first item or is
 * closed, and lowered when the last item leaves, both under the mutex, so it never disagrees with
 * what is inside.
 */
#include "base/mailbox.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"

struct mailbox {
	pthread_mutex_t mutex;
	pthread_cond_t has_item;
	pthread_cond_t has_room;
	void **items;
	size_t capacity;
	size_t first;
	size_t n;
	bool is_closed;
	int event_fd;
};

struct mailbox *mailbox_new(size_t capacity)
{
	assert(capacity > 0);
	int event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (event_fd < 0)
		return NULL;
	struct mailbox *box = mem_zalloc(1, sizeof(*box));
	pthread_mutex_init(&box->mutex, NULL);
	pthread_cond_init(&box->has_item, NULL);
	pthread_cond_init(&box->has_room, NULL);
	box->items = mem_zalloc(capacity, sizeof(*box->items));
	box->capacity = capacity;
	box->event_fd = event_fd;
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
	close(box->event_fd);
	mem_free(box->items);
	mem_free(box);
}

/* The counter is 0 or 1, so neither side can be refused; with the mutex held. */
static void raise_event(struct mailbox *box)
{
	eventfd_write(box->event_fd, 1);
}

static void lower_event(struct mailbox *box)
{
	eventfd_t count;
	eventfd_read(box->event_fd, &count);
}

/* With the mutex held and room for one. */
static void put(struct mailbox *box, void *item)
{
	box->items[(box->first + box->n) % box->capacity] = item;
	if (box->n++ == 0)
		raise_event(box);
	pthread_cond_signal(&box->has_item);
}

/* With the mutex held; NULL when empty. */
static void *take(struct mailbox *box)
{
	if (box->n == 0)
		return NULL;
	void *item = box->items[box->first];
	box->first = (box->first + 1) % box->capacity;
	if (--box->n == 0 && !box->is_closed)
		lower_event(box);
	pthread_cond_signal(&box->has_room);
	return item;
}

bool mailbox_try_put(struct mailbox *box, void *item)
{
	assert(item);
	pthread_mutex_lock(&box->mutex);
	bool is_accepted = !box->is_closed && box->n < box->capacity;
	if (is_accepted)
		put(box, item);
	pthread_mutex_unlock(&box->mutex);
	return is_accepted;
}

bool mailbox_put(struct mailbox *box, void *item)
{
	assert(item);
	pthread_mutex_lock(&box->mutex);
	while (!box->is_closed && box->n == box->capacity)
		pthread_cond_wait(&box->has_room, &box->mutex);
	bool is_accepted = !box->is_closed;
	if (is_accepted)
		put(box, item);
	pthread_mutex_unlock(&box->mutex);
	return is_accepted;
}

void *mailbox_try_take(struct mailbox *box)
{
	pthread_mutex_lock(&box->mutex);
	void *item = take(box);
	pthread_mutex_unlock(&box->mutex);
	return item;
}

void *mailbox_take(struct mailbox *box)
{
	pthread_mutex_lock(&box->mutex);
	while (!box->is_closed && box->n == 0)
		pthread_cond_wait(&box->has_item, &box->mutex);
	void *item = take(box);
	pthread_mutex_unlock(&box->mutex);
	return item;
}

void mailbox_close(struct mailbox *box)
{
	pthread_mutex_lock(&box->mutex);
	if (!box->is_closed) {
		box->is_closed = true;
		if (box->n == 0)
			raise_event(box);
		pthread_cond_broadcast(&box->has_item);
		pthread_cond_broadcast(&box->has_room);
	}
	pthread_mutex_unlock(&box->mutex);
}

int mailbox_fd(const struct mailbox *box)
{
	return box->event_fd;
}
