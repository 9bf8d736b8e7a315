/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/kernel_scan.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/perf_abi.h"
#include "collector/cgroup_path.h"

enum {
	CHUNK_BYTES = 64 << 10,
	TEXT_MAX_BYTES = 16 << 20,
	CGROUPS_MAX = 65536, /* the kernel's own default limit of cgroups is about this */
	KERNEL_PID = -1,
};

struct kernel_text {
	uint64_t text, stext, etext;
};

static struct error *write_mmap(struct record_writer *writer, uint64_t start, uint64_t size,
				uint64_t offset, const char *name)
{
	record_writer_begin(writer, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL);
	record_writer_u32(writer, (uint32_t)KERNEL_PID);
	record_writer_u32(writer, 0);
	record_writer_u64(writer, start);
	record_writer_u64(writer, size);
	record_writer_u64(writer, offset);
	record_writer_string(writer, name, strlen(name));
	return record_writer_end(writer);
}

/* "ffffffff81000000 T _text"; false once all is known, or nothing can be (addresses of 0). */
static bool take_symbol(struct kernel_text *kernel, const char *line, size_t n, size_t *n_seen)
{
	enum { NAME_AT = 19 };

	if (n <= NAME_AT || line[NAME_AT] != '_')
		return true;
	uint64_t svma = strtoull(line, NULL, 16);
	const char *name = line + NAME_AT;
	size_t n_name = n - NAME_AT;
	bool is_text = n_name == 5 && memcmp(name, "_text", 5) == 0;
	bool is_stext = n_name == 6 && memcmp(name, "_stext", 6) == 0;
	bool is_etext = n_name == 6 && memcmp(name, "_etext", 6) == 0;

	if (is_text)
		kernel->text = svma;
	if (is_stext)
		kernel->stext = svma;
	if (is_etext)
		kernel->etext = svma;
	*n_seen += is_text + is_stext + is_etext;
	return *n_seen < 3 && (svma != 0 || !(is_text || is_stext || is_etext));
}

/* Reads on in chunks and no further than needed: the file takes the kernel long to make. */
static void read_kallsyms(struct kernel_text *out)
{
	char *chunk CLEANUP(cleanup_mem) = mem_alloc(CHUNK_BYTES + 1);
	int fd CLEANUP(cleanup_fd) = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	size_t n = 0, n_seen = 0;
	bool goes_on = fd >= 0;

	*out = (struct kernel_text){0};
	while (goes_on) {
		ssize_t got = read(fd, chunk + n, CHUNK_BYTES - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return;
		n += (size_t)got;
		chunk[n] = 0;
		char *line = chunk;
		for (char *end; goes_on && (end = strchr(line, '\n')); line = end + 1)
			goes_on = take_symbol(out, line, (size_t)(end - line), &n_seen);
		n -= (size_t)(line - chunk);
		memmove(chunk, line, n);
		if (n == CHUNK_BYTES)
			return; /* a line of 64 KiB is none of kallsyms */
	}
}

/* The path of NAME.ko[.xz …] in modules.dep, relative to folder; modules write '-' as '_'. */
static char *find_module_file(const char *name, size_t n_name, const char *folder, const char *dep)
{
	for (const char *line = dep; *line;) {
		size_t n = strcspn(line, ":\n");
		const char *base = line;
		for (size_t i = 0; i < n; i++) {
			if (line[i] == '/')
				base = line + i + 1;
		}
		size_t i = 0;
		while (i < n_name && (name[i] == base[i] || (name[i] == '_' && base[i] == '-')))
			i++;
		if (i == n_name && strncmp(base + n_name, ".ko", 3) == 0)
			return mem_format("%s/%.*s", folder, (int)n, line);
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return mem_format("[%.*s]", (int)n_name, name);
}

/* "ext4 737280 1 - Live 0xffffffffc0200000 (OE)" */
struct error *kernel_scan_write_module(struct record_writer *writer, const char *line, size_t n,
				       const char *folder, const char *dep)
{
	char *text CLEANUP(cleanup_mem) = mem_format("%.*s", (int)n, line);
	size_t n_name = strcspn(text, " ");
	uint64_t size = strtoull(text + n_name, NULL, 10);
	char *at = strstr(text, " 0x");
	uint64_t start = at ? strtoull(at + 1, NULL, 16) : 0;

	if (n_name == 0 || size == 0 || start == 0)
		return NULL;
	char *name CLEANUP(cleanup_mem) = find_module_file(text, n_name, folder, dep);
	return write_mmap(writer, start, size, 0, name);
}

static struct error *write_modules(struct record_writer *writer)
{
	struct buf modules CLEANUP(buf_fini);
	struct buf dep CLEANUP(buf_fini);
	struct utsname names;

	buf_init(&modules, TEXT_MAX_BYTES);
	buf_init(&dep, TEXT_MAX_BYTES);
	struct error *err = file_read_all("/proc/modules", &modules);
	if (err || uname(&names) < 0) {
		/* A kernel without modules. */
		error_free(err);
		return NULL;
	}
	char *folder CLEANUP(cleanup_mem) = mem_format("/lib/modules/%s", names.release);
	char *dep_path CLEANUP(cleanup_mem) = mem_format("%s/modules.dep", folder);
	error_free(file_read_all(dep_path, &dep));
	for (const char *line = buf_string(&modules); !err && *line;) {
		size_t n = strcspn(line, "\n");
		err = kernel_scan_write_module(writer, line, n, folder, buf_string(&dep));
		line += n + (line[n] == '\n');
	}
	return err;
}

struct error *kernel_scan_text(struct record_writer *writer, bool *is_hidden_out)
{
	struct kernel_text kernel;

	read_kallsyms(&kernel);
	uint64_t start = kernel.text ? kernel.text : kernel.stext;
	*is_hidden_out = start == 0;
	if (start == 0 || kernel.etext <= start)
		return NULL;
	struct error *err =
		write_mmap(writer, start, kernel.etext - start, start, "[kernel.kallsyms]_text");
	return err ? err : write_modules(writer);
}

struct cgroup_list {
	char **paths; /* below the root, "" first; a path is given up when it was read */
	size_t n, capacity;
};

static void add_path(struct cgroup_list *list, char *path)
{
	if (list->n == list->capacity) {
		list->capacity = list->capacity ? list->capacity * 2 : 64;
		list->paths = mem_realloc(list->paths, list->capacity, sizeof(*list->paths));
	}
	list->paths[list->n++] = path;
}

static void add_children(struct cgroup_list *list, const char *full, const char *path)
{
	DIR *folder = opendir(full);

	if (!folder)
		return;
	for (struct dirent *entry; (entry = readdir(folder)) && list->n < CGROUPS_MAX;) {
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			add_path(list, mem_format("%s/%s", path, entry->d_name));
	}
	closedir(folder);
}

struct error *kernel_scan_cgroups(struct record_writer *writer)
{
	char *root CLEANUP(cleanup_mem) = cgroup_path_find_root();
	struct cgroup_list list = {0};
	struct error *err = NULL;

	if (!root)
		return NULL;
	add_path(&list, mem_copy_string(""));
	for (size_t i = 0; i < list.n; i++) {
		char *path CLEANUP(cleanup_mem) = list.paths[i];
		char *full CLEANUP(cleanup_mem) = mem_format("%s%s", root, path);
		struct stat st;
		if (err || stat(full, &st) < 0)
			continue;
		add_children(&list, full, path);
		/* The kernel's cgroup id is the inode of its folder (64-bit inodes). */
		record_writer_begin(writer, PERF_RECORD_CGROUP, 0);
		record_writer_u64(writer, st.st_ino);
		record_writer_string(writer, *path ? path : "/", *path ? strlen(path) : 1);
		err = record_writer_end(writer);
	}
	mem_free(list.paths);
	return err;
}
