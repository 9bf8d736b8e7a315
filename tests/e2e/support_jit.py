# SPDX-License-Identifier: Apache-2.0
"""A program that makes code as a JIT compiler does, and tells its names in a perf map and a jitdump."""
from support_live import *

# Words of its command line are done one by one:
#   map:NAME    a line for the code in /tmp/perf-PID.map     raw:TEXT   these bytes there
#   load:NAME   a record for the code in jit-PID.dump        late:NAME  the same, written at the end only
#   lines:N:FILE  a line table for the next load: line N at its beginning
#   spin:MS     run the code                                 wait       "PID\n" out, a line in
#   fork        a child goes on, the parent waits for it     remap      the whole area mapped anew
#   flood:MS    append lines to the map without pause while the code runs
JIT_SOURCE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
/* push %rbp; mov %rsp,%rbp; 1: dec %rdi; jne 1b; pop %rbp; ret */
static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0x5d, 0xc3};
enum { MACHINE = 62 };
#else
/* stp x29,x30,[sp,-16]!; mov x29,sp; 1: subs x0,x0,1; b.ne 1b; ldp x29,x30,[sp],16; ret */
static const uint32_t code[] = {0xa9bf7bfd, 0x910003fd, 0xf1000400, 0x54ffffe1, 0xa8c17bfd, 0xd65f03c0};
enum { MACHINE = 183 };
#endif
enum { AREA = 1 << 16, AT = 0x400 };

static uint8_t *area;
static FILE *map, *dump;
static uint64_t number;
static char late[1 << 16];
static size_t n_late;

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static FILE *open_map(void)
{
	char path[64];
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	if (!map)
		map = fopen(path, "a");
	return map;
}

static void open_dump(void)
{
	char path[64];
	struct { uint32_t magic, version, size, machine, pad, pid; uint64_t time, flags; } head = {
		0x4a695444, 1, sizeof(head), MACHINE, 0, (uint32_t)getpid(), now(), 0};
	if (dump)
		return;
	snprintf(path, sizeof(path), "jit-%d.dump", (int)getpid());
	dump = fopen(path, "w+");
	fwrite(&head, sizeof(head), 1, dump);
	fflush(dump);
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
}

static void put(int is_late, const void *bytes, size_t n)
{
	if (is_late) {
		memcpy(late + n_late, bytes, n);
		n_late += n;
		return;
	}
	fwrite(bytes, 1, n, dump);
	fflush(dump);
}

static void load(const char *name, int is_late)
{
	struct { uint32_t id, size; uint64_t time; uint32_t pid, tid; uint64_t vma, at, bytes, index; } record = {
		0, 0, now(), (uint32_t)getpid(), (uint32_t)getpid(), (uintptr_t)area + AT, (uintptr_t)area + AT,
		sizeof(code), number++};
	record.size = (uint32_t)(sizeof(record) + strlen(name) + 1 + sizeof(code));
	open_dump();
	put(is_late, &record, sizeof(record));
	put(is_late, name, strlen(name) + 1);
	put(is_late, code, sizeof(code));
}

static void lines(const char *file, uint32_t line)
{
	struct { uint32_t id, size; uint64_t time, at, n, address; uint32_t line, discriminator; } record = {
		2, 0, now(), (uintptr_t)area + AT, 1, (uintptr_t)area + AT, line, 0};
	record.size = (uint32_t)(sizeof(record) + strlen(file) + 1);
	open_dump();
	put(0, &record, sizeof(record));
	put(0, file, strlen(file) + 1);
}

static void spin(long ms)
{
	uint64_t end = now() + (uint64_t)ms * 1000000;
	while (now() < end)
		((void (*)(long))(uintptr_t)(area + AT))(1000000);
}

static volatile int is_over;
static void *flood(void *unused)
{
	for (unsigned i = 0; !is_over; i++)
		fprintf(map, "%lx %x filler %u\n", (unsigned long)(uintptr_t)area + AREA + 16ul * (i % 4096), 16, i);
	return unused;
}

static void make_area(void)
{
	void *at = area ? area : NULL;
	area = mmap(at, AREA, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
	memcpy(area + AT, code, sizeof(code));
	__builtin___clear_cache((char *)area, (char *)area + AREA);
}

int main(int argc, char **argv)
{
	make_area();
	for (int i = 1; i < argc; i++) {
		char *word = argv[i], *text = strchr(word, ':');
		if (text)
			*text++ = 0;
		if (!strcmp(word, "map"))
			fprintf(open_map(), "%lx %zx %s\n", (unsigned long)(uintptr_t)area + AT, sizeof(code), text);
		else if (!strcmp(word, "raw"))
			fputs(text, open_map());
		else if (!strcmp(word, "load"))
			load(text, 0);
		else if (!strcmp(word, "late"))
			load(text, 1);
		else if (!strcmp(word, "lines"))
			lines(strchr(text, ':') + 1, (uint32_t)atol(text));
		else if (!strcmp(word, "spin"))
			spin(atol(text));
		else if (!strcmp(word, "remap"))
			make_area();
		else if (!strcmp(word, "wait")) {
			printf("%d\n", (int)getpid());
			fflush(stdout);
			for (int c = 0; c != '\n' && c != EOF;)
				c = getchar();
		} else if (!strcmp(word, "fork")) {
			pid_t child = fork();
			if (child)
				return waitpid(child, NULL, 0) != child;
		} else if (!strcmp(word, "flood")) {
			pthread_t thread;
			open_map();
			pthread_create(&thread, NULL, flood, NULL);
			spin(atol(text));
			is_over = 1;
			pthread_join(thread, NULL);
		}
		if (map)
			fflush(map);
	}
	if (n_late)
		put(0, late, n_late);
	return 0;
}
"""


@functools.lru_cache(None)
def jit_program():
    return compile_c(JIT_SOURCE, os.path.join(folder(), "jit_program"))
