/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/cgroup_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"

enum { MOUNTINFO_MAX_BYTES = 8 << 20 };

static bool has_word(const char *list, size_t n, const char *word)
{
	size_t n_word = strlen(word);

	for (size_t i = 0; i + n_word <= n; i++) {
		bool starts = i == 0 || list[i - 1] == ',';
		bool ends = i + n_word == n || list[i + n_word] == ',';
		if (starts && ends && memcmp(list + i, word, n_word) == 0)
			return true;
	}
	return false;
}

/* "36 35 98:0 / /mnt/point opts [optional…] - type source super-options" (proc(5)). */
char *cgroup_path_pick_root(const char *mountinfo)
{
	char *unified CLEANUP(cleanup_mem) = NULL;

	for (const char *line = mountinfo; *line;) {
		size_t n = strcspn(line, "\n");
		char *text CLEANUP(cleanup_mem) = mem_format("%.*s", (int)n, line);
		line += n + (line[n] == '\n');
		char *type = strstr(text, " - ");
		char *point = text;
		for (int i = 0; point && i < 4; i++) {
			point = strchr(point, ' ');
			if (point)
				point++;
		}
		if (!type || !point || point > type)
			continue;
		size_t n_point = strcspn(point, " ");
		const char *options = strrchr(type + 3, ' ');
		if (strncmp(type + 3, "cgroup ", 7) == 0 && options &&
		    has_word(options + 1, strlen(options + 1), "perf_event"))
			return mem_format("%.*s", (int)n_point, point);
		if (strncmp(type + 3, "cgroup2 ", 8) == 0 && !unified)
			unified = mem_format("%.*s", (int)n_point, point);
	}
	return TAKE(unified);
}

char *cgroup_path_find_root(void)
{
	struct buf text CLEANUP(buf_fini);

	buf_init(&text, MOUNTINFO_MAX_BYTES);
	struct error *err = file_read_all("/proc/self/mountinfo", &text);
	if (err) {
		error_free(err);
		return NULL;
	}
	return cgroup_path_pick_root(buf_string(&text));
}

struct error *cgroup_path_open(const char *path, int *fd_out)
{
	char *root CLEANUP(cleanup_mem) = cgroup_path_find_root();

	/* A variable that is not set would otherwise mean the whole host. */
	if (!path[0])
		return error_new(ERROR_USAGE, "no cgroup was named; / is the root of all");
	if (!root)
		return error_number(error_new(ERROR_UNSUPPORTED,
					      "cgroup %s: no cgroup v2 and no v1 perf_event "
					      "hierarchy is mounted",
					      path),
				    104);
	size_t n_root = strlen(root);
	bool is_below = strncmp(path, root, n_root) == 0 && (!path[n_root] || path[n_root] == '/');
	char *full CLEANUP(cleanup_mem) =
		is_below ? mem_copy_string(path)
			 : mem_format("%s%s%s", root, path[0] == '/' ? "" : "/", path);
	int fd = open(full, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return error_number(error_errno(errno, "cgroup %s", full), 104);
	*fd_out = fd;
	return NULL;
}
