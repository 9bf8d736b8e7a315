/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/builder_wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union descriptor_space {
	char bytes[CMSG_SPACE(BUILDER_WIRE_MAX_FDS * sizeof(int))];
	struct cmsghdr align;
};

bool builder_wire_send(int socket, const void *message, size_t n, const int *fds, size_t n_fds,
		       bool may_wait)
{
	struct iovec part = {.iov_base = (void *)message, .iov_len = n};
	union descriptor_space space = {0};
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	if (n_fds) {
		header.msg_control = space.bytes;
		header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		struct cmsghdr *control = CMSG_FIRSTHDR(&header);
		control->cmsg_level = SOL_SOCKET;
		control->cmsg_type = SCM_RIGHTS;
		control->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(control), fds, n_fds * sizeof(int));
	}
	ssize_t sent;
	do {
		sent = sendmsg(socket, &header, MSG_NOSIGNAL | (may_wait ? 0 : MSG_DONTWAIT));
	} while (sent < 0 && errno == EINTR);
	return sent == (ssize_t)n;
}

static size_t take_descriptors(struct msghdr *header, int *fds)
{
	size_t n = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	}
	return n;
}

bool builder_wire_receive(int socket, void *message, size_t n, int *fds, size_t *n_fds_out)
{
	struct iovec part = {.iov_base = message, .iov_len = n};
	union descriptor_space space;
	struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
	if (n_fds_out) {
		*n_fds_out = 0;
		header.msg_control = space.bytes;
		header.msg_controllen = sizeof(space.bytes);
	}
	ssize_t got;
	do {
		got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got >= 0 && n_fds_out)
		*n_fds_out = take_descriptors(&header, fds);
	if (got == 0)
		errno = ECONNRESET;
	return got == (ssize_t)n && !(header.msg_flags & MSG_TRUNC);
}
