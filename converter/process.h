/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes and threads as the records tell of them. A pid names a process from its fork (or first
 * sight) until the next fork gives it to another; exec renames it and empties its maps. What exited
 * is kept for late samples, the last PROCESS_REMEMBER_EXITED of each kind. Names follow perf: an
 * unknown thread is ":TID", a new thread has its parent's name, pid 0 is "swapper".
 *
 * An exec is told by a COMM and by an exec record, which come in either order: with the tracepoint
 * the record is behind, without it the two have nearly the same time.
 *
 * Who records inside a PID namespace sees all processes outside of it as pid 0. A name or mapping
 * of pid 0 is therefore nobody's, and shows that pid 0 is more than the idle thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hash_map.h"
#include "converter/address_space.h"
#include "converter/image.h"

enum {
	PROCESS_REMEMBER_EXITED = 4096,
	PROCESS_RECENT = 512,
	PROCESS_MAX = 1 << 16, /* living ones; more than pid_max's default */
	PROCESS_MAX_THREADS = 1 << 18,
	PROCESS_MAX_MAPS = 1 << 20,	 /* in all spaces together, 40 bytes each */
	PROCESS_EXEC_PAIR_NS = 10000000, /* from an exec record to the COMM of the same exec */
};

/* The name of pid 0 where it is all that is outside of the recorder's PID namespace. */
#define PROCESS_OUTSIDE "[outside]"

struct process {
	uint32_t pid;
	uint32_t n_threads;
	struct address_space *space;
	char *comm;	    /* of its main thread; NULL until known */
	char *cmdline;	    /* words joined by spaces; NULL unless an exec was watched */
	char *cgroup;	    /* from the exec watch; NULL when unknown */
	uint32_t n_changes; /* of the three texts; may wrap */
	uint64_t last_use;  /* process_table.clock of the last record */
	uint64_t exec_ns;   /* when has_exec_record */
	bool has_exec_record, has_exec_comm; /* one half of an exec came, the other did not yet */
	bool has_exited;
};

struct thread {
	struct process *process;
	char *comm; /* NULL until known: thread_comm */
	uint32_t tid;
	uint32_t exited_slot; /* place in process_table.exited + 1, 0 = not there */
	/* Label set of this thread's samples in window label_window (0 = none yet), made when its
	 * process had changed label_changes times. */
	uint32_t label_set, label_window, label_changes;
	bool has_exited;
	bool is_comm_known; /* by a record, not by inheritance or guess */
};

/* Its name; ":TID", which lies in text then, when it is not known. */
enum { THREAD_COMM_BYTES = 12 };
const char *thread_comm(const struct thread *thread, char text[THREAD_COMM_BYTES]);

struct process_table {
	struct image_table *images;
	struct address_space_pool pool;
	struct address_space *no_maps;			/* shared by all that have none */
	struct hash_map processes;			/* pid → struct process * */
	struct hash_map threads;			/* tid → struct thread * */
	struct thread *exited[PROCESS_REMEMBER_EXITED]; /* ring, oldest overwritten */
	uint32_t next_exited;
	uint64_t clock;
	uint64_t now_ns; /* of the record that is being told; the caller sets it */
	/* The last threads asked for, by tid: samples come in runs. */
	struct thread *recent[PROCESS_RECENT];
};

void process_table_init(struct process_table *table, struct image_table *images);
void process_table_fini(struct process_table *table);

/* NULL when absent. */
struct thread *process_table_find(struct process_table *table, uint32_t pid, uint32_t tid);
/* Made when absent. Valid until the next call that makes, forks or ends one. */
struct thread *process_table_thread(struct process_table *table, uint32_t pid, uint32_t tid);
/* As process_table_find and process_table_thread, for the one asked for again and again. */
static inline struct thread *process_table_find_recent(struct process_table *table, uint32_t pid,
						       uint32_t tid)
{
	struct thread *thread = table->recent[tid % PROCESS_RECENT];
	if (thread && thread->tid == tid && thread->process->pid == pid)
		return thread;
	return process_table_find(table, pid, tid);
}
static inline struct thread *process_table_recent(struct process_table *table, uint32_t pid,
						  uint32_t tid)
{
	struct thread *thread = process_table_find_recent(table, pid, tid);
	return thread ? thread : process_table_thread(table, pid, tid);
}

/* COMM. is_exec: also the process gets the name, and its maps go. is_synthetic yields to what is
 * known. */
void process_table_comm(struct process_table *table, uint32_t pid, uint32_t tid, const char *name,
			bool is_exec, bool is_synthetic);
/* FORK. starts_empty: the child execs at once and copies no maps (misc FORK_EXEC). */
void process_table_fork(struct process_table *table, uint32_t pid, uint32_t parent_pid,
			uint32_t tid, uint32_t parent_tid, bool starts_empty);
void process_table_exit(struct process_table *table, uint32_t pid, uint32_t tid);
void process_table_map(struct process_table *table, uint32_t pid, const struct space_map *map,
		       bool is_synthetic);
/* What the exec watch saw: a new program. NULL: the words are not known; the group stays as it is.
 */
void process_table_exec(struct process_table *table, uint32_t pid, uint32_t tid,
			const char *cmdline, const char *cgroup);
