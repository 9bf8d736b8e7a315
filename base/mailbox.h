/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one thing that crosses threads: a bounded queue that moves ownership of pointers from one
 * producer to one consumer. Full means: the producer keeps the item and counts or waits, as it
 * chooses. The consumer's descriptor (an eventfd) is readable while items wait or it is closed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct mailbox;

/* NULL when the process has no descriptor left. */
struct mailbox *mailbox_new(size_t capacity);
/* Both sides have stopped; items still inside go through free_item (may be NULL). */
void mailbox_free(struct mailbox *box, void (*free_item)(void *item));
/* False when full or closed; the item is then still the caller's. */
bool mailbox_try_put(struct mailbox *box, void *item);
/* Waits for room; false when the box was closed. */
bool mailbox_put(struct mailbox *box, void *item);
/* NULL when nothing waits. */
void *mailbox_try_take(struct mailbox *box);
/* Waits for an item; NULL when the box is closed and empty. */
void *mailbox_take(struct mailbox *box);
/* No more puts; waiting sides wake up. */
void mailbox_close(struct mailbox *box);
int mailbox_fd(const struct mailbox *box);
