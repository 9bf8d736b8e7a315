/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/wake_box.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mailbox.h"
#include "base/mem.h"

struct wake_box {
	struct mailbox *mailbox;
	int fd;
};

struct error *wake_box_open(size_t capacity, struct wake_box **out)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fd < 0)
		return error_number(error_errno(errno, "eventfd"), 107);
	struct wake_box *box = mem_alloc(sizeof(*box));
	*box = (struct wake_box){.mailbox = mailbox_new(capacity), .fd = fd};
	*out = box;
	return NULL;
}

void wake_box_close(struct wake_box *box, void (*free_item)(void *item))
{
	if (!box)
		return;
	mailbox_free(box->mailbox, free_item);
	close(box->fd);
	mem_free(box);
}

int wake_box_fd(const struct wake_box *box)
{
	return box->fd;
}

bool wake_box_put(struct wake_box *box, void *item)
{
	if (!mailbox_put(box->mailbox, item))
		return false;
	eventfd_write(box->fd, 1);
	return true;
}

void *wake_box_take(struct wake_box *box)
{
	void *item;
	eventfd_t n;
	if (!mailbox_take(box->mailbox, 0, &item))
		return NULL;
	/* Empty: whoever puts from here on writes again, behind this. */
	if (!item && eventfd_read(box->fd, &n) == 0)
		(void)!mailbox_take(box->mailbox, 0, &item);
	return item;
}
