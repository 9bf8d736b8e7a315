/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/mem.h"
#include "converter/process.h"

struct fixture {
	struct image_table images;
	struct process_table table;
};

static void fixture_init(struct fixture *f)
{
	image_table_init(&f->images);
	process_table_init(&f->table, &f->images);
}

static void fixture_fini(struct fixture *f)
{
	process_table_fini(&f->table);
	image_table_fini(&f->images);
}

static void map(struct fixture *f, uint32_t pid, uint64_t start, const char *path)
{
	bool is_new;
	const struct image_key key = {.path = path};
	const struct space_map m = {.start = start,
				    .end = start + 0x1000,
				    .image = image_table_intern(&f->images, &key, &is_new)};
	process_table_map(&f->table, pid, &m, false);
}

static void comm(struct fixture *f, uint32_t pid, uint32_t tid, const char *name)
{
	process_table_comm(&f->table, pid, tid, name, false, false);
}

static void exec(struct fixture *f, uint32_t pid, const char *name)
{
	process_table_comm(&f->table, pid, pid, name, true, false);
}

static void spawn(struct fixture *f, uint32_t pid, uint32_t parent)
{
	process_table_fork(&f->table, pid, parent, pid, parent, false);
}

static const char *path_at(struct fixture *f, uint32_t pid, uint32_t tid, uint64_t vaddr)
{
	const struct thread *thread = process_table_thread(&f->table, pid, tid);
	const struct space_map *m = address_space_find(thread->process->space, vaddr);
	return m ? image_table_get(&f->images, m->image)->path : "-";
}

static const char *thread_name(struct fixture *f, uint32_t pid, uint32_t tid)
{
	static char text[THREAD_COMM_BYTES];
	return thread_comm(process_table_recent(&f->table, pid, tid), text);
}

static const char *process_name(struct fixture *f, uint32_t pid, uint32_t tid)
{
	const char *name = process_table_recent(&f->table, pid, tid)->process->comm;
	return name ? name : "-";
}

static void process_names_follow_perf(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	assert_string_equal(thread_name(&f, 0, 0), "swapper");
	assert_string_equal(thread_name(&f, 77, 78), ":78");
	spawn(&f, 79, 77); /* a child of what has no name */
	assert_string_equal(thread_name(&f, 79, 79), ":79");
	comm(&f, 77, 77, "bash");
	spawn(&f, 80, 77);
	assert_string_equal(thread_name(&f, 80, 80), "bash");
	assert_string_equal(process_name(&f, 80, 80), "bash");
	fixture_fini(&f);
}

/* FR-65: sh execs burn. */
static void process_exec_drops_maps_and_renames_the_process(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	comm(&f, 1, 1, "sh");
	map(&f, 1, 0x1000, "/bin/sh");
	process_table_exec(&f.table, 1, 1, "sh -c burn", "/a.slice");
	f.table.now_ns = 1000000000;
	exec(&f, 1, "burn");
	assert_string_equal(path_at(&f, 1, 1, 0x1000), "-");
	assert_string_equal(thread_name(&f, 1, 1), "burn");
	assert_string_equal(process_name(&f, 1, 1), "burn");
	assert_null(process_table_thread(&f.table, 1, 1)->process->cmdline);
	assert_string_equal(process_table_thread(&f.table, 1, 1)->process->cgroup, "/a.slice");
	map(&f, 1, 0x1000, "/bin/burn");
	assert_string_equal(path_at(&f, 1, 1, 0x1000), "/bin/burn");
	fixture_fini(&f);
}

static const char *command_line(struct fixture *f, uint32_t pid)
{
	const struct process *process = process_table_thread(&f->table, pid, pid)->process;
	return process->cmdline ? process->cmdline : "-";
}

static void exec_record(struct fixture *f, uint64_t now_ns, const char *cmdline)
{
	f->table.now_ns = now_ns;
	process_table_exec(&f->table, 7, 7, cmdline, NULL);
}

static void exec_comm(struct fixture *f, uint64_t now_ns)
{
	f->table.now_ns = now_ns;
	exec(f, 7, "x");
}

static void process_exec_keeps_words_told_just_before_its_name(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	/* A chain, record first. */
	exec_record(&f, 1000000, "sh -c x");
	exec_comm(&f, 1010000);
	assert_string_equal(command_line(&f, 7), "sh -c x");
	exec_record(&f, 1500000, "x one");
	assert_string_equal(command_line(&f, 7), "x one");
	exec_comm(&f, 1500000);
	assert_string_equal(command_line(&f, 7), "x one");
	/* The next one's record is lost. */
	exec_comm(&f, 1600000);
	assert_string_equal(command_line(&f, 7), "-");
	fixture_fini(&f);
}

static void process_exec_takes_words_told_after_its_name(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	exec_comm(&f, 1000000);
	exec_record(&f, 90000000, "sh -c x"); /* a slow disk */
	assert_string_equal(command_line(&f, 7), "sh -c x");
	/* Soon after, and yet another exec, whose words are not known before its record. */
	exec_comm(&f, 90100000);
	assert_string_equal(command_line(&f, 7), "-");
	exec_record(&f, 90200000, "x two");
	assert_string_equal(command_line(&f, 7), "x two");
	fixture_fini(&f);
}

static void process_exec_without_words_drops_the_parents(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	exec(&f, 1, "make");
	process_table_exec(&f.table, 1, 1, "make all", NULL);
	spawn(&f, 7, 1);
	assert_string_equal(command_line(&f, 7), "make all");
	exec_record(&f, 5000000, NULL);
	exec_comm(&f, 5010000);
	assert_string_equal(command_line(&f, 7), "-");
	assert_string_equal(command_line(&f, 1), "make all");
	fixture_fini(&f);
}

/* All that is outside of the recorder's PID namespace has pid 0. */
static void process_zero_takes_no_maps_and_names_of_outsiders(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	comm(&f, 0, 0, "swapper/1");
	assert_string_equal(thread_name(&f, 0, 0), "swapper/1");
	process_table_exec(&f.table, 0, 0, "postgres -D x", "/db");
	exec(&f, 0, "postgres");
	map(&f, 0, 0x1000, "/bin/postgres");
	process_table_fork(&f.table, 0, 0, 0, 0, false);
	comm(&f, 0, 0, "nginx");
	assert_string_equal(thread_name(&f, 0, 0), PROCESS_OUTSIDE);
	assert_string_equal(process_name(&f, 0, 0), PROCESS_OUTSIDE);
	assert_string_equal(command_line(&f, 0), "-");
	assert_string_equal(path_at(&f, 0, 0, 0x1000), "-");
	/* One who enters the namespace. */
	process_table_fork(&f.table, 5, 0, 5, 0, false);
	exec(&f, 5, "sh");
	assert_string_equal(thread_name(&f, 5, 5), "sh");
	fixture_fini(&f);
}

/* The fork's parent keeps its maps when the child execs. */
static void process_exec_leaves_the_parents_maps(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	map(&f, 1, 0x1000, "/bin/sh");
	spawn(&f, 2, 1);
	assert_string_equal(path_at(&f, 2, 2, 0x1000), "/bin/sh");
	exec(&f, 2, "cc");
	assert_string_equal(path_at(&f, 2, 2, 0x1000), "-");
	assert_string_equal(path_at(&f, 1, 1, 0x1000), "/bin/sh");
	fixture_fini(&f);
}

static void process_rename_of_a_thread_is_the_threads_alone(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	exec(&f, 10, "burn");
	process_table_fork(&f.table, 10, 10, 11, 10, false);
	assert_string_equal(thread_name(&f, 10, 11), "burn");
	comm(&f, 10, 11, "wrk one");
	comm(&f, 10, 10, "main thread"); /* prctl by the main thread */
	assert_string_equal(thread_name(&f, 10, 11), "wrk one");
	assert_string_equal(thread_name(&f, 10, 10), "main thread");
	assert_string_equal(process_name(&f, 10, 11), "burn");
	assert_string_equal(process_name(&f, 10, 10), "burn");
	fixture_fini(&f);
}

/* FR-10 */
static void process_threads_share_maps(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	map(&f, 10, 0x1000, "/bin/app");
	process_table_fork(&f.table, 10, 10, 11, 10, false);
	map(&f, 10, 0x5000, "/lib/late.so");
	assert_string_equal(path_at(&f, 10, 11, 0x1000), "/bin/app");
	assert_string_equal(path_at(&f, 10, 11, 0x5000), "/lib/late.so");
	assert_string_equal(path_at(&f, 10, 12, 0x5000), "/lib/late.so"); /* never announced */
	uint64_t generation = process_table_thread(&f.table, 10, 10)->process->space->generation;
	map(&f, 10, 0x5000, "/lib/late.so"); /* once more, for another thread */
	assert_int_equal(process_table_thread(&f.table, 10, 11)->process->space->generation,
			 generation);
	assert_int_equal(process_table_thread(&f.table, 10, 10)->process->n_threads, 3);
	fixture_fini(&f);
}

static void process_fork_of_a_fork_shares_until_one_changes(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	map(&f, 1, 0x1000, "/bin/sh");
	spawn(&f, 2, 1);
	spawn(&f, 3, 2);
	spawn(&f, 4, 3);
	assert_int_equal(f.table.pool.n_maps, 1);
	map(&f, 3, 0x2000, "/lib/three.so");
	assert_int_equal(f.table.pool.n_maps, 3);
	assert_string_equal(path_at(&f, 4, 4, 0x2000), "-");
	assert_string_equal(path_at(&f, 3, 3, 0x2000), "/lib/three.so");
	assert_string_equal(path_at(&f, 3, 3, 0x1000), "/bin/sh");
	assert_string_equal(path_at(&f, 2, 2, 0x2000), "-");
	assert_string_equal(path_at(&f, 4, 4, 0x1000), "/bin/sh");
	fixture_fini(&f);
}

/* FR-64 */
static void process_pid_reuse_does_not_mix_two_programs(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	exec(&f, 1, "init");
	for (int i = 0; i < 6; i++) {
		const char *name = i % 2 ? "other" : "burn";
		spawn(&f, 30001, 1);
		assert_string_equal(path_at(&f, 30001, 30001, 0x1000), "-");
		assert_string_equal(process_name(&f, 30001, 30001), "init");
		exec(&f, 30001, name);
		map(&f, 30001, 0x1000, i % 2 ? "/bin/other" : "/bin/burn");
		assert_string_equal(process_name(&f, 30001, 30001), name);
		assert_string_equal(path_at(&f, 30001, 30001, 0x1000),
				    i % 2 ? "/bin/other" : "/bin/burn");
		if (i < 3) /* the later ones exit unseen */
			process_table_exit(&f.table, 30001, 30001);
	}
	fixture_fini(&f);
}

static void process_exit_keeps_names_and_maps_for_late_samples(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	exec(&f, 5, "short");
	map(&f, 5, 0x1000, "/bin/short");
	process_table_exit(&f.table, 5, 5);
	process_table_exit(&f.table, 5, 5); /* said twice */
	assert_string_equal(thread_name(&f, 5, 5), "short");
	assert_string_equal(path_at(&f, 5, 5, 0x1000), "/bin/short");
	/* The last PROCESS_REMEMBER_EXITED are kept. */
	for (uint32_t pid = 100; pid < 100 + PROCESS_REMEMBER_EXITED - 1; pid++) {
		exec(&f, pid, "x");
		process_table_exit(&f.table, pid, pid);
	}
	assert_string_equal(thread_name(&f, 5, 5), "short");
	exec(&f, 50, "one more");
	process_table_exit(&f.table, 50, 50);
	assert_string_equal(thread_name(&f, 5, 5), ":5");
	fixture_fini(&f);
}

static void process_main_thread_may_exit_before_the_others(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	exec(&f, 5, "app");
	map(&f, 5, 0x1000, "/bin/app");
	process_table_fork(&f.table, 5, 5, 6, 5, false);
	process_table_exit(&f.table, 5, 5);
	for (uint32_t pid = 100; pid < 100 + 2 * PROCESS_REMEMBER_EXITED; pid++) {
		exec(&f, pid, "x");
		process_table_exit(&f.table, pid, pid);
	}
	assert_string_equal(path_at(&f, 5, 6, 0x1000), "/bin/app");
	assert_string_equal(process_name(&f, 5, 6), "app");
	fixture_fini(&f);
}

static void process_exit_of_the_unknown_is_nothing(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	process_table_exit(&f.table, 5, 5);
	process_table_exit(&f.table, 0, 0);
	exec(&f, 6, "x");
	process_table_exit(&f.table, 7, 6); /* another process's thread */
	assert_false(process_table_thread(&f.table, 6, 6)->has_exited);
	assert_string_equal(thread_name(&f, 0, 0), "swapper");
	fixture_fini(&f);
}

/* FR-62: short processes whose EXIT never came. */
static void process_churn_without_exits_stays_bounded(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	exec(&f, 1, "make");
	map(&f, 1, 0x1000, "/usr/bin/make");
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t pid = 1000 + i;
		spawn(&f, pid, 1);
		exec(&f, pid, "cc");
		map(&f, pid, 0x1000, "/usr/bin/cc");
		assert_string_equal(path_at(&f, pid, pid, 0x1000), "/usr/bin/cc");
	}
	assert_true(f.table.processes.n <= PROCESS_MAX + 1);
	for (uint32_t i = 0; i < 300000; i++) {
		uint32_t pid = 100000 + i;
		spawn(&f, pid, 1);
		exec(&f, pid, "cc");
		map(&f, pid, 0x1000, "/usr/bin/cc");
		assert_true(f.table.processes.n <= PROCESS_MAX + 1);
		assert_true(f.table.pool.n_maps <= PROCESS_MAX_MAPS + 1);
	}
	/* The parent was in use all the time. */
	assert_string_equal(path_at(&f, 1, 1, 0x1000), "/usr/bin/make");
	assert_string_equal(thread_name(&f, 399999, 399999), "cc");
	assert_string_equal(thread_name(&f, 0, 0), "swapper");
	fixture_fini(&f);
}

static void process_with_endless_threads_stays_bounded(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	exec(&f, 1, "app");
	map(&f, 1, 0x1000, "/bin/app");
	for (uint32_t tid = 2; tid < PROCESS_MAX_THREADS + 100000u; tid++) {
		process_table_fork(&f.table, 1, 1, tid, 1, false);
		assert_true(f.table.threads.n <= PROCESS_MAX_THREADS + 1);
	}
	assert_string_equal(path_at(&f, 1, 1, 0x1000), "/bin/app");
	assert_string_equal(process_name(&f, 1, 1), "app");
	fixture_fini(&f);
}

static void process_tid_goes_to_another_process(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	exec(&f, 10, "one");
	exec(&f, 20, "two");
	map(&f, 10, 0x1000, "/bin/one");
	map(&f, 20, 0x1000, "/bin/two");
	process_table_fork(&f.table, 10, 10, 100, 10, false);
	comm(&f, 10, 100, "worker");
	process_table_exit(&f.table, 10, 100);
	process_table_fork(&f.table, 20, 20, 100, 20, false);
	assert_string_equal(thread_name(&f, 20, 100), "two");
	assert_string_equal(path_at(&f, 20, 100, 0x1000), "/bin/two");
	/* And without a fork that told of it. */
	assert_string_equal(path_at(&f, 10, 100, 0x1000), "/bin/one");
	assert_string_equal(thread_name(&f, 10, 100), ":100");
	/* Its place among the exited is free again. */
	for (uint32_t pid = 1000; pid < 1000 + 2 * PROCESS_REMEMBER_EXITED; pid++) {
		exec(&f, pid, "x");
		process_table_exit(&f.table, pid, pid);
	}
	assert_string_equal(path_at(&f, 10, 100, 0x1000), "/bin/one");
	fixture_fini(&f);
}

static void process_synthetic_names_and_maps_yield_to_real_ones(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	exec(&f, 10, "real");
	map(&f, 10, 0x1000, "/bin/real");
	process_table_comm(&f.table, 10, 10, "from proc", true, true);
	assert_string_equal(thread_name(&f, 10, 10), "real");
	assert_string_equal(path_at(&f, 10, 10, 0x1000), "/bin/real");
	bool is_new;
	const struct image_key key = {.path = "/bin/proc"};
	const struct space_map m = {
		.start = 0, .end = 0x4000, .image = image_table_intern(&f.images, &key, &is_new)};
	process_table_map(&f.table, 10, &m, true);
	assert_string_equal(path_at(&f, 10, 10, 0x1000), "/bin/real");
	assert_string_equal(path_at(&f, 10, 10, 0x2000), "/bin/proc");
	/* Inherited or guessed names are not known ones. */
	spawn(&f, 11, 10);
	process_table_comm(&f.table, 11, 11, "from proc", false, true);
	assert_string_equal(thread_name(&f, 11, 11), "from proc");
	assert_string_equal(process_name(&f, 11, 11), "from proc");
	comm(&f, 11, 11, "real too");
	assert_string_equal(thread_name(&f, 11, 11), "real too");
	fixture_fini(&f);
}

/*
 * perf record writes what ran before as FORK (with the misc bit that says "no maps"), COMM (without
 * the exec bit) and MMAP2, parents first.
 */
static void process_made_known_by_perf_has_its_own_name_and_maps(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	process_table_fork(&f.table, 1, 0, 1, 0, true);
	comm(&f, 1, 1, "systemd");
	map(&f, 1, 0x1000, "/sbin/init");
	process_table_fork(&f.table, 20, 1, 20, 1, true);
	comm(&f, 20, 20, "bash");
	map(&f, 20, 0x5000, "/bin/bash");
	process_table_fork(&f.table, 20, 20, 21, 20, true);
	comm(&f, 20, 21, "helper");
	assert_string_equal(process_name(&f, 1, 1), "systemd");
	assert_string_equal(thread_name(&f, 20, 20), "bash");
	assert_string_equal(process_name(&f, 20, 20), "bash");
	assert_string_equal(process_name(&f, 20, 21), "bash");
	assert_string_equal(path_at(&f, 20, 20, 0x1000), "-");
	assert_string_equal(path_at(&f, 20, 21, 0x5000), "/bin/bash");
	fixture_fini(&f);
}

static void process_facts_of_the_exec_watch_go_to_children(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	exec(&f, 1, "git");
	process_table_exec(&f.table, 1, 1, "git fetch", "/build");
	spawn(&f, 2, 1);
	const struct process *child = process_table_thread(&f.table, 2, 2)->process;
	assert_string_equal(child->cmdline, "git fetch");
	assert_string_equal(child->cgroup, "/build");
	fixture_fini(&f);
}

static void process_forks_that_make_no_sense_do_no_harm(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f);
	uint64_t seed = 99;
	for (int i = 0; i < 200000; i++) {
		uint32_t n[4];
		for (int k = 0; k < 4; k++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			n[k] = (uint32_t)(seed % 12);
		}
		switch (seed >> 32 & 7) {
		case 0:
			process_table_exit(&f.table, n[0], n[1]);
			break;
		case 1:
			process_table_comm(&f.table, n[0], n[1], "x", n[2] & 1, n[3] & 1);
			break;
		case 2:
			map(&f, n[0], n[1] * 0x800, n[2] & 1 ? "/a" : "//anon");
			break;
		case 3:
			process_table_exec(&f.table, n[0], n[1], "cmd", NULL);
			break;
		case 4:
			assert_int_equal(process_table_recent(&f.table, n[0], n[1])->tid, n[1]);
			break;
		default:
			process_table_fork(&f.table, n[0], n[1], n[2], n[3], seed >> 40 & 1);
		}
		const struct thread *thread = process_table_thread(&f.table, n[0], n[1]);
		assert_int_equal(thread->process->pid, n[0]);
	}
	fixture_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process_names_follow_perf),
		cmocka_unit_test(process_exec_drops_maps_and_renames_the_process),
		cmocka_unit_test(process_exec_leaves_the_parents_maps),
		cmocka_unit_test(process_exec_keeps_words_told_just_before_its_name),
		cmocka_unit_test(process_exec_takes_words_told_after_its_name),
		cmocka_unit_test(process_exec_without_words_drops_the_parents),
		cmocka_unit_test(process_zero_takes_no_maps_and_names_of_outsiders),
		cmocka_unit_test(process_rename_of_a_thread_is_the_threads_alone),
		cmocka_unit_test(process_threads_share_maps),
		cmocka_unit_test(process_fork_of_a_fork_shares_until_one_changes),
		cmocka_unit_test(process_pid_reuse_does_not_mix_two_programs),
		cmocka_unit_test(process_exit_keeps_names_and_maps_for_late_samples),
		cmocka_unit_test(process_main_thread_may_exit_before_the_others),
		cmocka_unit_test(process_exit_of_the_unknown_is_nothing),
		cmocka_unit_test(process_churn_without_exits_stays_bounded),
		cmocka_unit_test(process_with_endless_threads_stays_bounded),
		cmocka_unit_test(process_tid_goes_to_another_process),
		cmocka_unit_test(process_synthetic_names_and_maps_yield_to_real_ones),
		cmocka_unit_test(process_made_known_by_perf_has_its_own_name_and_maps),
		cmocka_unit_test(process_facts_of_the_exec_watch_go_to_children),
		cmocka_unit_test(process_forks_that_make_no_sense_do_no_harm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
