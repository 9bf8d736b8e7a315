/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of fetching: checked files, marks of absence, pauses; and what is swept. */
#include "symcache/fetch_folder.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "tests/support/elf_writer.h"
#include "tests/support/temp_dir.h"

#define NS_PER_S ((uint64_t)1000000000)

struct fixture {
	struct temp_dir dir;
	struct clock_fake fake;
	struct clock clock;
	struct fetch_folder_config config;
	struct fetch_folder *folder;
	struct build_id id;
};

static struct build_id make_id(uint8_t first)
{
	uint8_t bytes[20] = {first, 0xbc};
	return build_id_make(bytes, sizeof(bytes));
}

static void begin(struct fixture *f)
{
	*f = (struct fixture){.fake = {.now_wall_ns = 1000000 * NS_PER_S}, .id = make_id(0xab)};
	temp_dir_init(&f->dir);
	f->clock = clock_from_fake(&f->fake);
	f->config = (struct fetch_folder_config){.store_path = f->dir.path, .clock = &f->clock};
	assert_null(fetch_folder_open(&f->config, &f->folder));
}

static void reopen(struct fixture *f)
{
	fetch_folder_close(f->folder);
	assert_null(fetch_folder_open(&f->config, &f->folder));
}

static void end(struct fixture *f)
{
	fetch_folder_close(f->folder);
	temp_dir_fini(&f->dir);
}

/* Names in the folder, but for those of files that are being made. */
static size_t count(struct fixture *f, const char *part)
{
	size_t n = 0;
	DIR *list = opendir(temp_dir_path(&f->dir, "fetched"));
	assert_non_null(list);
	for (const struct dirent *entry; (entry = readdir(list));)
		n += entry->d_name[0] != '.' && strstr(entry->d_name, part) != NULL;
	closedir(list);
	return n;
}

static void save_in_work(const struct fetch_work *work, const char *name, const struct build_id *id,
			 size_t extra_bytes)
{
	struct elf_writer writer;
	elf_writer_init(&writer, true, false, EM_X86_64);
	elf_writer_note(&writer, ".note.gnu.build-id", "GNU", NT_GNU_BUILD_ID, id->bytes, id->size);
	void *extra = calloc(1, extra_bytes + 1);
	elf_writer_section(&writer, ".extra", SHT_PROGBITS, 0, 0, extra, extra_bytes + 1);
	size_t n;
	const uint8_t *bytes = elf_writer_finish(&writer, &n);
	int fd = openat(work->fd, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	close(fd);
	free(extra);
	elf_writer_fini(&writer);
}

static struct error *take(struct fixture *f, const struct build_id *id, const struct build_id *sent,
			  size_t extra_bytes)
{
	struct fetch_work work;
	assert_null(fetch_folder_begin_work(f->folder, &work));
	save_in_work(&work, "file", sent, extra_bytes);
	struct error *err = fetch_folder_take(f->folder, &work, "file", id, FETCHER_DEBUGINFO, 0);
	fetch_folder_end_work(f->folder, &work);
	return err;
}

static bool has(struct fixture *f, const struct build_id *id)
{
	char *path = NULL;
	int fd = fetch_folder_find(f->folder, id, FETCHER_DEBUGINFO, &path);
	if (fd < 0)
		return false;
	close(fd);
	assert_int_equal(access(path, R_OK), 0);
	mem_free(path);
	return true;
}

static void fetched_file_is_kept_by_id_and_kind(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	assert_false(has(&f, &f.id));
	assert_null(take(&f, &f.id, &f.id, 0));
	assert_true(has(&f, &f.id));
	assert_int_equal(fetch_folder_find(f.folder, &f.id, FETCHER_EXECUTABLE, NULL), -1);
	reopen(&f);
	assert_true(has(&f, &f.id));
	assert_int_equal(count(&f, ""), 1);
	struct stat st;
	assert_int_equal(
		stat(temp_dir_path(&f.dir,
				   "fetched/abbc000000000000000000000000000000000000.debuginfo"),
		     &st),
		0);
	assert_int_equal(st.st_mode & 07777, 0600);
	end(&f);
}

static void other_file_gets_no_name(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	const struct build_id other = make_id(1);
	struct error *err = take(&f, &f.id, &other, 0);
	assert_int_equal(error_get_code(err), ERROR_BAD_DATA);
	error_free(err);
	assert_false(has(&f, &f.id));
	assert_int_equal(count(&f, ""), 0);
	end(&f);
}

static void links_and_pipes_of_a_worker_are_refused(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	struct fetch_work work;
	assert_null(fetch_folder_begin_work(f.folder, &work));
	assert_int_equal(symlinkat("/etc/passwd", work.fd, "absolute"), 0);
	assert_int_equal(symlinkat("../../../../../../etc/passwd", work.fd, "upwards"), 0);
	assert_int_equal(mkfifoat(work.fd, "pipe", 0600), 0);
	assert_int_equal(mkdirat(work.fd, "folder", 0700), 0);
	static const char *const paths[] = {"absolute", "upwards", "pipe", "folder", "none", ""};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct error *err =
			fetch_folder_take(f.folder, &work, paths[i], &f.id, FETCHER_DEBUGINFO, 0);
		assert_int_equal(error_get_code(err), ERROR_IO);
		error_free(err);
	}
	fetch_folder_end_work(f.folder, &work);
	assert_int_equal(count(&f, ""), 0);
	end(&f);
}

static void torn_file_is_thrown_away(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	assert_null(take(&f, &f.id, &f.id, 5000));
	assert_int_equal(
		truncate(
			temp_dir_path(&f.dir,
				      "fetched/abbc000000000000000000000000000000000000.debuginfo"),
			3000),
		0);
	assert_false(has(&f, &f.id));
	assert_int_equal(count(&f, ""), 0);
	end(&f);
}

static void absence_counts_for_its_time_and_its_servers(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	assert_false(fetch_folder_is_absent(f.folder, &f.id, FETCHER_DEBUGINFO, 7));
	fetch_folder_note_absent(f.folder, &f.id, FETCHER_DEBUGINFO, 7, 600 * NS_PER_S);
	assert_true(fetch_folder_is_absent(f.folder, &f.id, FETCHER_DEBUGINFO, 7));
	assert_false(fetch_folder_is_absent(f.folder, &f.id, FETCHER_EXECUTABLE, 7));
	assert_false(fetch_folder_is_absent(f.folder, &f.id, FETCHER_DEBUGINFO, 8));
	f.fake.now_wall_ns += 599 * NS_PER_S;
	reopen(&f);
	assert_true(fetch_folder_is_absent(f.folder, &f.id, FETCHER_DEBUGINFO, 7));
	f.fake.now_wall_ns += NS_PER_S;
	assert_false(fetch_folder_is_absent(f.folder, &f.id, FETCHER_DEBUGINFO, 7));
	assert_int_equal(count(&f, ".absent"), 1);
	reopen(&f);
	assert_int_equal(count(&f, ".absent"), 0);
	end(&f);
}

static void file_ends_absence(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	fetch_folder_note_absent(f.folder, &f.id, FETCHER_DEBUGINFO, 7, 600 * NS_PER_S);
	assert_null(take(&f, &f.id, &f.id, 0));
	assert_false(fetch_folder_is_absent(f.folder, &f.id, FETCHER_DEBUGINFO, 7));
	end(&f);
}

static void least_recently_used_files_go_first(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	f.config.max_bytes = 300 << 10;
	reopen(&f);
	struct build_id ids[4];
	for (uint8_t i = 0; i < 4; i++) {
		ids[i] = make_id(i + 1);
		assert_null(take(&f, &ids[i], &ids[i], 100 << 10));
		if (i == 1) {
			/* Use counts, not age. */
			usleep(20000);
			assert_true(has(&f, &ids[0]));
		}
		usleep(20000);
	}
	assert_false(has(&f, &ids[1]));
	assert_true(has(&f, &ids[3]));
	assert_true(count(&f, ".debuginfo") <= 3);
	end(&f);
}

static void killed_runs_leave_nothing_for_long(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	struct fetch_work alive;
	assert_null(fetch_folder_begin_work(f.folder, &alive));
	const char *dead = temp_dir_path(&f.dir, "fetched/work-deadbeef/a/b");
	assert_int_equal(mkdir(temp_dir_path(&f.dir, "fetched/work-deadbeef/a/b"), 0700) < 0 &&
				 errno != EEXIST,
			 0);
	int fd = open(temp_dir_path(&f.dir, "fetched/.new-deadbeef"), O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	(void)dead;
	/* The fake clock stands far before these files' times. */
	reopen(&f);
	assert_int_equal(count(&f, "work-"), 2);
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	f.fake.now_wall_ns = ((uint64_t)now.tv_sec + 3600) * NS_PER_S;
	reopen(&f);
	assert_int_equal(count(&f, "work-"), 1);
	assert_int_equal(access(temp_dir_path(&f.dir, "fetched/.new-deadbeef"), F_OK), -1);
	fetch_folder_end_work(f.folder, &alive);
	assert_int_equal(count(&f, ""), 0);
	end(&f);
}

static void count_removed(void *context, const char *name, const char *reason)
{
	(void)reason;
	assert_int_equal(strncmp(name, "fetched/", 8), 0);
	++*(unsigned *)context;
}

static void upkeep_names_and_counts_what_goes(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	unsigned n = 0;
	const struct store_listener listener = {.removed = count_removed, .context = &n};
	struct store_summary summary = {.n_files = 100, .bytes = 100};
	for (uint8_t i = 0; i < 4; i++) {
		const struct build_id id = make_id(i + 1);
		assert_null(take(&f, &id, &id, 100 << 10));
	}
	assert_null(fetch_folder_tend(f.dir.path, 1 << 20, &listener, &summary));
	assert_int_equal(summary.n_files, 104);
	assert_int_equal(n, 0);
	summary = (struct store_summary){0};
	assert_null(fetch_folder_tend(f.dir.path, 300 << 10, &listener, &summary));
	assert_int_equal(summary.n_files + summary.n_removed, 4);
	assert_int_equal(summary.n_files, count(&f, ".debuginfo"));
	assert_int_equal(n, summary.n_removed);
	assert_true(summary.bytes <= 300 << 10 && summary.bytes > 0 && n > 0);
	assert_null(fetch_folder_tend("/nosuch", 1, &listener, &summary));
	end(&f);
}

static void folder_that_others_may_write_is_refused(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	assert_int_equal(chmod(temp_dir_path(&f.dir, "fetched"), 0777), 0);
	struct fetch_folder *second;
	struct error *err = fetch_folder_open(&f.config, &second);
	assert_int_equal(error_get_code(err), ERROR_DENIED);
	error_free(err);
	end(&f);
}

static void without_store_nothing_stays(void **state)
{
	(void)state;
	struct fixture f;
	begin(&f);
	assert_int_equal(setenv("TMPDIR", f.dir.path, 1), 0);
	f.config.store_path = NULL;
	reopen(&f);
	assert_null(take(&f, &f.id, &f.id, 0));
	assert_true(has(&f, &f.id));
	fetch_folder_close(f.folder);
	f.folder = NULL;
	assert_int_equal(unsetenv("TMPDIR"), 0);
	DIR *list = opendir(f.dir.path);
	for (const struct dirent *entry; (entry = readdir(list));)
		assert_null(strstr(entry->d_name, "perfpipe-fetch-"));
	closedir(list);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fetched_file_is_kept_by_id_and_kind),
		cmocka_unit_test(other_file_gets_no_name),
		cmocka_unit_test(links_and_pipes_of_a_worker_are_refused),
		cmocka_unit_test(torn_file_is_thrown_away),
		cmocka_unit_test(absence_counts_for_its_time_and_its_servers),
		cmocka_unit_test(file_ends_absence),
		cmocka_unit_test(least_recently_used_files_go_first),
		cmocka_unit_test(killed_runs_leave_nothing_for_long),
		cmocka_unit_test(upkeep_names_and_counts_what_goes),
		cmocka_unit_test(folder_that_others_may_write_is_refused),
		cmocka_unit_test(without_store_nothing_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
