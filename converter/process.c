/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/process.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"

static void set_text(char **text, const char *value)
{
	if (*text && strcmp(*text, value) == 0)
		return;
	char *copy = mem_copy_string(value);
	mem_free(*text);
	*text = copy;
}

/* A fact of a process; labels of all its threads are made anew when one changes. */
static void set_fact(struct process *process, char **fact, const char *value)
{
	set_text(fact, value);
	process->n_changes++;
}

static void free_process(struct process_table *table, struct process *process)
{
	address_space_unref(process->space, &table->pool);
	mem_free(process->comm);
	mem_free(process->cmdline);
	mem_free(process->cgroup);
	mem_free(process);
}

const char *thread_comm(const struct thread *thread, char text[THREAD_COMM_BYTES])
{
	if (thread->comm)
		return thread->comm;
	snprintf(text, THREAD_COMM_BYTES, ":%u", thread->tid);
	return text;
}

/* Takes the thread out of every index; its process goes with its last thread. */
static void free_thread(struct process_table *table, struct thread *thread)
{
	uint64_t *value = hash_map_get(&table->threads, thread->tid);
	if (value && *value == (uintptr_t)thread)
		hash_map_remove(&table->threads, thread->tid);
	if (table->recent[thread->tid % PROCESS_RECENT] == thread)
		table->recent[thread->tid % PROCESS_RECENT] = NULL;
	struct process *process = thread->process;
	mem_free(thread->comm);
	mem_free(thread);
	if (--process->n_threads)
		return;
	value = hash_map_get(&table->processes, process->pid);
	if (value && *value == (uintptr_t)process)
		hash_map_remove(&table->processes, process->pid);
	free_process(table, process);
}

static void forget_exited(struct process_table *table, struct thread *thread)
{
	if (thread->exited_slot)
		table->exited[thread->exited_slot - 1] = NULL;
	thread->exited_slot = 0;
	thread->has_exited = false;
}

static void drop_thread(struct process_table *table, struct thread *thread)
{
	forget_exited(table, thread);
	free_thread(table, thread);
}

void process_table_init(struct process_table *table, struct image_table *images)
{
	*table = (struct process_table){.images = images};
	table->no_maps = address_space_new(&table->pool);
	hash_map_init(&table->processes);
	hash_map_init(&table->threads);
	process_table_comm(table, 0, 0, "swapper", false, false);
}

void process_table_fini(struct process_table *table)
{
	size_t iterator = 0;
	uint64_t key, *value;
	while (hash_map_next(&table->threads, &iterator, &key, &value)) {
		struct thread *thread = (struct thread *)(uintptr_t)*value;
		struct process *process = thread->process;
		mem_free(thread->comm);
		mem_free(thread);
		if (--process->n_threads == 0)
			free_process(table, process);
	}
	hash_map_fini(&table->threads);
	hash_map_fini(&table->processes);
	address_space_unref(table->no_maps, &table->pool);
	*table = (struct process_table){0};
}

/* Drops all threads whose process was last used at or before the limit. */
static uint32_t evict_idle(struct process_table *table, uint64_t limit)
{
	uint32_t capacity = (uint32_t)table->threads.n, n = 0;
	struct thread **victims = mem_alloc(capacity * sizeof(struct thread *));
	size_t iterator = 0;
	uint64_t key, *value;
	while (hash_map_next(&table->threads, &iterator, &key, &value)) {
		struct thread *thread = (struct thread *)(uintptr_t)*value;
		if (thread->process->last_use <= limit && thread->process->pid != 0)
			victims[n++] = thread;
	}
	for (uint32_t i = 0; i < n; i++)
		drop_thread(table, victims[i]);
	mem_free(victims);
	return n;
}

/* Drops a process's threads but the main one and the one to keep: they are names and no more. */
static void drop_threads(struct process_table *table, const struct process *process,
			 const struct thread *keep)
{
	struct thread **victims = mem_alloc(process->n_threads * sizeof(struct thread *));
	uint32_t n = 0;
	size_t iterator = 0;
	uint64_t key, *value;
	while (hash_map_next(&table->threads, &iterator, &key, &value)) {
		struct thread *thread = (struct thread *)(uintptr_t)*value;
		if (thread->process == process && thread->tid != process->pid && thread != keep)
			victims[n++] = thread;
	}
	/* The process stays, even if its main thread is not known. */
	for (uint32_t i = 0; i < n && process->n_threads > 1; i++)
		drop_thread(table, victims[i]);
	mem_free(victims);
}

/*
 * Exits can be missed, and a file can name any number of pids: over a bound the half of the time
 * line that was used least recently goes, so that each sweep is paid for by as many records. A
 * process that has most of the threads gives up those instead. keep is not dropped.
 */
static void keep_bounds(struct process_table *table, const struct thread *keep)
{
	while (table->processes.n > PROCESS_MAX || table->threads.n > PROCESS_MAX_THREADS ||
	       table->pool.n_maps > PROCESS_MAX_MAPS) {
		uint64_t oldest = table->clock, *value, key;
		const struct process *crowd = NULL;
		size_t iterator = 0;
		while (hash_map_next(&table->processes, &iterator, &key, &value)) {
			const struct process *process = (struct process *)(uintptr_t)*value;
			if (process->n_threads > PROCESS_MAX_THREADS / 2)
				crowd = process;
			if (process->pid != 0 && process->last_use < oldest)
				oldest = process->last_use;
		}
		if (crowd && table->threads.n > PROCESS_MAX_THREADS) {
			drop_threads(table, crowd, keep);
			continue;
		}
		if (oldest == table->clock)
			return;
		uint64_t before = table->processes.n;
		if (!evict_idle(table, oldest + (table->clock - oldest) / 2))
			return;
		stats_add(STAT_PROCESSES_EVICTED, before - table->processes.n);
	}
}

static struct process *get_process(struct process_table *table, uint32_t pid)
{
	bool is_new;
	uint64_t *value = hash_map_put(&table->processes, pid, &is_new);
	if (is_new) {
		struct process *process = mem_zalloc(1, sizeof(*process));
		process->pid = pid;
		process->space = address_space_ref(table->no_maps);
		*value = (uintptr_t)process;
	}
	struct process *process = (struct process *)(uintptr_t)*value;
	process->last_use = ++table->clock;
	return process;
}

static struct thread *add_thread(struct process_table *table, struct process *process, uint32_t tid)
{
	struct thread *thread = mem_zalloc(1, sizeof(*thread));
	thread->tid = tid;
	thread->process = process;
	/* The idle thread: also under the pid of a process at whose end perf caught it. */
	if (!tid)
		thread->comm = mem_copy_string("swapper");
	process->n_threads++;
	*hash_map_put(&table->threads, tid, NULL) = (uintptr_t)thread;
	return thread;
}

struct thread *process_table_find(struct process_table *table, uint32_t pid, uint32_t tid)
{
	const uint64_t *value = hash_map_get(&table->threads, tid);
	struct thread *thread = value ? (struct thread *)(uintptr_t)*value : NULL;
	if (!thread || thread->process->pid != pid)
		return NULL;
	thread->process->last_use = ++table->clock;
	table->recent[tid % PROCESS_RECENT] = thread;
	return thread;
}

struct thread *process_table_thread(struct process_table *table, uint32_t pid, uint32_t tid)
{
	struct thread *thread = process_table_find(table, pid, tid);
	if (thread)
		return thread;
	const uint64_t *value = hash_map_get(&table->threads, tid);
	/* The tid went to another process and we missed how. */
	struct thread *stale = value ? (struct thread *)(uintptr_t)*value : NULL;
	thread = add_thread(table, get_process(table, pid), tid);
	if (stale)
		drop_thread(table, stale);
	keep_bounds(table, thread);
	table->recent[tid % PROCESS_RECENT] = thread;
	return thread;
}

static void name_thread(struct thread *thread, const char *name)
{
	set_text(&thread->comm, name);
	thread->label_window = 0;
}

static void meet_outside(struct process_table *table)
{
	struct thread *thread = process_table_thread(table, 0, 0);
	if (thread->comm && strcmp(thread->comm, PROCESS_OUTSIDE) == 0)
		return;
	name_thread(thread, PROCESS_OUTSIDE);
	set_fact(thread->process, &thread->process->comm, PROCESS_OUTSIDE);
}

static void set_cmdline(struct process *process, const char *cmdline)
{
	if (cmdline) {
		set_fact(process, &process->cmdline, cmdline);
		return;
	}
	mem_free(process->cmdline);
	process->cmdline = NULL;
	process->n_changes++;
}

/* Whether an exec's record came just before its COMM, so that the words are the new program's. */
static bool take_exec_record(const struct process_table *table, struct process *process)
{
	bool had_record = process->has_exec_record && table->now_ns >= process->exec_ns &&
			  table->now_ns - process->exec_ns <= PROCESS_EXEC_PAIR_NS;
	process->has_exec_record = false;
	process->has_exec_comm = !had_record;
	return had_record;
}

void process_table_comm(struct process_table *table, uint32_t pid, uint32_t tid, const char *name,
			bool is_exec, bool is_synthetic)
{
	if (pid == 0 && strncmp(name, "swapper", 7) != 0) {
		meet_outside(table);
		return;
	}
	struct thread *thread = process_table_thread(table, pid, tid);
	struct process *process = thread->process;
	if (is_synthetic && thread->is_comm_known)
		return;
	name_thread(thread, name);
	thread->is_comm_known = true;
	if (pid == tid && (is_exec || is_synthetic || !process->comm))
		set_fact(process, &process->comm, name);
	if (!is_exec || is_synthetic)
		return;
	/* The thread that execs takes over the process's pid, whose own thread has exited by then.
	 */
	forget_exited(table, thread);
	process->has_exited = false;
	address_space_unref(process->space, &table->pool);
	process->space = address_space_ref(table->no_maps);
	if (!take_exec_record(table, process))
		set_cmdline(process, NULL);
}

/* A new process under a pid that an older one may still hold. */
static struct process *replace_process(struct process_table *table, uint32_t pid)
{
	hash_map_remove(&table->processes, pid);
	return get_process(table, pid);
}

void process_table_fork(struct process_table *table, uint32_t pid, uint32_t parent_pid,
			uint32_t tid, uint32_t parent_tid, bool starts_empty)
{
	if (pid == 0)
		return;
	struct thread *parent = process_table_thread(table, parent_pid, parent_tid);
	const uint64_t *value = hash_map_get(&table->threads, tid);
	struct thread *stale = value ? (struct thread *)(uintptr_t)*value : NULL;
	if (stale == parent)
		return;
	struct process *process;
	if (pid == parent_pid) {
		process = parent->process;
	} else if (pid == tid) {
		process = replace_process(table, pid);
		if (!starts_empty) {
			address_space_unref(process->space, &table->pool);
			process->space = address_space_fork(parent->process->space, &table->pool,
							    pid, table->now_ns);
		}
		/* Who execs at once gets these by its exec; perf says so of all that ran before. */
		if (parent->process->comm && !starts_empty)
			set_fact(process, &process->comm, parent->process->comm);
		if (parent->process->cmdline && !starts_empty)
			set_fact(process, &process->cmdline, parent->process->cmdline);
		if (parent->process->cgroup)
			set_fact(process, &process->cgroup, parent->process->cgroup);
	} else {
		process = get_process(table, pid);
	}
	struct thread *child = add_thread(table, process, tid);
	if (parent->comm)
		name_thread(child, parent->comm);
	if (stale)
		drop_thread(table, stale);
	keep_bounds(table, child);
}

void process_table_exit(struct process_table *table, uint32_t pid, uint32_t tid)
{
	const uint64_t *value = hash_map_get(&table->threads, tid);
	struct thread *thread = value ? (struct thread *)(uintptr_t)*value : NULL;
	if (!thread || thread->process->pid != pid || thread->has_exited || tid == 0)
		return;
	thread->has_exited = true;
	if (pid == tid)
		thread->process->has_exited = true;
	struct thread *oldest = table->exited[table->next_exited];
	if (oldest)
		drop_thread(table, oldest);
	table->exited[table->next_exited] = thread;
	table->next_exited = (table->next_exited + 1) % PROCESS_REMEMBER_EXITED;
	thread->exited_slot = table->next_exited ? table->next_exited : PROCESS_REMEMBER_EXITED;
}

void process_table_map(struct process_table *table, uint32_t pid, const struct space_map *map,
		       bool is_synthetic)
{
	if (pid == 0) {
		meet_outside(table);
		return;
	}
	struct thread *thread = process_table_thread(table, pid, pid);
	address_space_insert(&thread->process->space, &table->pool, table->images, map,
			     is_synthetic);
	keep_bounds(table, thread);
}

void process_table_exec(struct process_table *table, uint32_t pid, uint32_t tid,
			const char *cmdline, const char *cgroup)
{
	if (pid == 0)
		return;
	struct process *process = process_table_thread(table, pid, tid)->process;
	process->has_exec_record = !process->has_exec_comm;
	process->has_exec_comm = false;
	process->exec_ns = table->now_ns;
	set_cmdline(process, cmdline);
	if (cgroup)
		set_fact(process, &process->cgroup, cgroup);
}
