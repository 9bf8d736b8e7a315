/* SPDX-License-Identifier: Apache-2.0 */
/* Identity of modules, as seen through the door. */
#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "symcache/symcache.h"
#include "tests/support/elf_writer.h"
#include "tests/support/temp_dir.h"

static const uint8_t id_old[20] = {1, 1, 1, 1};
#define ID_REST "00000000000000000000000000000000"
static const uint8_t id_new[20] = {2, 2, 2, 2};

struct fixture {
	struct temp_dir dir;
	char path[PATH_MAX];
	struct symcache *cache;
	struct module_query query;
};

static void save_binary(const char *path, const uint8_t *id, const char *symbol)
{
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	uint16_t text = (uint16_t)elf_writer_text(&writer, 0x1000, 0x100);
	elf_writer_symbol(&writer, false, symbol, 0x1000, 8, STB_GLOBAL, STT_FUNC, text);
	elf_writer_segment(&writer, PT_LOAD, PF_R | PF_X, 0, 0, 0x2000);
	if (id)
		elf_writer_note(&writer, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID, id, 20);
	elf_writer_save(&writer, path);
	elf_writer_fini(&writer);
}

static void begin(struct fixture *f, const struct symcache_config *config)
{
	*f = (struct fixture){0};
	temp_dir_init(&f->dir);
	snprintf(f->path, sizeof(f->path), "%s", temp_dir_path(&f->dir, "bin/app"));
	f->query.path = f->path;
	/* The same build-ids stand for other files in each case. */
	struct symcache_config without_cache = *config;
	without_cache.no_cache = true;
	f->cache = symcache_new(&without_cache);
}

static void end(struct fixture *f)
{
	symcache_free(f->cache);
	temp_dir_fini(&f->dir);
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void set_inode(struct module_query *query, const char *path)
{
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	query->has_inode = true;
	query->inode = st.st_ino;
	query->device_major = major(st.st_dev);
	query->device_minor = minor(st.st_dev);
}

static void assert_named(struct fixture *f, struct module *module, const char *name)
{
	struct symbol_result result;
	symcache_resolve(f->cache, module, 0x1004, &result);
	assert_int_equal(result.reason, SYMBOL_FOUND);
	assert_int_equal(result.n_frames, 1);
	assert_string_equal(result.frames[0].name, name);
}

static void assert_unused(struct fixture *f, enum module_state wanted)
{
	struct module *module = symcache_module(f->cache, &f->query);
	assert_int_equal(module_get_state(module), wanted);
	size_t n;
	module_segments(module, &n);
	assert_int_equal(n, 0);
	struct symbol_result result;
	symcache_resolve(f->cache, module, 0x1004, &result);
	assert_int_equal(result.reason, SYMBOL_NO_FILE);
	assert_int_equal(result.n_frames, 0);
}

/* FR-13 */
static void module_with_another_build_id_is_not_used(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct symcache_config){.trust_paths = true});
	save_binary(f.path, id_new, "new_function");
	f.query.build_id = build_id_make(id_old, sizeof(id_old));
	assert_unused(&f, MODULE_OTHER_FILE);
	end(&f);
}

/* FR-13 */
static void module_with_equal_build_id_is_used(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct symcache_config){0});
	save_binary(f.path, id_old, "old_function");
	f.query.build_id = build_id_make(id_old, sizeof(id_old));
	struct module *module = symcache_module(f.cache, &f.query);
	assert_int_equal(module_get_state(module), MODULE_OK);
	assert_named(&f, module, "old_function");
	size_t n;
	const struct load_segment *segments = module_segments(module, &n);
	assert_int_equal(n, 1);
	assert_true(segments[0].is_executable);
	assert_int_equal(segments[0].memory_bytes, 0x2000);
	end(&f);
}

/* FR-13 */
static void module_without_build_id_in_record_is_known_by_its_inode(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct symcache_config){0});
	save_binary(f.path, id_old, "old_function");
	set_inode(&f.query, f.path);
	struct module *module = symcache_module(f.cache, &f.query);
	assert_int_equal(module_get_state(module), MODULE_OK);
	assert_memory_equal(module_get_build_id(module)->bytes, id_old, 20);
	/* The next build is another file at the same path. */
	const char *next = temp_dir_path(&f.dir, "bin/app.new");
	save_binary(next, id_new, "new_function");
	assert_int_equal(rename(next, f.path), 0);
	struct symcache *fresh = symcache_new(&(struct symcache_config){.no_cache = true});
	assert_int_equal(module_get_state(symcache_module(fresh, &f.query)), MODULE_OTHER_FILE);
	symcache_free(fresh);
	end(&f);
}

/* FR-13 */
static void path_alone_is_believed_only_on_request(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct symcache_config){0});
	save_binary(f.path, id_old, "some_function");
	assert_unused(&f, MODULE_NOT_CONFIRMED);
	end(&f);
	begin(&f, &(struct symcache_config){.trust_paths = true});
	save_binary(f.path, id_old, "some_function");
	struct module *module = symcache_module(f.cache, &f.query);
	assert_int_equal(module_get_state(module), MODULE_OK_TRUSTED);
	assert_named(&f, module, "some_function");
	end(&f);
}

/* FR-15 */
static void padded_build_id_names_the_same_module(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct symcache_config){0});
	save_binary(f.path, id_old, "f");
	f.query.build_id = build_id_make(id_old, 4);
	struct module *module = symcache_module(f.cache, &f.query);
	assert_int_equal(module_get_state(module), MODULE_OK);
	f.query.build_id = build_id_make(id_old, 20);
	f.query.path = "/elsewhere/app";
	assert_ptr_equal(symcache_module(f.cache, &f.query), module);
	end(&f);
}

static struct module *ask(struct fixture *f, const char *path)
{
	f->query.path = path;
	set_inode(&f->query, path);
	return symcache_module(f->cache, &f->query);
}

static void module_with_a_foreign_file_s_build_id_is_one_by_itself(void **state)
{
	(void)state;
	enum { STRANGER = 61234 };
	struct fixture f;
	if (geteuid() != 0)
		skip();
	begin(&f, &(struct symcache_config){0});
	/* Two copies of one binary, one of them a stranger's, and what he made of its build-id. */
	const char *own = temp_dir_path(&f.dir, "own"), *copy = temp_dir_path(&f.dir, "copy");
	const char *forged = temp_dir_path(&f.dir, "forged"), *twin = temp_dir_path(&f.dir, "twin");
	save_binary(own, id_old, "honest_function");
	save_binary(twin, id_old, "honest_function");
	save_binary(copy, id_old, "honest_function");
	save_binary(forged, id_old, "forged_function");
	assert_int_equal(chown(copy, STRANGER, STRANGER), 0);
	assert_int_equal(chown(forged, STRANGER, STRANGER), 0);
	struct module *first = ask(&f, forged), *module = ask(&f, own);
	assert_ptr_not_equal(first, module);
	assert_named(&f, first, "forged_function");
	assert_named(&f, module, "honest_function");
	assert_ptr_equal(ask(&f, copy), module);
	assert_ptr_equal(ask(&f, twin), module);
	assert_ptr_equal(ask(&f, forged), first);
	end(&f);
}

/* The symbols of a file under a cache of its own, asked for through the process that maps it. */
static struct build_id symbols_id_of(struct fixture *f, const char *name)
{
	const char *const roots[] = {temp_dir_path(&f->dir, "debug/none"), NULL};
	char root[PATH_MAX];
	snprintf(root, sizeof(root), "%.*s", (int)(strrchr(roots[0], '/') - roots[0]), roots[0]);
	const char *const debug_roots[] = {root, NULL};
	struct symcache *cache = symcache_new(
		&(struct symcache_config){.is_live = true,
					  .debug_roots = debug_roots,
					  .cache_path = temp_dir_path(&f->dir, "c/s")});
	struct module *module = symcache_module(cache, &f->query);
	struct symbol_result result;
	assert_int_equal(module_get_state(module), MODULE_OK);
	symcache_resolve(cache, module, 0x1004, &result);
	if (name) {
		assert_int_equal(result.reason, SYMBOL_FOUND);
		assert_string_equal(result.frames[0].name, name);
	}
	struct build_id id = *module_get_symbols_id(module);
	symcache_free(cache);
	return id;
}

static void save_stripped(const char *path)
{
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	elf_writer_text(&writer, 0x1000, 0x100);
	elf_writer_segment(&writer, PT_LOAD, PF_R | PF_X, 0, 0, 0x2000);
	elf_writer_note(&writer, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID, id_old, 20);
	elf_writer_save(&writer, path);
	elf_writer_fini(&writer);
}

/*
 * A child in a mount namespace of its own, as a container's root has one, with a tmpfs at folder:
 * put_files fills it. Then it maps what is at path and waits. -1: not possible here.
 */
static pid_t start_container(const char *folder, const char *path, void (*put_files)(const char *),
			     uint64_t range_out[2])
{
	int pipe_fds[2];
	assert_int_equal(pipe(pipe_fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		bool is_ready = unshare(CLONE_NEWNS) == 0 &&
				mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
				mount("none", folder, "tmpfs", 0, NULL) == 0;
		if (!is_ready)
			_exit(1);
		put_files(folder);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		uint64_t start =
			(uintptr_t)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		(void)!write(pipe_fds[1], &start, sizeof(start));
		pause();
		_exit(0);
	}
	close(pipe_fds[1]);
	ssize_t n = read(pipe_fds[0], &range_out[0], sizeof(range_out[0]));
	close(pipe_fds[0]);
	range_out[1] = range_out[0] + 4096;
	if (n == sizeof(range_out[0]))
		return pid;
	waitpid(pid, NULL, 0);
	return -1;
}

static void ask_through(struct fixture *f, pid_t pid, const uint64_t range[2])
{
	f->query.pid = pid;
	f->query.map_start = range[0];
	f->query.map_end = range[1];
	f->query.has_inode = false;
}

static void put_forged_binary(const char *folder)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/app", folder);
	save_binary(path, id_old, "forged_function");
}

/* Root's, with the build-id of a program of this host, at its path: in another mount namespace. */
static void binary_of_another_mount_namespace_is_kept_by_its_content(void **state)
{
	(void)state;
	struct fixture f;
	uint64_t range[2];
	begin(&f, &(struct symcache_config){0});
	save_binary(f.path, id_old, "honest_function");
	char folder[PATH_MAX];
	snprintf(folder, sizeof(folder), "%s/bin", f.dir.path);
	pid_t pid = start_container(folder, f.path, put_forged_binary, range);
	if (pid < 0) {
		end(&f);
		skip();
	}
	ask_through(&f, pid, range);
	struct build_id forged = symbols_id_of(&f, "forged_function");
	stop(pid);
	f.query.pid = 0;
	set_inode(&f.query, f.path);
	struct build_id honest = symbols_id_of(&f, "honest_function");
	assert_int_equal(forged.size, honest.size + 8);
	end(&f);
}

static void put_forged_debug_file(const char *folder)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/.build-id", folder);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/.build-id/01", folder);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/.build-id/01/010101" ID_REST ".debug", folder);
	save_binary(path, id_old, "forged_function");
}

/* This host's program, in a mount namespace where something else is at the debug root. */
static void debug_file_of_another_mount_namespace_is_not_that_of_this_host_s_program(void **state)
{
	(void)state;
	struct fixture f;
	uint64_t range[2];
	begin(&f, &(struct symcache_config){0});
	save_stripped(f.path);
	char folder[PATH_MAX];
	snprintf(folder, sizeof(folder), "%s",
		 temp_dir_path(&f.dir, "debug/.build-id/01/010101" ID_REST ".debug"));
	save_binary(folder, id_old, "honest_function");
	snprintf(folder, sizeof(folder), "%s/debug", f.dir.path);
	pid_t pid = start_container(folder, f.path, put_forged_debug_file, range);
	if (pid < 0) {
		end(&f);
		skip();
	}
	ask_through(&f, pid, range);
	struct build_id through = symbols_id_of(&f, "honest_function");
	stop(pid);
	f.query.pid = 0;
	set_inode(&f.query, f.path);
	struct build_id honest = symbols_id_of(&f, "honest_function");
	assert_true(build_id_equal(&through, &honest));
	end(&f);
}

/* Whose it is counts for a debug file too. */
static void debug_file_of_a_stranger_is_kept_by_its_content(void **state)
{
	(void)state;
	enum { STRANGER = 61234 };
	struct fixture f;
	if (geteuid() != 0)
		skip();
	begin(&f, &(struct symcache_config){0});
	save_stripped(f.path);
	set_inode(&f.query, f.path);
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s",
		 temp_dir_path(&f.dir, "debug/.build-id/01/010101" ID_REST ".debug"));
	save_binary(path, id_old, "some_function");
	struct build_id of_root = symbols_id_of(&f, "some_function");
	assert_int_equal(chown(path, STRANGER, STRANGER), 0);
	struct build_id of_stranger = symbols_id_of(&f, "some_function");
	assert_int_equal(of_stranger.size, of_root.size + 8);
	end(&f);
}

/* FR-16 */
static void module_without_build_id_gets_hash_of_its_content(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct symcache_config){.trust_paths = true});
	save_binary(f.path, NULL, "f");
	struct module *module = symcache_module(f.cache, &f.query);
	struct build_id id = *module_get_build_id(module);
	assert_int_equal(id.kind, BUILD_ID_HASH);
	assert_int_equal(id.size, 16);
	/* Same content elsewhere: same module. Other content: another one. */
	const char *copy = temp_dir_path(&f.dir, "copy");
	save_binary(copy, NULL, "f");
	f.query.path = copy;
	assert_ptr_equal(symcache_module(f.cache, &f.query), module);
	const char *other = temp_dir_path(&f.dir, "other");
	save_binary(other, NULL, "g");
	f.query.path = other;
	assert_ptr_not_equal(symcache_module(f.cache, &f.query), module);
	end(&f);
}

static void same_query_gives_same_module_and_files_that_miss_are_told(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct symcache_config){0});
	struct module *missing = symcache_module(f.cache, &f.query);
	assert_int_equal(module_get_state(missing), MODULE_NOT_FOUND);
	assert_ptr_equal(symcache_module(f.cache, &f.query), missing);
	f.query.has_inode = true;
	f.query.inode = 5;
	assert_ptr_not_equal(symcache_module(f.cache, &f.query), missing);
	end(&f);
}

static void deleted_suffix_is_not_part_of_the_path(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct symcache_config){.trust_paths = true});
	save_binary(f.path, id_old, "f");
	struct module *module = symcache_module(f.cache, &f.query);
	char deleted[PATH_MAX + 16];
	snprintf(deleted, sizeof(deleted), "%s (deleted)", f.path);
	f.query.path = deleted;
	assert_ptr_equal(symcache_module(f.cache, &f.query), module);
	assert_string_equal(module_get_path(module), f.path);
	end(&f);
}

static void what_is_no_file_or_no_elf_is_told_apart(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct symcache_config){.trust_paths = true});
	static const char *const no_files[] = {"//anon",
					       "/memfd:jit (deleted)",
					       "[heap]",
					       "[vsyscall]",
					       "/SYSV00000000",
					       "/dev/zero",
					       ""};
	for (size_t i = 0; i < sizeof(no_files) / sizeof(no_files[0]); i++) {
		f.query.path = no_files[i];
		assert_unused(&f, MODULE_NO_FILE);
	}
	const char *script = temp_dir_path(&f.dir, "script");
	FILE *file = fopen(script, "w");
	fputs("#!/bin/sh\n", file);
	fclose(file);
	f.query.path = script;
	assert_unused(&f, MODULE_NOT_ELF);
	const char *fifo = temp_dir_path(&f.dir, "fifo");
	assert_int_equal(mkfifo(fifo, 0644), 0);
	f.query.path = fifo;
	assert_unused(&f, MODULE_NO_FILE);
	end(&f);
}

static void sysroot_stands_before_paths_of_records(void **state)
{
	(void)state;
	struct temp_dir dir;
	temp_dir_init(&dir);
	save_binary(temp_dir_path(&dir, "usr/bin/app-of-another-host"), id_old, "f");
	struct symcache *cache =
		symcache_new(&(struct symcache_config){.sysroot = dir.path, .no_cache = true});
	struct module_query query = {.path = "/usr/bin/app-of-another-host",
				     .build_id = build_id_make(id_old, 20)};
	assert_int_equal(module_get_state(symcache_module(cache, &query)), MODULE_OK);
	symcache_free(cache);
	temp_dir_fini(&dir);
}

static void no_symbols_still_gives_segments_and_build_ids(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct symcache_config){.no_symbols = true, .trust_paths = true});
	save_binary(f.path, id_old, "f");
	struct module *module = symcache_module(f.cache, &f.query);
	size_t n;
	module_segments(module, &n);
	assert_int_equal(n, 1);
	assert_int_equal(module_get_build_id(module)->size, 20);
	struct symbol_result result;
	symcache_resolve(f.cache, module, 0x1004, &result);
	assert_int_equal(result.reason, SYMBOL_DISABLED);
	end(&f);
}

static void reasons_tell_missing_table_from_gap(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct symcache_config){.trust_paths = true});
	save_binary(f.path, id_old, "f");
	struct symbol_result result;
	struct module *module = symcache_module(f.cache, &f.query);
	symcache_resolve(f.cache, module, 0x1008, &result);
	assert_int_equal(result.reason, SYMBOL_GAP);
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	elf_writer_text(&writer, 0x1000, 0x100);
	const char *stripped = temp_dir_path(&f.dir, "stripped");
	elf_writer_save(&writer, stripped);
	elf_writer_fini(&writer);
	f.query.path = stripped;
	module = symcache_module(f.cache, &f.query);
	symcache_resolve(f.cache, module, 0x1004, &result);
	assert_int_equal(result.reason, SYMBOL_NO_TABLE);
	end(&f);
}

/* asked_before: an address that was looked up while the file was whole, 0 = none. */
static void check_written_file(uint64_t asked_before, enum symbol_reason wanted)
{
	struct fixture f;
	begin(&f, &(struct symcache_config){.trust_paths = true});
	save_binary(f.path, id_old, "old_function");
	struct module *module = symcache_module(f.cache, &f.query);
	struct symbol_result result;
	if (asked_before)
		symcache_resolve(f.cache, module, asked_before, &result);
	/* Cut to nothing: there is no page behind the mapping any more. */
	assert_int_equal(truncate(f.path, 0), 0);
	symcache_resolve(f.cache, module, 0x1004, &result);
	assert_int_equal(result.reason, wanted);
	if (wanted == SYMBOL_FOUND)
		assert_string_equal(result.frames[0].name, "old_function");
	size_t n;
	module_segments(module, &n);
	assert_int_equal(n, 1);
	assert_int_equal(module_get_state(module), MODULE_OK_TRUSTED);
	end(&f);
}

/* What was read while the file was whole stays true of the code that ran. */
static void file_written_to_while_mapped_has_the_names_that_were_read_before(void **state)
{
	(void)state;
	check_written_file(0, SYMBOL_NO_FILE);
	check_written_file(0x1010, SYMBOL_FOUND);
	check_written_file(0x1000, SYMBOL_FOUND);
}

static void assert_cached_name(struct fixture *f, const char *name)
{
	struct symcache *cache = symcache_new(&(struct symcache_config){
		.trust_paths = true, .cache_path = temp_dir_path(&f->dir, "c/s")});
	struct module *module = symcache_module(cache, &f->query);
	struct symbol_result result;
	symcache_resolve(cache, module, 0x1004, &result);
	assert_int_equal(result.reason, SYMBOL_FOUND);
	assert_string_equal(result.frames[0].name, name);
	symcache_free(cache);
}

/* As linkers make them: the build-id does not cover .symtab. */
static void kept_names_are_not_those_of_a_twin_with_the_same_build_id(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct symcache_config){0});
	save_binary(f.path, id_old, "old_function");
	assert_cached_name(&f, "old_function");
	save_binary(f.path, id_old, "new_function");
	assert_cached_name(&f, "new_function");
	save_binary(f.path, id_old, "old_function");
	assert_cached_name(&f, "old_function");
	end(&f);
}

static void file_that_was_unlinked_keeps_its_names(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct symcache_config){.trust_paths = true});
	save_binary(f.path, id_old, "old_function");
	struct module *module = symcache_module(f.cache, &f.query);
	unlink(f.path);
	save_binary(f.path, id_new, "new_function");
	assert_named(&f, module, "old_function");
	end(&f);
}

/* A child that maps path and waits; range_out gets the mapping of it. */
static pid_t start_mapper(const char *path, uint64_t range_out[2])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	void *mapped = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(mapped != MAP_FAILED);
	close(fd);
	range_out[0] = (uintptr_t)mapped;
	range_out[1] = range_out[0] + 4096;
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	munmap(mapped, 4096);
	return pid;
}

static void live_module_is_read_from_the_process_when_its_path_was_replaced(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct symcache_config){.is_live = true});
	save_binary(f.path, NULL, "running_function");
	set_inode(&f.query, f.path);
	uint64_t range[2];
	pid_t pid = start_mapper(f.path, range);
	char probe[128];
	snprintf(probe, sizeof(probe), "/proc/%d/map_files/%lx-%lx", pid, (unsigned long)range[0],
		 (unsigned long)range[1]);
	if (access(probe, R_OK)) {
		stop(pid);
		end(&f);
		print_message("map_files of other processes may not be read here\n");
		skip();
	}
	unlink(f.path);
	save_binary(f.path, NULL, "new_function");
	f.query.pid = pid;
	f.query.map_start = range[0];
	f.query.map_end = range[1];
	struct module *module = symcache_module(f.cache, &f.query);
	assert_int_equal(module_get_state(module), MODULE_OK);
	assert_named(&f, module, "running_function");
	stop(pid);
	end(&f);
}

static void live_module_is_looked_for_again_with_the_next_process(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, &(struct symcache_config){.is_live = true});
	f.query.build_id = build_id_make(id_old, 20);
	f.query.pid = getpid();
	struct module *missing = symcache_module(f.cache, &f.query);
	assert_int_equal(module_get_state(missing), MODULE_NOT_FOUND);
	save_binary(f.path, id_old, "f");
	assert_ptr_equal(symcache_module(f.cache, &f.query), missing);
	f.query.pid = getppid();
	struct module *found = symcache_module(f.cache, &f.query);
	assert_ptr_not_equal(found, missing);
	assert_int_equal(module_get_state(found), MODULE_OK);
	assert_int_equal(module_get_state(missing), MODULE_NOT_FOUND);
	f.query.pid = 0;
	assert_ptr_equal(symcache_module(f.cache, &f.query), found);
	end(&f);
}

/* FR-42 */
static void vdso_is_named_live_and_in_recordings_of_this_kernel_only(void **state)
{
	(void)state;
	if (!getauxval(AT_SYSINFO_EHDR))
		skip();
	struct fixture f;
	begin(&f, &(struct symcache_config){.is_live = true});
	f.query.path = "[vdso]";
	f.query.map_start = getauxval(AT_SYSINFO_EHDR);
	f.query.map_end = f.query.map_start + 0x1000;
	struct module *module = symcache_module(f.cache, &f.query);
	assert_int_equal(module_get_state(module), MODULE_OK);
	struct build_id own = *module_get_build_id(module);
	assert_int_equal(own.kind, BUILD_ID_GNU);
	size_t n;
	module_segments(module, &n);
	assert_int_equal(n, 1);
	bool has_clock_gettime = false;
	for (uint64_t svma = 0; svma < 0x4000 && !has_clock_gettime; svma += 16) {
		struct symbol_result result;
		symcache_resolve(f.cache, module, svma, &result);
		has_clock_gettime = result.reason == SYMBOL_FOUND &&
				    strstr(result.frames[0].name, "clock_gettime");
	}
	assert_true(has_clock_gettime);
	end(&f);
	begin(&f, &(struct symcache_config){0});
	f.query.path = "[vdso]";
	assert_unused(&f, MODULE_NO_FILE);
	f.query.build_id = build_id_make(id_old, 20);
	assert_unused(&f, MODULE_NO_FILE);
	f.query.build_id = own;
	assert_int_equal(module_get_state(symcache_module(f.cache, &f.query)), MODULE_OK);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(module_with_another_build_id_is_not_used),
		cmocka_unit_test(module_with_equal_build_id_is_used),
		cmocka_unit_test(module_without_build_id_in_record_is_known_by_its_inode),
		cmocka_unit_test(path_alone_is_believed_only_on_request),
		cmocka_unit_test(padded_build_id_names_the_same_module),
		cmocka_unit_test(module_with_a_foreign_file_s_build_id_is_one_by_itself),
		cmocka_unit_test(binary_of_another_mount_namespace_is_kept_by_its_content),
		cmocka_unit_test(
			debug_file_of_another_mount_namespace_is_not_that_of_this_host_s_program),
		cmocka_unit_test(debug_file_of_a_stranger_is_kept_by_its_content),
		cmocka_unit_test(module_without_build_id_gets_hash_of_its_content),
		cmocka_unit_test(same_query_gives_same_module_and_files_that_miss_are_told),
		cmocka_unit_test(deleted_suffix_is_not_part_of_the_path),
		cmocka_unit_test(what_is_no_file_or_no_elf_is_told_apart),
		cmocka_unit_test(sysroot_stands_before_paths_of_records),
		cmocka_unit_test(no_symbols_still_gives_segments_and_build_ids),
		cmocka_unit_test(reasons_tell_missing_table_from_gap),
		cmocka_unit_test(file_written_to_while_mapped_has_the_names_that_were_read_before),
		cmocka_unit_test(kept_names_are_not_those_of_a_twin_with_the_same_build_id),
		cmocka_unit_test(file_that_was_unlinked_keeps_its_names),
		cmocka_unit_test(live_module_is_read_from_the_process_when_its_path_was_replaced),
		cmocka_unit_test(live_module_is_looked_for_again_with_the_next_process),
		cmocka_unit_test(vdso_is_named_live_and_in_recordings_of_this_kernel_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
