/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "forwarder/spool.h"
#include "forwarder/spool_file.h"
#include "forwarder/spool_name.h"
#include "tests/support/temp_dir.h"

#define S_NS ((uint64_t)1000000000)

struct fixture {
	struct temp_dir dir;
	struct clock_fake time;
	struct clock clock;
	struct spool_limits limits;
	struct spool *spool;
	struct buf message;
};

static int setup(void **state)
{
	struct fixture *f = mem_zalloc(1, sizeof(*f));
	temp_dir_init(&f->dir);
	f->time = (struct clock_fake){.now_monotonic_ns = S_NS, .now_wall_ns = 1000 * S_NS};
	f->clock = clock_from_fake(&f->time);
	f->limits = (struct spool_limits){.min_free_bytes = 1};
	buf_init(&f->message, 1 << 24);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	spool_close(f->spool);
	buf_fini(&f->message);
	temp_dir_fini(&f->dir);
	mem_free(f);
	return 0;
}

static void open_spool(struct fixture *f)
{
	spool_close(f->spool);
	f->spool = NULL;
	struct error *err = spool_open(f->dir.path, "parca/a", EXPORTER_PARCA, &f->limits,
				       &f->clock, &f->spool);
	if (err)
		fail_msg("%s", error_text(err));
}

/* A window with one request for each text; each counts as 1 profile of 10 samples. */
static struct error *put(struct fixture *f, const char *const *texts)
{
	struct spool_window *window = spool_begin(f->spool);
	for (; *texts; texts++) {
		struct request_summary summary = {
			.n_samples = 10,
			.n_profiles = 1,
			.first_time_ns = 5,
			.last_time_ns = 6,
		};
		spool_append(window, (const uint8_t *)*texts, strlen(*texts), &summary);
	}
	return spool_commit(window);
}
#define PUT(f, ...) assert_null(put(f, (const char *const[]){__VA_ARGS__, NULL}))

static struct spool_request take(struct fixture *f, const char *want)
{
	struct spool_request request = {0};
	buf_clear(&f->message);
	struct error *err = spool_take(f->spool, &request, &f->message);
	if (err)
		fail_msg("%s instead of %s", error_text(err), want);
	assert_int_equal(f->message.size, strlen(want));
	assert_memory_equal(f->message.data, want, strlen(want));
	assert_int_equal(request.n, strlen(want));
	assert_int_equal(request.summary.n_samples, 10);
	assert_int_equal(request.summary.first_time_ns, 5);
	assert_int_equal(request.summary.last_time_ns, 6);
	return request;
}

static void assert_nothing_waits(struct fixture *f)
{
	struct spool_request request;
	assert_ptr_equal(spool_take(f->spool, &request, &f->message), error_no_entry);
}

static struct spool_counts counts(struct fixture *f)
{
	struct spool_counts counts;
	spool_get_counts(f->spool, &counts);
	return counts;
}

/* Files of a folder that end in suffix; the path of the last one into path (may be NULL). */
static int count_files(struct fixture *f, const char *folder, const char *suffix, char *path)
{
	char full[512];
	snprintf(full, sizeof(full), "%s/%s", f->dir.path, folder);
	DIR *dir = opendir(full);
	int n = 0;
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		size_t length = strlen(entry->d_name);
		if (length < strlen(suffix) ||
		    strcmp(entry->d_name + length - strlen(suffix), suffix) != 0)
			continue;
		n++;
		if (path)
			snprintf(path, 1024, "%s/%s", full, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return n;
}

static void spool_hands_requests_out_in_order_and_forgets_what_was_delivered(void **state)
{
	struct fixture *f = *state;
	open_spool(f);
	PUT(f, "a1", "a2");
	f->time.now_wall_ns += 10 * S_NS;
	PUT(f, "b1");
	struct spool_counts c = counts(f);
	assert_int_equal(c.windows, 2);
	assert_int_equal(c.requests, 3);
	assert_int_equal(c.profiles, 3);
	assert_int_equal(c.samples, 30);
	assert_int_equal(c.oldest_time_ns, 1000 * S_NS);
	struct spool_request a1 = take(f, "a1"), a2 = take(f, "a2"), b1 = take(f, "b1");
	assert_nothing_waits(f);
	spool_put_back(f->spool, &a2);
	a2 = take(f, "a2");
	assert_int_equal(a2.enqueued_ns, 1000 * S_NS);
	spool_delivered(f->spool, &b1);
	spool_delivered(f->spool, &a1);
	assert_int_equal(counts(f).requests, 1);
	assert_int_equal(count_files(f, "parca~a", ".q1", NULL), 1);
	spool_delivered(f->spool, &a2);
	c = counts(f);
	assert_int_equal(c.requests + c.bytes + c.windows + c.oldest_time_ns, 0);
	assert_int_equal(count_files(f, "parca~a", "1", NULL), 0);
}

static void spool_knows_after_a_restart_what_waits(void **state)
{
	struct fixture *f = *state;
	open_spool(f);
	PUT(f, "a1", "a2", "a3");
	PUT(f, "b1");
	struct spool_request a1 = take(f, "a1"), a2 = take(f, "a2");
	spool_delivered(f->spool, &a2);
	(void)a1;
	open_spool(f);
	struct spool_counts c = counts(f);
	assert_int_equal(c.requests, 3);
	assert_int_equal(c.samples, 30);
	a1 = take(f, "a1");
	take(f, "a3");
	take(f, "b1");
	assert_nothing_waits(f);
	spool_delivered(f->spool, &a1);
	open_spool(f);
	PUT(f, "c1");
	take(f, "a3");
	take(f, "b1");
	take(f, "c1");
	assert_nothing_waits(f);
}

static void spool_is_one_process_s_at_a_time(void **state)
{
	struct fixture *f = *state;
	open_spool(f);
	struct spool *second;
	struct error *err =
		spool_open(f->dir.path, "parca/a", EXPORTER_PARCA, &f->limits, &f->clock, &second);
	assert_non_null(err);
	assert_int_equal(error_get_code(err), ERROR_UNAVAILABLE);
	error_free(err);
	assert_null(
		spool_open(f->dir.path, "parca/b", EXPORTER_PARCA, &f->limits, &f->clock, &second));
	spool_close(second);
}

static void spool_drops_the_oldest_windows_when_it_is_full(void **state)
{
	struct fixture *f = *state;
	f->limits.max_bytes = 1000;
	open_spool(f);
	PUT(f, "a1"); /* 256 bytes each */
	PUT(f, "b1");
	struct spool_request a1 = take(f, "a1");
	PUT(f, "c1");
	PUT(f, "d1");
	/* a is under way, so b went. */
	struct spool_counts c = counts(f);
	assert_int_equal(c.lost_requests[SPOOL_LOSS_FULL], 1);
	assert_int_equal(c.lost_samples[SPOOL_LOSS_FULL], 10);
	assert_int_equal(c.requests, 3);
	assert_in_range(c.bytes, 1, 1000);
	take(f, "c1");
	spool_delivered(f->spool, &a1);
	take(f, "d1");
	assert_nothing_waits(f);

	char big[1000];
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	struct error *err = put(f, (const char *const[]){big, "y", NULL});
	assert_non_null(err);
	assert_int_equal(error_get_code(err), ERROR_LIMIT);
	error_free(err);
	c = counts(f);
	assert_int_equal(c.lost_requests[SPOOL_LOSS_FULL], 3);
	assert_int_equal(c.requests, 2);
	assert_int_equal(count_files(f, "parca~a", ".tmp", NULL), 0);
}

static void spool_refuses_or_holds_back_new_windows_when_told_so(void **state)
{
	struct fixture *f = *state;
	f->limits.max_bytes = 500;
	f->limits.when_full = SPOOL_DROP_NEWEST;
	open_spool(f);
	PUT(f, "a1");
	struct error *err = put(f, (const char *const[]){"b1", NULL});
	assert_int_equal(error_get_code(err), ERROR_LIMIT);
	error_free(err);
	assert_int_equal(counts(f).lost_requests[SPOOL_LOSS_FULL], 1);

	f->limits.when_full = SPOOL_BLOCK;
	open_spool(f);
	struct spool_window *window = spool_begin(f->spool);
	struct request_summary summary = {.n_samples = 10, .n_profiles = 1, 5, 6};
	summary.first_time_ns = 5;
	summary.last_time_ns = 6;
	spool_append(window, (const uint8_t *)"c1", 2, &summary);
	assert_ptr_equal(spool_commit(window), error_again);
	struct spool_request a1 = take(f, "a1");
	spool_delivered(f->spool, &a1);
	assert_null(spool_commit(window));
	take(f, "c1");
	assert_int_equal(counts(f).lost_requests[SPOOL_LOSS_FULL], 0);
}

static void spool_drops_what_is_too_old(void **state)
{
	struct fixture *f = *state;
	f->limits.max_age_ns = 60 * S_NS;
	open_spool(f);
	PUT(f, "a1", "a2");
	struct spool_request a1 = take(f, "a1");
	spool_delivered(f->spool, &a1);
	f->time.now_wall_ns += 30 * S_NS;
	PUT(f, "b1");
	f->time.now_wall_ns += 30 * S_NS;
	spool_tend(f->spool);
	assert_int_equal(counts(f).requests, 2);
	f->time.now_wall_ns += 1;
	spool_tend(f->spool);
	struct spool_counts c = counts(f);
	assert_int_equal(c.lost_requests[SPOOL_LOSS_EXPIRED], 1);
	assert_int_equal(c.lost_profiles[SPOOL_LOSS_EXPIRED], 1);
	assert_int_equal(c.lost_samples[SPOOL_LOSS_EXPIRED], 10);
	/* A clock that was set back makes nothing old. */
	f->time.now_wall_ns = 5 * S_NS;
	spool_tend(f->spool);
	take(f, "b1");
}

static void spool_keeps_refused_requests_with_the_reason_and_takes_them_back(void **state)
{
	struct fixture *f = *state;
	open_spool(f);
	PUT(f, "a1", "a2");
	struct spool_request a1 = take(f, "a1");
	assert_null(spool_reject(f->spool, &a1, f->message.data, "server: no such label"));
	char path[1024];
	assert_int_equal(count_files(f, "rejected/parca~a", ".r1", path), 1);
	struct spool_counts c = counts(f);
	assert_int_equal(c.lost_requests[SPOOL_LOSS_REJECTED], 1);
	assert_int_equal(c.requests, 1);

	int fd = open(path, O_RDONLY);
	struct spool_index index;
	assert_null(spool_file_read_index(fd, &index));
	assert_int_equal(index.n, 1);
	assert_int_equal(index.content, EXPORTER_PARCA);
	assert_false(index.is_damaged);
	struct buf note, message;
	buf_init(&note, 4096);
	buf_init(&message, 4096);
	assert_null(spool_file_read(fd, &index, 0, &note, &message));
	assert_string_equal((char *)note.data, "server: no such label");
	assert_int_equal(message.size, 2);
	assert_memory_equal(message.data, "a1", 2);
	buf_fini(&note);
	buf_fini(&message);
	spool_index_fini(&index);
	close(fd);

	char to[2048];
	snprintf(to, sizeof(to), "%s", temp_dir_path(&f->dir, "parca~a/retry/x"));
	*strrchr(to, '/') = 0;
	mkdir(to, 0700);
	strcat(to, strrchr(path, '/'));
	assert_int_equal(rename(path, to), 0);
	f->time.now_monotonic_ns += 3 * S_NS;
	spool_tend(f->spool);
	take(f, "a2");
	take(f, "a1");
}

static void spool_sets_damaged_files_aside_and_goes_on(void **state)
{
	struct fixture *f = *state;
	open_spool(f);
	PUT(f, "a1", "a2");
	char path[1024];
	count_files(f, "parca~a", ".q1", path);
	assert_int_equal(truncate(path, 20), 0);
	PUT(f, "b1");
	take(f, "b1");
	struct spool_counts c = counts(f);
	assert_int_equal(c.lost_requests[SPOOL_LOSS_CORRUPT], 2);
	assert_int_equal(c.lost_samples[SPOOL_LOSS_CORRUPT], 20);
	assert_int_equal(count_files(f, "corrupt/parca~a", ".q1", NULL), 1);
}

static void spool_counts_files_that_were_removed_by_hand(void **state)
{
	struct fixture *f = *state;
	open_spool(f);
	PUT(f, "a1", "a2");
	char path[1024];
	count_files(f, "parca~a", ".q1", path);
	PUT(f, "b1");
	unlink(path);
	take(f, "b1");
	struct spool_counts c = counts(f);
	assert_int_equal(c.lost_requests[SPOOL_LOSS_REMOVED], 2);
	assert_int_equal(c.lost_samples[SPOOL_LOSS_REMOVED], 20);
	assert_int_equal(c.windows, 1);
}

/* In protobuf a message of defaults is one of no bytes. */
static void spool_keeps_a_request_without_bytes(void **state)
{
	struct fixture *f = *state;
	open_spool(f);
	PUT(f, "");
	buf_fini(&f->message); /* with no memory of its own yet */
	buf_init(&f->message, 1 << 24);
	take(f, "");
}

/* It may still arrive: nothing counts twice. */
static void spool_counts_removed_files_after_what_is_under_way(void **state)
{
	struct fixture *f = *state;
	open_spool(f);
	PUT(f, "a1", "a2");
	struct spool_request a1 = take(f, "a1");
	char path[1024];
	count_files(f, "parca~a", ".q1", path);
	unlink(path);
	assert_nothing_waits(f);
	assert_int_equal(counts(f).lost_requests[SPOOL_LOSS_REMOVED], 0);
	spool_delivered(f->spool, &a1);
	assert_nothing_waits(f);
	assert_int_equal(counts(f).lost_requests[SPOOL_LOSS_REMOVED], 1);
	assert_int_equal(counts(f).windows, 0);
}

/* Two processes send to one place: neither waits for the other, and what one leaves goes on. */
static void spool_of_several_processes_is_taken_over_by_the_next(void **state)
{
	struct fixture *f = *state;
	f->limits.is_shared = true;
	open_spool(f);
	struct spool *first = f->spool;
	f->spool = NULL;
	open_spool(f); /* parca~a.2 */
	PUT(f, "b1", "b2", "b3");
	PUT(f, "c1");
	struct spool_request b1 = take(f, "b1");
	take(f, "b2");
	spool_delivered(f->spool, &b1);
	spool_close(f->spool);
	f->spool = first;
	assert_nothing_waits(f); /* the first looks around when it starts only */
	PUT(f, "a1");
	open_spool(f);
	assert_int_equal(counts(f).requests, 4);
	assert_int_equal(counts(f).samples, 40);
	assert_int_equal(count_files(f, "parca~a.2", ".q1", NULL), 0);
	assert_int_equal(count_files(f, "parca~a.2", ".done1", NULL), 0);
	take(f, "a1");
	struct spool_request b2 = take(f, "b2");
	spool_delivered(f->spool, &b2);
	/* What was delivered stays delivered, also after another start. */
	open_spool(f);
	take(f, "a1");
	take(f, "b3");
	take(f, "c1");
	assert_nothing_waits(f);
}

static void spool_leaves_alone_what_a_running_process_has(void **state)
{
	struct fixture *f = *state;
	f->limits.is_shared = true;
	open_spool(f);
	PUT(f, "a1");
	struct spool *first = f->spool;
	f->spool = NULL;
	open_spool(f);
	assert_nothing_waits(f);
	spool_close(first);
	open_spool(f);
	take(f, "a1");
}

static void spool_has_a_bound_of_processes_at_one_place(void **state)
{
	struct fixture *f = *state;
	struct spool *spools[16];
	f->limits.is_shared = true;
	for (int i = 0; i < 16; i++) {
		open_spool(f);
		spools[i] = f->spool;
		f->spool = NULL;
	}
	struct error *err = spool_open(f->dir.path, "parca/a", EXPORTER_PARCA, &f->limits,
				       &f->clock, &f->spool);
	assert_int_equal(error_get_code(err), ERROR_UNAVAILABLE);
	error_free(err);
	for (int i = 0; i < 16; i++)
		spool_close(spools[i]);
}

/* Any one byte changed, and any cut, costs at most the request it is in. */
static void spool_loses_one_request_to_a_damaged_byte(void **state)
{
	struct fixture *f = *state;
	open_spool(f);
	PUT(f, "first", "second one", "third");
	char path[1024];
	count_files(f, "parca~a", ".q1", path);
	int fd = open(path, O_RDWR);
	struct stat st;
	fstat(fd, &st);
	assert_int_equal(counts(f).bytes, st.st_size);
	for (off_t at = 0; at < st.st_size; at++) {
		uint8_t byte, other;
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		other = byte ^ 0x41;
		assert_int_equal(pwrite(fd, &other, 1, at), 1);
		struct spool_index index;
		assert_null(spool_file_read_index(fd, &index));
		assert_int_equal(index.n, 3);
		int n_whole = 0;
		for (uint32_t i = 0; i < 3; i++) {
			buf_clear(&f->message);
			struct error *err = spool_file_read(fd, &index, i, NULL, &f->message);
			n_whole += !err;
			if (err)
				assert_int_equal(error_get_code(err), ERROR_BAD_DATA);
			static const char *const want[] = {"first", "second one", "third"};
			if (!err)
				assert_memory_equal(f->message.data, want[i], strlen(want[i]));
			error_free(err);
		}
		if (n_whole < 2)
			fail_msg("byte %d leaves %d requests", (int)at, n_whole);
		spool_index_fini(&index);
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	close(fd);
}

static void spool_keeps_whole_requests_of_a_cut_file(void **state)
{
	struct fixture *f = *state;
	open_spool(f);
	PUT(f, "first", "second one", "third");
	char path[1024];
	count_files(f, "parca~a", ".q1", path);
	/* Header 64; requests of 72 and their text, to a multiple of 8. */
	static const struct {
		int size, n;
	} cases[] = {{64 + 79, 0},	    {64 + 80, 1},	    {64 + 80 + 87, 1},
		     {64 + 80 + 88, 2},	    {64 + 80 + 88 + 79, 2}, {64 + 80 + 88 + 80, 3},
		     {64 + 80 + 88 + 81, 3}};
	struct stat st;
	stat(path, &st);
	uint8_t bytes[1024];
	int fd = open(path, O_RDWR);
	assert_int_equal(pread(fd, bytes, sizeof(bytes), 0), st.st_size);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(pwrite(fd, bytes, (size_t)st.st_size, 0), st.st_size);
		assert_int_equal(ftruncate(fd, cases[i].size), 0);
		struct spool_index index;
		struct error *err = spool_file_read_index(fd, &index);
		if (!cases[i].n) {
			assert_int_equal(error_get_code(err), ERROR_BAD_DATA);
			error_free(err);
			continue;
		}
		assert_null(err);
		assert_int_equal(index.n, cases[i].n);
		assert_true(index.is_damaged);
		spool_index_fini(&index);
	}
	close(fd);
	/* The last state, as the spool sees it: three whole requests and a damaged end. */
	open_spool(f);
	struct spool_request a = take(f, "first"), b = take(f, "second one"), c = take(f, "third");
	spool_delivered(f->spool, &a);
	spool_delivered(f->spool, &b);
	spool_delivered(f->spool, &c);
	assert_int_equal(counts(f).lost_requests[SPOOL_LOSS_CORRUPT], 0);
	assert_int_equal(count_files(f, "parca~a", ".q1", NULL), 0);
	assert_int_equal(count_files(f, "corrupt/parca~a", ".q1", NULL), 1);
}

static void spool_counts_what_the_disk_refuses(void **state)
{
	struct fixture *f = *state;
	open_spool(f);
	PUT(f, "a1");
	struct spool_window *window = spool_begin(f->spool);
	struct request_summary summary = {.n_samples = 7, .n_profiles = 2};
	spool_append(window, (const uint8_t *)"x", 1, &summary);
	/* The folder goes away under it: its rename fails. */
	char from[512], to[512];
	snprintf(from, sizeof(from), "%s/parca~a", f->dir.path);
	snprintf(to, sizeof(to), "%s/elsewhere", f->dir.path);
	char unfinished[1024];
	assert_int_equal(count_files(f, "parca~a", ".tmp", unfinished), 1);
	unlink(unfinished);
	struct error *err = spool_commit(window);
	assert_non_null(err);
	error_free(err);
	struct spool_counts c = counts(f);
	assert_int_equal(c.lost_requests[SPOOL_LOSS_DISK], 1);
	assert_int_equal(c.lost_profiles[SPOOL_LOSS_DISK], 2);
	assert_int_equal(c.lost_samples[SPOOL_LOSS_DISK], 7);
	PUT(f, "b1");
	take(f, "a1");
	take(f, "b1");
}

static void spool_removes_what_a_crash_left_half_written(void **state)
{
	struct fixture *f = *state;
	open_spool(f);
	struct spool_window *window = spool_begin(f->spool);
	assert_int_equal(count_files(f, "parca~a", ".tmp", NULL), 1);
	(void)window;
	FILE *file = fopen(temp_dir_path(&f->dir, "parca~a/0000000000000007.tmp"), "w");
	fclose(file);
	file = fopen(temp_dir_path(&f->dir, "parca~a/notes.txt"), "w");
	fclose(file);
	spool_abandon(window);
	open_spool(f);
	assert_int_equal(count_files(f, "parca~a", ".tmp", NULL), 0);
	assert_int_equal(count_files(f, "parca~a", "notes.txt", NULL), 1);
	assert_nothing_waits(f);
}

static void spool_names_are_read_as_they_were_made(void **state)
{
	(void)state;
	struct spool_name name = {UINT64_MAX, 1, 2, UINT32_MAX, 4, UINT64_MAX}, again;
	char text[SPOOL_NAME_BYTES];
	spool_name_format(&name, ".done1", text);
	assert_string_equal(text, "ffffffffffffffff-0000000000000001-2-ffffffff-4-"
				  "ffffffffffffffff.done1");
	assert_true(spool_name_parse(text, ".done1", &again));
	assert_memory_equal(&name, &again, sizeof(name));
	static const char *const bad[] = {
		"",
		".q1",
		"1-2-3-4-5-6.q1",
		"0000000000000001-0000000000000002-3-4-5-6.q2",
		"0000000000000001-0000000000000002-3-4-5-6.q1x",
		"0000000000000001-0000000000000002-3-4-5-06.q1",
		"0000000000000001-0000000000000002-3-100000000-5-6.q1",
		"0000000000000001-0000000000000002-3-4-5.q1",
		"0000000000000001-0000000000000002-3-4-5-G.q1",
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(spool_name_parse(bad[i], ".q1", &again));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(spool_hands_requests_out_in_order_and_forgets_what_was_delivered),
		CASE(spool_knows_after_a_restart_what_waits),
		CASE(spool_is_one_process_s_at_a_time),
		CASE(spool_drops_the_oldest_windows_when_it_is_full),
		CASE(spool_refuses_or_holds_back_new_windows_when_told_so),
		CASE(spool_drops_what_is_too_old),
		CASE(spool_keeps_refused_requests_with_the_reason_and_takes_them_back),
		CASE(spool_sets_damaged_files_aside_and_goes_on),
		CASE(spool_counts_files_that_were_removed_by_hand),
		CASE(spool_keeps_a_request_without_bytes),
		CASE(spool_counts_removed_files_after_what_is_under_way),
		CASE(spool_of_several_processes_is_taken_over_by_the_next),
		CASE(spool_leaves_alone_what_a_running_process_has),
		CASE(spool_has_a_bound_of_processes_at_one_place),
		CASE(spool_loses_one_request_to_a_damaged_byte),
		CASE(spool_keeps_whole_requests_of_a_cut_file),
		CASE(spool_counts_what_the_disk_refuses),
		CASE(spool_removes_what_a_crash_left_half_written),
		cmocka_unit_test(spool_names_are_read_as_they_were_made),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
