/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/store.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "symcache/symbol_file_writer.h"
#include "tests/support/temp_dir.h"

static const uint64_t second_ns = 1000000000;

struct fixture {
	struct temp_dir dir;
	struct clock_fake time;
	struct clock clock;
	struct store *store;
	char path[256];
};

static struct store *open_store(struct fixture *f, uint64_t max_bytes)
{
	struct store *store = NULL;
	struct error *err = store_open(
		&(struct store_config){.path = f->path, .max_bytes = max_bytes, .clock = &f->clock},
		&store);
	if (err)
		fail_msg("%s", error_text(err));
	return store;
}

static void begin(struct fixture *f, uint64_t max_bytes)
{
	*f = (struct fixture){.time = {.now_wall_ns = 1000 * second_ns}};
	temp_dir_init(&f->dir);
	f->clock = clock_from_fake(&f->time);
	snprintf(f->path, sizeof(f->path), "%s/a/b/symbols", f->dir.path);
	f->store = open_store(f, max_bytes);
}

static void end(struct fixture *f)
{
	store_close(f->store);
	temp_dir_fini(&f->dir);
}

static struct build_id id_of(uint8_t number)
{
	return build_id_make((uint8_t[4]){0xab, 0xcd, 0, number | 0x80}, 4);
}

/* A file of n functions whose names begin with that letter. */
static struct buf make_file(const struct build_id *id, enum symbol_rank rank, unsigned n,
			    char letter)
{
	struct symbol_model model;
	symbol_model_init(&model);
	for (unsigned i = 0; i < n; i++) {
		char name[32];
		int size = snprintf(name, sizeof(name), "%c%08x", letter, i * 2654435761u);
		uint32_t text = symbol_model_add_string(&model, name, (size_t)size);
		uint32_t function = symbol_model_add_function(
			&model, (struct symbol_function){.linkage_name = text});
		uint32_t chain = symbol_model_add_chain(
			&model, (struct symbol_chain){function, SYMBOL_CHAIN_NONE, 0, 0, 0});
		symbol_model_add_range(&model,
				       (struct symbol_range){0x1000 + i * 16, 0x1010 + i * 16,
							     chain, (uint8_t)rank, false});
	}
	symbol_model_finish(&model);
	struct symbol_file_options options = {.build_id = *id};
	struct buf bytes;
	buf_init(&bytes, 16 << 20);
	assert_null(symbol_file_write(&model, &options, &bytes));
	symbol_model_fini(&model);
	return bytes;
}

static struct error *publish(struct store *store, struct build_id id, enum symbol_rank rank,
			     unsigned n, char letter)
{
	struct buf bytes = make_file(&id, rank, n, letter);
	struct error *err = store_publish(store, &id, bytes.data, bytes.size);
	buf_fini(&bytes);
	return err;
}

/* First letter of the first name; '-' without a file. */
static char letter_of(struct store *store, struct build_id id)
{
	struct symbol_file *file;
	struct symbol_result result;
	struct error *err = store_load(store, &id, SYMCACHE_DEMANGLE_NORMAL, &file);
	if (err) {
		assert_int_equal(error_get_code(err), ERROR_NO_ENTRY);
		error_free(err);
		return '-';
	}
	assert_true(symbol_file_lookup(file, 0x1000, &result));
	char letter = result.frames[0].name[0];
	symbol_file_close(file);
	return letter;
}

static struct store_entry entry_of(struct store *store, struct build_id id)
{
	struct store_entry entry;
	assert_null(store_find(store, &id, &entry));
	return entry;
}

static void expect_error(struct error *err, enum error_code code)
{
	assert_non_null(err);
	assert_int_equal(error_get_code(err), code);
	error_free(err);
}

static void store_gives_back_what_was_published(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	struct store_entry entry = entry_of(f.store, id_of(1));
	assert_false(entry.has_file || entry.has_failure);
	assert_true(store_wants(&entry, SYMBOL_QUALITY_DYNSYM));
	assert_int_equal(letter_of(f.store, id_of(1)), '-');
	assert_null(publish(f.store, id_of(1), SYMBOL_RANK_SYMTAB, 3, 'a'));
	assert_int_equal(letter_of(f.store, id_of(1)), 'a');
	assert_int_equal(letter_of(f.store, id_of(2)), '-');
	entry = entry_of(f.store, id_of(1));
	assert_true(entry.has_file);
	assert_int_equal(entry.quality, SYMBOL_QUALITY_SYMTAB);
	assert_int_equal(entry.used_ns, f.time.now_wall_ns);
	end(&f);
}

static void store_prefers_the_better_source(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	assert_null(publish(f.store, id_of(1), SYMBOL_RANK_DYNSYM, 3, 'd'));
	struct store_entry entry = entry_of(f.store, id_of(1));
	assert_false(store_wants(&entry, SYMBOL_QUALITY_DYNSYM));
	assert_true(store_wants(&entry, SYMBOL_QUALITY_DWARF));
	assert_null(publish(f.store, id_of(1), SYMBOL_RANK_DWARF, 3, 'w'));
	assert_int_equal(letter_of(f.store, id_of(1)), 'w');
	assert_null(publish(f.store, id_of(1), SYMBOL_RANK_SYMTAB, 3, 's'));
	assert_int_equal(letter_of(f.store, id_of(1)), 'w');
	assert_null(publish(f.store, id_of(1), SYMBOL_RANK_DWARF, 3, 'x'));
	assert_int_equal(letter_of(f.store, id_of(1)), 'w');
	end(&f);
}

static void store_keeps_kinds_of_build_ids_apart(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	struct build_id go = id_of(1), hash = id_of(1);
	go.kind = BUILD_ID_GO;
	hash.kind = BUILD_ID_HASH;
	assert_null(publish(f.store, id_of(1), SYMBOL_RANK_SYMTAB, 3, 'g'));
	assert_null(publish(f.store, go, SYMBOL_RANK_SYMTAB, 3, 'o'));
	assert_null(publish(f.store, hash, SYMBOL_RANK_SYMTAB, 3, 'h'));
	assert_int_equal(letter_of(f.store, id_of(1)), 'g');
	assert_int_equal(letter_of(f.store, go), 'o');
	assert_int_equal(letter_of(f.store, hash), 'h');
	expect_error(publish(f.store, (struct build_id){0}, SYMBOL_RANK_SYMTAB, 1, 'n'),
		     ERROR_USAGE);
	end(&f);
}

static void store_remembers_failures_for_their_lifetime(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	struct build_id id = id_of(7);
	assert_null(publish(f.store, id, SYMBOL_RANK_DYNSYM, 3, 'd'));
	assert_null(store_fail(f.store, &id, SYMBOL_QUALITY_SYMTAB, 60 * second_ns,
			       "killed:\nout of time"));
	struct store_entry entry = entry_of(f.store, id);
	assert_true(entry.has_file && entry.has_failure);
	assert_string_equal(entry.reason, "killed: out of time");
	assert_false(store_wants(&entry, SYMBOL_QUALITY_SYMTAB));
	/* A poor source's failure blocks no better one. */
	assert_true(store_wants(&entry, SYMBOL_QUALITY_DWARF));
	assert_int_equal(letter_of(f.store, id), 'd');
	assert_null(store_fail(f.store, &id, SYMBOL_QUALITY_DWARF, 10 * second_ns, "crashed"));
	assert_null(store_fail(f.store, &id, SYMBOL_QUALITY_DYNSYM, 10 * second_ns, "poor"));
	entry = entry_of(f.store, id);
	assert_string_equal(entry.reason, "crashed");
	f.time.now_wall_ns += 10 * second_ns;
	entry = entry_of(f.store, id);
	assert_false(entry.has_failure);
	assert_true(store_wants(&entry, SYMBOL_QUALITY_DWARF));
	assert_null(store_fail(f.store, &id, SYMBOL_QUALITY_DWARF, UINT64_MAX, "for ever"));
	assert_true(entry_of(f.store, id).has_failure);
	assert_null(publish(f.store, id, SYMBOL_RANK_DWARF, 3, 'w'));
	assert_false(entry_of(f.store, id).has_failure);
	end(&f);
}

static void store_evicts_the_least_recently_used(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 3 * 4096);
	for (uint8_t i = 0; i < 3; i++) {
		assert_null(publish(f.store, id_of(i), SYMBOL_RANK_SYMTAB, 3, 'a'));
		f.time.now_wall_ns += 3600 * second_ns;
	}
	assert_int_equal(letter_of(f.store, id_of(0)), 'a'); /* used again */
	f.time.now_wall_ns += 3600 * second_ns;
	assert_null(publish(f.store, id_of(3), SYMBOL_RANK_SYMTAB, 3, 'a'));
	assert_int_equal(letter_of(f.store, id_of(0)), 'a');
	assert_int_equal(letter_of(f.store, id_of(1)), '-');
	assert_int_equal(letter_of(f.store, id_of(2)), 'a');
	assert_int_equal(letter_of(f.store, id_of(3)), 'a');
	expect_error(publish(f.store, id_of(4), SYMBOL_RANK_SYMTAB, 5000, 'a'), ERROR_LIMIT);
	end(&f);
}

static void write_raw(struct fixture *f, const char *name, const void *bytes, size_t size,
		      mode_t mode)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s", f->path, name);
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static bool exists(struct fixture *f, const char *name)
{
	char path[512];
	struct stat st;
	snprintf(path, sizeof(path), "%s/%s", f->path, name);
	return lstat(path, &st) == 0;
}

static void store_removes_damaged_files_when_they_are_met(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	struct build_id id = id_of(1);
	struct buf bytes = make_file(&id, SYMBOL_RANK_DWARF, 3, 'w');
	bytes.data[bytes.size - 1] ^= 1;
	write_raw(&f, "abcd0081.sym", bytes.data, bytes.size, 0600);
	assert_true(entry_of(f.store, id).has_file);
	assert_int_equal(letter_of(f.store, id), '-');
	assert_false(exists(&f, "abcd0081.sym"));
	/* A damaged file of the best quality does not keep a good one out. */
	write_raw(&f, "abcd0081.sym", bytes.data, bytes.size, 0600);
	assert_null(publish(f.store, id, SYMBOL_RANK_SYMTAB, 3, 's'));
	assert_int_equal(letter_of(f.store, id), 's');
	/* Nor does a torn one. */
	write_raw(&f, "abcd0081.sym", bytes.data, bytes.size / 2, 0600);
	assert_null(publish(f.store, id, SYMBOL_RANK_SYMTAB, 3, 't'));
	assert_int_equal(letter_of(f.store, id), 't');
	expect_error(store_publish(f.store, &id, bytes.data, bytes.size), ERROR_BAD_DATA);
	buf_fini(&bytes);
	end(&f);
}

static void store_refuses_files_of_another_build_id(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	struct build_id one = id_of(1), two = id_of(2);
	struct buf bytes = make_file(&one, SYMBOL_RANK_DWARF, 3, 'w');
	expect_error(store_publish(f.store, &two, bytes.data, bytes.size), ERROR_BAD_DATA);
	write_raw(&f, "abcd0082.sym", bytes.data, bytes.size, 0600);
	assert_false(entry_of(f.store, two).has_file);
	assert_int_equal(letter_of(f.store, two), '-');
	buf_fini(&bytes);
	end(&f);
}

static void store_does_not_trust_what_others_may_write(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	struct build_id id = id_of(1);
	struct buf bytes = make_file(&id, SYMBOL_RANK_DWARF, 3, 'w');
	static const mode_t modes[] = {0620, 0602, 0666};
	for (size_t i = 0; i < 3; i++) {
		write_raw(&f, "abcd0081.sym", bytes.data, bytes.size, modes[i]);
		assert_false(entry_of(f.store, id).has_file);
		assert_int_equal(letter_of(f.store, id), '-');
	}
	/* Nor what a link leads to. */
	char path[512];
	write_raw(&f, "elsewhere", bytes.data, bytes.size, 0600);
	snprintf(path, sizeof(path), "%s/abcd0081.sym", f.path);
	unlink(path);
	assert_int_equal(symlink("elsewhere", path), 0);
	assert_int_equal(letter_of(f.store, id), '-');
	if (geteuid() == 0) {
		write_raw(&f, "abcd0081.sym", bytes.data, bytes.size, 0600);
		assert_int_equal(letter_of(f.store, id), 'w');
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_int_equal(letter_of(f.store, id), '-');
	}
	buf_fini(&bytes);
	end(&f);
}

static void store_does_not_open_in_a_folder_of_others(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	struct store *store;
	struct store_config config = {.path = f.path};
	assert_int_equal(chmod(f.path, 0770), 0);
	expect_error(store_open(&config, &store), ERROR_DENIED);
	assert_int_equal(chmod(f.path, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(f.path, 12345, 12345), 0);
		expect_error(store_open(&config, &store), ERROR_DENIED);
	}
	end(&f);
}

static void store_lies_in_the_users_cache(void **state)
{
	(void)state;
	struct temp_dir dir;
	struct store *store;
	char want[256];
	temp_dir_init(&dir);
	snprintf(want, sizeof(want), "%s/perfpipe/symbols", dir.path);
	setenv("XDG_CACHE_HOME", dir.path, 1);
	assert_null(store_open(&(struct store_config){0}, &store));
	assert_string_equal(store_get_path(store), want);
	store_close(store);
	unsetenv("XDG_CACHE_HOME");
	setenv("HOME", dir.path, 1);
	snprintf(want, sizeof(want), "%s/.cache/perfpipe/symbols", dir.path);
	assert_null(store_open(&(struct store_config){0}, &store));
	assert_string_equal(store_get_path(store), want);
	store_close(store);
	temp_dir_fini(&dir);
}

static struct error *add_to_list(void *context, const struct store_entry *entry)
{
	char hex[BUILD_ID_HEX_BYTES], *out = context;
	build_id_format(&entry->build_id, hex);
	snprintf(out + strlen(out), 256 - strlen(out), "%s%s%s ", hex, entry->has_file ? "+" : "",
		 entry->has_failure ? "!" : "");
	return NULL;
}

static void store_walks_in_the_order_of_names(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	struct build_id one = id_of(1), three = id_of(3);
	assert_null(publish(f.store, id_of(2), SYMBOL_RANK_SYMTAB, 3, 'b'));
	assert_null(publish(f.store, one, SYMBOL_RANK_SYMTAB, 3, 'a'));
	assert_null(store_fail(f.store, &one, SYMBOL_QUALITY_DWARF, second_ns, "x"));
	assert_null(store_fail(f.store, &three, SYMBOL_QUALITY_DWARF, second_ns, "y"));
	write_raw(&f, "notes.txt", "mine", 4, 0600);
	write_raw(&f, "ABCD0081.sym", "capital", 7, 0600);
	char list[256] = "";
	assert_null(store_walk(f.store, add_to_list, list));
	assert_string_equal(list, "abcd0081+! abcd0082+ abcd0083! ");
	assert_null(store_remove(f.store, &one));
	list[0] = 0;
	assert_null(store_walk(f.store, add_to_list, list));
	assert_string_equal(list, "abcd0082+ abcd0083! ");
	expect_error(store_remove(f.store, &one), ERROR_NO_ENTRY);
	end(&f);
}

static void note_removed(void *context, const char *name, const char *reason)
{
	char *removed = context;
	size_t n = strlen(removed);
	snprintf(removed + n, 512 - n, "%s: %s\n", name, reason);
}

static void store_that_must_exist_is_not_made(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	char path[512];
	snprintf(path, sizeof(path), "%s/mistyped", f.path);
	struct store *store;
	expect_error(store_open(&(struct store_config){.path = path, .must_exist = true}, &store),
		     ERROR_NO_ENTRY);
	assert_int_equal(access(path, F_OK), -1);
	end(&f);
}

static void store_cleans_up_and_leaves_others_files_alone(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	struct build_id id = id_of(1), failed = id_of(5);
	assert_null(publish(f.store, id_of(2), SYMBOL_RANK_SYMTAB, 3, 'b'));
	struct buf bytes = make_file(&id, SYMBOL_RANK_DWARF, 3, 'w');
	bytes.data[200] ^= 1;
	write_raw(&f, "abcd0081.sym", bytes.data, bytes.size, 0600);
	assert_null(store_fail(f.store, &failed, SYMBOL_QUALITY_DWARF, second_ns, "x"));
	write_raw(&f, ".new", "torn", 4, 0600);
	write_raw(&f, "notes.txt", "mine", 4, 0600);
	write_raw(&f, "abcd0084.miss", "nonsense", 8, 0600);
	struct store_summary summary;
	assert_null(store_collect(f.store, NULL, &summary));
	assert_int_equal(summary.n_files, 2);
	assert_int_equal(summary.n_failures, 1);
	assert_int_equal(summary.n_removed, 2);
	f.time.now_wall_ns += second_ns;
	char removed[512] = "";
	const struct store_listener listener = {.removed = note_removed, .context = removed};
	assert_null(store_verify(f.store, &listener, &summary));
	assert_non_null(strstr(removed, "abcd0081.sym: "));
	assert_non_null(strstr(removed, "abcd0085.miss: its time is over\n"));
	assert_int_equal(summary.n_files, 1);
	assert_int_equal(summary.n_failures, 0);
	assert_int_equal(summary.n_removed, 2);
	assert_int_equal(summary.bytes, 4096);
	assert_true(exists(&f, "notes.txt"));
	assert_false(exists(&f, ".new"));
	assert_int_equal(letter_of(f.store, id_of(2)), 'b');
	buf_fini(&bytes);
	end(&f);
}

static void store_gives_up_on_a_lock_that_is_held(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	assert_null(publish(f.store, id_of(1), SYMBOL_RANK_SYMTAB, 3, 'a'));
	char path[512];
	snprintf(path, sizeof(path), "%s/lock", f.path);
	int fd = open(path, O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	struct store *other;
	assert_null(store_open(&(struct store_config){.path = f.path, .lock_wait_ms = 5}, &other));
	expect_error(publish(other, id_of(2), SYMBOL_RANK_SYMTAB, 3, 'b'), ERROR_AGAIN);
	assert_int_equal(letter_of(other, id_of(1)), 'a');
	close(fd);
	assert_null(publish(other, id_of(2), SYMBOL_RANK_SYMTAB, 3, 'b'));
	store_close(other);
	end(&f);
}

/* A child that publishes for as long as it lives, or n times. */
static pid_t start_publisher(struct fixture *f, unsigned n, uint8_t first_id)
{
	pid_t child = fork();
	if (child)
		return child;
	struct store *store = open_store(f, 40 * 4096);
	for (unsigned i = 0; n == 0 || i < n; i++) {
		static const enum symbol_rank ranks[] = {SYMBOL_RANK_DYNSYM, SYMBOL_RANK_SYMTAB,
							 SYMBOL_RANK_DWARF};
		struct build_id id = id_of((uint8_t)(first_id + i % 16));
		struct error *err = publish(store, id, ranks[i / 16 % 3], 20 + i % 400, 'p');
		if (!err && i % 5 == 0)
			err = store_fail(store, &id, SYMBOL_QUALITY_DWARF, second_ns, "tried");
		if (err)
			_exit(1);
		if (letter_of(store, id) == '?')
			_exit(2);
	}
	store_close(store);
	_exit(0);
}

static void check_all_whole(struct fixture *f)
{
	struct store *store = open_store(f, 0);
	struct store_summary summary;
	assert_null(store_collect(store, NULL, &summary));
	uint64_t n_files = summary.n_files;
	assert_null(store_verify(store, NULL, &summary));
	assert_int_equal(summary.n_removed, 0);
	assert_int_equal(summary.n_files, n_files);
	assert_true(n_files > 0);
	store_close(store);
}

static void store_is_shared_by_processes_without_errors(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	pid_t children[6];
	for (unsigned i = 0; i < 6; i++)
		children[i] = start_publisher(&f, 60, 0);
	for (unsigned i = 0; i < 6; i++) {
		int status;
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	check_all_whole(&f);
	end(&f);
}

static void store_stays_whole_when_writers_are_killed(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f, 0);
	assert_null(publish(f.store, id_of(0), SYMBOL_RANK_SYMTAB, 3, 'a'));
	for (unsigned i = 0; i < 60; i++) {
		pid_t child = start_publisher(&f, 0, 0);
		usleep(500 + i * 397 % 8000);
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, NULL, 0), child);
		/* What is there can be used at once. */
		struct store_summary summary;
		assert_null(store_collect(f.store, NULL, &summary));
		assert_false(exists(&f, ".new"));
		check_all_whole(&f);
	}
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(store_gives_back_what_was_published),
		cmocka_unit_test(store_prefers_the_better_source),
		cmocka_unit_test(store_keeps_kinds_of_build_ids_apart),
		cmocka_unit_test(store_remembers_failures_for_their_lifetime),
		cmocka_unit_test(store_evicts_the_least_recently_used),
		cmocka_unit_test(store_removes_damaged_files_when_they_are_met),
		cmocka_unit_test(store_refuses_files_of_another_build_id),
		cmocka_unit_test(store_does_not_trust_what_others_may_write),
		cmocka_unit_test(store_does_not_open_in_a_folder_of_others),
		cmocka_unit_test(store_lies_in_the_users_cache),
		cmocka_unit_test(store_walks_in_the_order_of_names),
		cmocka_unit_test(store_that_must_exist_is_not_made),
		cmocka_unit_test(store_cleans_up_and_leaves_others_files_alone),
		cmocka_unit_test(store_gives_up_on_a_lock_that_is_held),
		cmocka_unit_test(store_is_shared_by_processes_without_errors),
		cmocka_unit_test(store_stays_whole_when_writers_are_killed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
