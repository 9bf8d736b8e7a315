/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files in which JIT compilers name their code, /tmp/perf-PID.map and jit-PID.dump: where they
 * are for a process, and whether they may be believed. What is in them is the caller's business.
 *
 * A running process is looked at through /proc: its own /tmp (it may have a mount namespace of its
 * own), its pid in its own PID namespace, and its user. Its /tmp is held open, since it can vanish
 * with the process. Without the process it is /tmp of this host, or of the sysroot, and the pid
 * that was recorded.
 *
 * A file is believed when it is a regular file under one name, no symbolic link, belongs to the
 * process's user (without the process: to root or to us), has no mount of its own, cannot be
 * written by others, is not too large, and was not last written before the process began: what it
 * says becomes names in a profile, and whoever has a mount namespace of his own can show a file
 * there that only root may read. Nothing but regular files is opened.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/error.h"

struct symcache_config;

enum jit_file_state {
	JIT_FILE_OK,
	JIT_FILE_ABSENT,      /* no such file, or the process was gone before its was opened */
	JIT_FILE_DENIED,      /* may not be read */
	JIT_FILE_LINK,	      /* a symbolic link, or one of several names */
	JIT_FILE_NOT_REGULAR, /* a FIFO, device or folder */
	JIT_FILE_FOREIGN,     /* of another user than the process's */
	JIT_FILE_MOUNTED,     /* something is mounted on its name */
	JIT_FILE_WRITABLE,    /* others may write to it */
	JIT_FILE_TOO_LARGE,
	JIT_FILE_OLDER,		/* last written before the process began */
	JIT_FILE_REPLACED,	/* not the file that was mapped */
	JIT_FILE_OTHER_HOST,	/* recorded on another host, or nothing tells where */
	JIT_FILE_NO_DESCRIPTOR, /* none was left */
	JIT_FILE_STATE_N,
};
/* Whether it says that there was a file, and that it is not believed. */
bool jit_file_is_refused(enum jit_file_state state);
const char *jit_file_state_text(enum jit_file_state state);

#define JIT_FILE_MAX_MAP_BYTES	((uint64_t)256 << 20)
#define JIT_FILE_MAX_DUMP_BYTES ((uint64_t)4 << 30)

struct jit_process {
	int32_t pid;	  /* as recorded */
	uint64_t seen_ns; /* live: CLOCK_MONOTONIC of a record of it, to tell who has the pid since
			   */
	uint64_t recorded_at_ns; /* else: wall time by which the recording was made, 0 = unknown */
	bool is_same_host;	 /* the records are of this host */
};

/* Where the files of one process are. */
struct jit_place {
	int32_t pid, number; /* number: the pid in its own namespace */
	bool is_process;     /* of a running process; else of this host or the sysroot */
	bool trusts_paths;   /* as asked for: whoever owns a file */
	bool has_user;
	uid_t users[3]; /* real, effective, file system */
	gid_t group;
	int64_t began_at_s;	   /* wall time, 0 = unknown */
	char *root;		   /* as for path_open */
	int tmp;		   /* its /tmp, -1 when it is not there */
	enum jit_file_state state; /* other than OK: no file of it will be opened */
};

struct jit_file {
	int fd; /* -1 = not open */
	uint64_t device, inode;
};
#define JIT_FILE_CLOSED ((struct jit_file){.fd = -1})

/* config is borrowed for the call. The place is to be closed whatever its state. */
void jit_place_open(struct jit_place *place, const struct symcache_config *config,
		    const struct jit_process *process);
void jit_place_close(struct jit_place *place);
/* Lets go of /tmp: no map is opened any more. */
void jit_place_leave(struct jit_place *place);

/* Opens the process's map. */
enum jit_file_state jit_place_open_map(const struct jit_place *place, struct jit_file *out);
/* Whether another file stands where the map is by now. */
bool jit_place_has_other_map(const struct jit_place *place, const struct jit_file *file);

/* What a mapping record says of a jitdump. */
struct jit_mapping {
	const char *path;
	uint64_t start, end;
	uint64_t inode;
	bool has_inode;
};
enum jit_file_state jit_place_open_dump(const struct jit_place *place,
					const struct jit_mapping *mapping, struct jit_file *out);

/* Bytes it has now, 0 when that cannot be told. */
uint64_t jit_file_size(const struct jit_file *file);
/* Fewer than n only at the end, or where it cannot be read. */
size_t jit_file_read(const struct jit_file *file, uint64_t offset, void *out, size_t n);
void jit_file_close(struct jit_file *file);
