/* SPDX-License-Identifier: Apache-2.0 */
/* A mailbox for a thread that sleeps in poll: its descriptor is readable while something may be in
 * it. Any thread may put, one takes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/error.h"

struct wake_box;

/* Number 107 when there is no descriptor left. */
struct error *wake_box_open(size_t capacity, struct wake_box **out) MUST_USE;
/* What is still inside goes through free_item. */
void wake_box_close(struct wake_box *box, void (*free_item)(void *item));
int wake_box_fd(const struct wake_box *box);
/* Never waits: false when full, the item is then still the caller's. */
bool wake_box_put(struct wake_box *box, void *item) MUST_USE;
/* The next item, NULL when there is none. */
void *wake_box_take(struct wake_box *box);
