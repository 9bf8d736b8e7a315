/* SPDX-License-Identifier: Apache-2.0 */
#include "collector/proc_scan.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/perf_abi.h"

/* A process with a million mappings has about 100 MB of maps; the rest of those is left out. */
enum { PROC_TEXT_MAX_BYTES = 128 << 20, COMM_MAX_BYTES = 16, PATH_MAX_BYTES = 4096 };

/* Pids (or tids) that a folder of /proc lists. */
static void list_numbers(const char *path, pid_t **out, size_t *n_out)
{
	DIR *folder = opendir(path);
	pid_t *numbers = NULL;
	size_t n = 0, capacity = 0;

	if (folder) {
		for (struct dirent *entry; (entry = readdir(folder));) {
			char *end;
			long number = strtol(entry->d_name, &end, 10);
			if (number <= 0 || *end)
				continue;
			if (n == capacity) {
				capacity = capacity ? capacity * 2 : 16;
				numbers = mem_realloc(numbers, capacity, sizeof(*numbers));
			}
			numbers[n++] = (pid_t)number;
		}
		closedir(folder);
	}
	*out = numbers;
	*n_out = n;
}

void proc_scan_tids(pid_t pid, pid_t **tids_out, size_t *n_out)
{
	char *path CLEANUP(cleanup_mem) = mem_format("/proc/%d/task", pid);

	list_numbers(path, tids_out, n_out);
}

/* False when it is gone or may not be read. */
static bool read_text(const char *path, struct buf *out)
{
	buf_clear(out);
	struct error *err = file_read_all(path, out);
	error_free(err);
	return !err;
}

static struct error *write_fork(struct record_writer *writer, pid_t pid, pid_t ppid, pid_t tid,
				pid_t ptid)
{
	/* As an exec'ing fork: the maps follow and are not to be copied from the parent. */
	record_writer_begin(writer, PERF_RECORD_FORK, PERF_RECORD_MISC_FORK_EXEC);
	record_writer_u32(writer, (uint32_t)pid);
	record_writer_u32(writer, (uint32_t)ppid);
	record_writer_u32(writer, (uint32_t)tid);
	record_writer_u32(writer, (uint32_t)ptid);
	record_writer_u64(writer, 0);
	return record_writer_end(writer);
}

static struct error *write_comm(struct record_writer *writer, pid_t pid, pid_t tid,
				const char *comm, size_t n)
{
	char padded[COMM_MAX_BYTES] = {0};

	memcpy(padded, comm, n < sizeof(padded) ? n : sizeof(padded) - 1);
	record_writer_begin(writer, PERF_RECORD_COMM, 0);
	record_writer_u32(writer, (uint32_t)pid);
	record_writer_u32(writer, (uint32_t)tid);
	record_writer_bytes(writer, padded, sizeof(padded));
	return record_writer_end(writer);
}

/* "4 (comm with any ) bytes) S 2 …": the parent's pid is the second field behind the last ')'. */
static pid_t read_parent(pid_t pid, struct buf *scratch)
{
	char *path CLEANUP(cleanup_mem) = mem_format("/proc/%d/stat", pid);

	if (!read_text(path, scratch))
		return 0;
	const char *close = strrchr(buf_string(scratch), ')');
	return close && strlen(close) > 4 ? (pid_t)strtol(close + 4, NULL, 10) : 0;
}

static struct error *write_threads(struct record_writer *writer, pid_t pid, struct buf *scratch)
{
	pid_t *tids CLEANUP(cleanup_mem) = NULL;
	size_t n;
	pid_t ppid = read_parent(pid, scratch);
	struct error *err = NULL;

	proc_scan_tids(pid, &tids, &n);
	for (size_t i = 0; !err && i < n; i++) {
		bool is_leader = tids[i] == pid;
		char *path CLEANUP(cleanup_mem) = mem_format("/proc/%d/task/%d/comm", pid, tids[i]);
		if (!read_text(path, scratch))
			continue;
		size_t n_comm = scratch->size;
		if (n_comm && scratch->data[n_comm - 1] == '\n')
			n_comm--;
		err = is_leader ? write_fork(writer, pid, ppid, pid, ppid)
				: write_fork(writer, pid, pid, tids[i], pid);
		if (!err)
			err = write_comm(writer, pid, tids[i], buf_string(scratch), n_comm);
	}
	return err;
}

static struct error *write_namespaces(struct record_writer *writer, pid_t pid)
{
	/* The kernel's order: NET_NS_INDEX … CGROUP_NS_INDEX. */
	static const char *const names[] = {"net", "uts", "ipc", "pid", "user", "mnt", "cgroup"};
	struct stat stats[ARRAY_LEN(names)];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char *path CLEANUP(cleanup_mem) = mem_format("/proc/%d/ns/%s", pid, names[i]);
		if (stat(path, &stats[i]) < 0)
			return NULL;
	}
	record_writer_begin(writer, PERF_RECORD_NAMESPACES, 0);
	record_writer_u32(writer, (uint32_t)pid);
	record_writer_u32(writer, (uint32_t)pid);
	record_writer_u64(writer, ARRAY_LEN(names));
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		record_writer_u64(writer, stats[i].st_dev);
		record_writer_u64(writer, stats[i].st_ino);
	}
	return record_writer_end(writer);
}

struct map_line {
	uint64_t start, end, file_offset, inode;
	uint32_t major, minor;
	uint32_t prot, flags;
	const char *name;
	size_t n_name;
};

/* "55d0-55e0 r-xp 00001000 08:01 1234      /bin/x"; false when it has another shape. */
static bool parse_map(const char *line, struct map_line *out)
{
	char *p;

	out->start = strtoull(line, &p, 16);
	if (*p++ != '-')
		return false;
	out->end = strtoull(p, &p, 16);
	if (*p++ != ' ' || strnlen(p, 5) < 5)
		return false;
	out->prot = (p[0] == 'r' ? PROT_READ : 0u) | (p[1] == 'w' ? PROT_WRITE : 0u) |
		    (p[2] == 'x' ? PROT_EXEC : 0u);
	out->flags = p[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
	out->file_offset = strtoull(p + 4, &p, 16);
	out->major = (uint32_t)strtoul(p, &p, 16);
	if (*p++ != ':')
		return false;
	out->minor = (uint32_t)strtoul(p, &p, 16);
	out->inode = strtoull(p, &p, 10);
	p += strspn(p, " ");
	out->name = p;
	out->n_name = strlen(p);
	return out->end > out->start;
}

/* Maps write a line feed in a name as \012; records hold it as it is. */
static size_t unescape(const char *name, size_t n, char *out)
{
	size_t n_out = 0;

	for (size_t i = 0; i < n; i++) {
		if (n - i >= 4 && memcmp(name + i, "\\012", 4) == 0) {
			out[n_out++] = '\n';
			i += 3;
		} else {
			out[n_out++] = name[i];
		}
	}
	return n_out;
}

struct error *proc_scan_write_map(struct record_writer *writer, pid_t pid, const char *line,
				  size_t n)
{
	char *text CLEANUP(cleanup_mem) = mem_format("%.*s", (int)n, line);
	char name[PATH_MAX_BYTES];
	struct map_line map;

	if (!parse_map(text, &map) || map.n_name >= sizeof(name))
		return NULL;
	bool is_code = map.prot & PROT_EXEC;
	if (!is_code && !(writer->has_data_maps && map.name[0] == '/'))
		return NULL;
	size_t n_name = unescape(map.name, map.n_name, name);
	/* A name given with prctl is not in the kernel's own records. */
	if (n_name == 0 || (n_name > 6 && memcmp(name, "[anon:", 6) == 0)) {
		memcpy(name, "//anon", 6);
		n_name = 6;
	}
	record_writer_begin(writer, PERF_RECORD_MMAP2,
			    PERF_RECORD_MISC_USER | (is_code ? 0 : PERF_RECORD_MISC_MMAP_DATA));
	record_writer_u32(writer, (uint32_t)pid);
	record_writer_u32(writer, (uint32_t)pid);
	record_writer_u64(writer, map.start);
	record_writer_u64(writer, map.end - map.start);
	record_writer_u64(writer, map.file_offset);
	record_writer_u32(writer, map.major);
	record_writer_u32(writer, map.minor);
	record_writer_u64(writer, map.inode);
	record_writer_u64(writer, 0); /* the inode's generation is not in maps */
	record_writer_u32(writer, map.prot);
	record_writer_u32(writer, map.flags);
	record_writer_string(writer, name, n_name);
	return record_writer_end(writer);
}

static struct error *write_maps(struct record_writer *writer, pid_t pid, struct buf *scratch)
{
	char *path CLEANUP(cleanup_mem) = mem_format("/proc/%d/maps", pid);
	struct error *err = NULL;

	if (!read_text(path, scratch))
		return NULL;
	for (const char *line = buf_string(scratch); !err && *line;) {
		size_t n = strcspn(line, "\n");
		err = proc_scan_write_map(writer, pid, line, n);
		line += n + (line[n] == '\n');
	}
	return err;
}

struct error *proc_scan_process(struct record_writer *writer, pid_t pid)
{
	struct buf scratch CLEANUP(buf_fini);

	buf_init(&scratch, PROC_TEXT_MAX_BYTES);
	struct error *err = write_threads(writer, pid, &scratch);
	if (!err)
		err = write_namespaces(writer, pid);
	if (!err)
		err = write_maps(writer, pid, &scratch);
	return err;
}

struct error *proc_scan_write_outside(struct record_writer *writer)
{
	return write_comm(writer, 0, 0, "[outside]", strlen("[outside]"));
}

struct error *proc_scan_all(struct record_writer *writer)
{
	pid_t *pids CLEANUP(cleanup_mem) = NULL;
	size_t n;
	struct error *err = NULL;

	list_numbers("/proc", &pids, &n);
	for (size_t i = 0; !err && i < n; i++)
		err = proc_scan_process(writer, pids[i]);
	return err;
}
