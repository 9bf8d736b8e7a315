/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/tracepoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"

enum { FORMAT_MAX_BYTES = 64 << 10 };

/* debugfs shows tracefs below itself on older systems. */
static const char *const roots[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

/* The mounted root; *is_denied_out tells why there is none. */
static const char *find_root(int *is_denied_out)
{
	*is_denied_out = 0;
	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		char *events CLEANUP(cleanup_mem) = mem_format("%s/events", roots[i]);
		if (access(events, R_OK | X_OK) == 0)
			return roots[i];
		if (errno == EACCES || errno == EPERM)
			*is_denied_out = 1;
	}
	return NULL;
}

static struct error *read_event_file(const char *system, const char *name, const char *file,
				     struct buf *out)
{
	int is_denied;
	const char *root = find_root(&is_denied);

	if (strchr(system, '/') || strchr(name, '/') || system[0] == '.' || name[0] == '.')
		return error_new(ERROR_NO_ENTRY, "no tracepoint %s:%s", system, name);
	if (!root && is_denied)
		return error_new(ERROR_DENIED, "tracefs may not be read by this user");
	if (!root)
		return error_new(ERROR_UNAVAILABLE, "tracefs is not mounted");
	char *path CLEANUP(cleanup_mem) =
		mem_format("%s/events/%s/%s/%s", root, system, name, file);
	return file_read_all(path, out);
}

struct error *tracepoint_read_id(const char *system, const char *name, uint64_t *out)
{
	struct buf text CLEANUP(buf_fini);

	buf_init(&text, FORMAT_MAX_BYTES);
	struct error *err = read_event_file(system, name, "id", &text);
	if (err)
		return error_wrap(err, "tracepoint %s:%s", system, name);
	const char *digits = buf_string(&text);
	char *end;
	unsigned long long id = strtoull(digits, &end, 10);
	if (end == digits)
		return error_new(ERROR_BAD_DATA, "tracepoint %s:%s: no id", system, name);
	*out = id;
	return NULL;
}

/* A line: "\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;" */
uint32_t tracepoint_find_field(const char *format, const char *field)
{
	size_t n = strlen(field);

	for (const char *p = strstr(format, "field:"); p; p = strstr(p + 1, "field:")) {
		const char *end = strchr(p, ';');
		if (!end)
			return 0;
		if ((size_t)(end - p) <= n || strncmp(end - n, field, n) != 0 ||
		    end[-(ptrdiff_t)n - 1] != ' ')
			continue;
		const char *offset = strstr(end, "offset:");
		return offset ? (uint32_t)strtoul(offset + strlen("offset:"), NULL, 10) : 0;
	}
	return 0;
}

uint32_t tracepoint_read_field(const char *system, const char *name, const char *field)
{
	struct buf text CLEANUP(buf_fini);

	buf_init(&text, FORMAT_MAX_BYTES);
	struct error *err = read_event_file(system, name, "format", &text);
	if (err) {
		error_free(err);
		return 0;
	}
	return tracepoint_find_field(buf_string(&text), field);
}

void tracepoint_read_names(struct buf *names)
{
	int is_denied;
	const char *root = find_root(&is_denied);

	if (!root)
		return;
	char *path CLEANUP(cleanup_mem) = mem_format("%s/available_events", root);
	error_free(file_read_all(path, names));
}
