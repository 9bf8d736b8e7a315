/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/service_notify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { TEXT_BYTES = 512 };

/* The main thread's. */
static struct {
	int fd;
	struct sockaddr_un address;
	socklen_t address_bytes;
	uint64_t watchdog_ns;
} service = {.fd = -1};

/* "/PATH", or "@NAME" in the abstract namespace. */
static void set_address(const char *socket_name)
{
	size_t n = strlen(socket_name);
	if ((socket_name[0] != '/' && socket_name[0] != '@') || n < 2 ||
	    n >= sizeof(service.address.sun_path))
		return;
	service.address.sun_family = AF_UNIX;
	memcpy(service.address.sun_path, socket_name, n);
	if (socket_name[0] == '@')
		service.address.sun_path[0] = '\0';
	service.address_bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	service.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static uint64_t read_number(const char *name)
{
	const char *text = getenv(name);
	char *end = NULL;
	uint64_t number = text ? strtoull(text, &end, 10) : 0;
	return end && end != text && !*end ? number : 0;
}

void service_notify_open(void)
{
	const char *name = getenv("NOTIFY_SOCKET");
	uint64_t pid = read_number("WATCHDOG_PID");
	if (!pid || pid == (uint64_t)getpid())
		service.watchdog_ns = read_number("WATCHDOG_USEC") * 1000;
	if (name)
		set_address(name);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
}

void service_notify_close(void)
{
	if (service.fd >= 0)
		close(service.fd);
	service.fd = -1;
}

void service_notify(const char *fmt, ...)
{
	char text[TEXT_BYTES];
	va_list args;
	if (service.fd < 0)
		return;
	va_start(args, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (n < 0)
		return;
	size_t size = (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
	ssize_t sent = sendto(service.fd, text, size, MSG_NOSIGNAL,
			      (const struct sockaddr *)&service.address, service.address_bytes);
	(void)sent;
}

uint64_t service_notify_watchdog_ns(void)
{
	return service.fd >= 0 ? service.watchdog_ns : 0;
}
