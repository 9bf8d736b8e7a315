/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one thing that crosses threads: a bounded queue that moves ownership of pointers from one
 * producer to one consumer. Full means: the producer keeps the item and counts or waits, as it
 * chooses.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

#define MAILBOX_FOREVER UINT64_MAX

struct mailbox;

struct mailbox *mailbox_new(size_t capacity);
/* Both sides have stopped; items still inside go through free_item (may be NULL). */
void mailbox_free(struct mailbox *box, void (*free_item)(void *item));
/* Never waits: false when full or closed; the item is then still the caller's. */
bool mailbox_put(struct mailbox *box, void *item) MUST_USE;
/* Waits for room; false when the box was closed. */
bool mailbox_put_wait(struct mailbox *box, void *item) MUST_USE;
/*
 * Waits for an item, at most timeout_ns: *out is NULL when the time is up. False when the box is
 * closed and empty, so nothing comes any more.
 */
bool mailbox_take(struct mailbox *box, uint64_t timeout_ns, void **out) MUST_USE;
/* No more puts; waiting sides wake up. */
void mailbox_close(struct mailbox *box);
