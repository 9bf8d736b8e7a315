/* SPDX-License-Identifier: Apache-2.0 */
/* The only place that asks the system for heap memory, and that ends the process without it. */
#include "base/mem.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"

static void NORETURN abort_for(size_t bytes)
{
	char line[96];
	int n = snprintf(line, sizeof(line), "perfpipe: out of memory: %zu bytes refused\n", bytes);
	if (n > 0 && write(STDERR_FILENO, line, (size_t)n) < 0)
		abort();
	abort();
}

static size_t product(size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes))
		abort_for(SIZE_MAX);
	return bytes;
}

void *mem_alloc(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);
	if (UNLIKELY(!p))
		abort_for(bytes);
	return p;
}

void *mem_zalloc(size_t n, size_t size)
{
	size_t bytes = product(n, size);
	void *p = calloc(bytes ? bytes : 1, 1);
	if (UNLIKELY(!p))
		abort_for(bytes);
	return p;
}

void *mem_realloc(void *p, size_t n, size_t size)
{
	size_t bytes = product(n, size);
	void *grown = realloc(p, bytes ? bytes : 1);
	if (UNLIKELY(!grown))
		abort_for(bytes);
	return grown;
}

void *mem_copy(const void *p, size_t bytes)
{
	void *copy = mem_alloc(bytes);
	if (bytes)
		memcpy(copy, p, bytes);
	return copy;
}

char *mem_copy_string(const char *s)
{
	return mem_copy(s, strlen(s) + 1);
}

char *mem_format(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	char *text = NULL;
	if (vasprintf(&text, fmt, args) < 0)
		abort_for(0);
	va_end(args);
	return text;
}

void mem_free(void *p)
{
	free(p);
}

size_t mem_resident_bytes(void)
{
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	char text[8192];
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	const char *line = strstr(text, "\nVmRSS:");
	return line ? (size_t)strtoull(line + strlen("\nVmRSS:"), NULL, 10) * 1024 : 0;
}
