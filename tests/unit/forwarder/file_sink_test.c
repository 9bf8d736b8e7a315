/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "forwarder/file_sink.h"
#include "proto/pprof_read.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/forwarder/collected_requests.h"

static const struct key_value labels[] = {{"service_name", "git/../aly"}, {"node", "host-1"}};

static struct error *put(struct file_sink *sink, const struct profile *profile)
{
	const struct outgoing_profile outgoing = {
		.profile = profile, .name = "process_cpu", .labels = labels, .n_labels = 2};
	return file_sink_put(sink, &outgoing);
}

/* Names in the folder, sorted. */
static struct {
	char names[64][256];
	int n;
} listing;

static void list(const char *folder)
{
	struct dirent **entries;
	int n = scandir(folder, &entries, NULL, alphasort);
	assert_true(n >= 0 && n < 64);
	listing.n = 0;
	for (int i = 0; i < n; i++) {
		if (entries[i]->d_name[0] != '.')
			snprintf(listing.names[listing.n++], 256, "%s", entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
}

static struct profile *read_back(const char *folder, const char *name)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	struct buf bytes;
	buf_init(&bytes, 1 << 24);
	assert_null(file_read_all(path, &bytes));
	struct profile *profile;
	assert_null(pprof_read(bytes.data, bytes.size, NULL, &profile, NULL));
	buf_fini(&bytes);
	return profile;
}

static void assert_latest(const char *folder, const char *want)
{
	char path[PATH_MAX], target[PATH_MAX];
	snprintf(path, sizeof(path), "%s/latest", folder);
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	assert_true(n > 0);
	target[n] = 0;
	assert_string_equal(target, want);
}

static void file_sink_names_files_by_time_and_series(void **state)
{
	(void)state;
	struct temp_dir dir;
	temp_dir_init(&dir);
	char folder[PATH_MAX];
	snprintf(folder, sizeof(folder), "%s/profiles", dir.path);
	struct exporter_config config = {.kind = EXPORTER_FILE, .directory = folder};
	struct file_sink *sink;
	assert_null(file_sink_open(&config, &sink));
	struct profile *profile = made_up_profile();
	assert_null(put(sink, profile));
	assert_null(put(sink, profile));
	profile->time_nanos -= 1;
	assert_null(put(sink, profile));
	list(folder);
	assert_int_equal(listing.n, 4);
	assert_string_equal(listing.names[0],
			    "20231114T221319.999999999Z-process_cpu-git_.._aly.pb.gz");
	assert_string_equal(listing.names[1],
			    "20231114T221320.000000000Z-process_cpu-git_.._aly-2.pb.gz");
	assert_string_equal(listing.names[2],
			    "20231114T221320.000000000Z-process_cpu-git_.._aly.pb.gz");
	assert_latest(folder, listing.names[0]);
	struct profile *back = read_back(folder, "latest");
	assert_int_equal(back->samples.n, 5);
	assert_int_equal(profile_value(back, 0, 1), 30000000);
	assert_int_equal(back->comments.n, 3);
	assert_string_equal(profile_text(back, back->comments.items[2]),
			    "series: process_cpu{service_name=\"git/../aly\",node=\"host-1\"}");
	/* Labels of samples are as they were, numbers too. */
	assert_true(profile_label_at(back, back->label_sets.items[1].first + 1).is_number);
	profile_free(back);
	const struct file_sink_counts *counts = file_sink_get_counts(sink);
	assert_int_equal(counts->n_written, 3);
	assert_true(counts->n_bytes > 300);
	profile_free(profile);
	file_sink_close(sink);
	temp_dir_fini(&dir);
}

static void file_sink_removes_the_oldest_past_its_bound(void **state)
{
	(void)state;
	struct temp_dir dir;
	temp_dir_init(&dir);
	struct exporter_config config = {.directory = dir.path};
	struct file_sink *sink;
	assert_null(file_sink_open(&config, &sink));
	struct profile *profile = made_up_profile();
	assert_null(put(sink, profile));
	uint64_t bytes = file_sink_get_counts(sink)->n_bytes;
	config.max_directory_bytes = bytes * 3 + bytes / 2;
	/* Not ours: stays, whatever its size. */
	FILE *other = fopen(temp_dir_path(&dir, "20000101T000000.pb.gz"), "w");
	assert_non_null(other);
	for (int i = 0; i < 10000; i++)
		fputs("0123456789", other);
	fclose(other);
	for (int i = 1; i < 8; i++) {
		profile->time_nanos += 10000000000;
		assert_null(put(sink, profile));
	}
	list(dir.path);
	assert_int_equal(listing.n, 5); /* the other, three of ours, latest */
	assert_string_equal(listing.names[0], "20000101T000000.pb.gz");
	assert_string_equal(listing.names[3],
			    "20231114T221430.000000000Z-process_cpu-git_.._aly.pb.gz");
	assert_latest(dir.path, listing.names[3]);
	assert_int_equal(file_sink_get_counts(sink)->n_removed, 5);
	/* The newest stays even when it is too large alone. */
	config.max_directory_bytes = 1;
	profile->time_nanos += 10000000000;
	assert_null(put(sink, profile));
	list(dir.path);
	assert_int_equal(listing.n, 3);
	profile_free(profile);
	file_sink_close(sink);
	temp_dir_fini(&dir);
}

static void file_sink_writes_nothing_of_an_empty_profile(void **state)
{
	(void)state;
	struct temp_dir dir;
	temp_dir_init(&dir);
	struct exporter_config config = {.directory = dir.path};
	struct file_sink *sink;
	assert_null(file_sink_open(&config, &sink));
	struct profile *profile = profile_new();
	profile_add_sample_type(profile, "samples", "count");
	assert_null(put(sink, profile));
	list(dir.path);
	assert_int_equal(listing.n, 0);
	profile_free(profile);
	file_sink_close(sink);
	config.directory = "/proc/no/such/place";
	struct error *err = file_sink_open(&config, &sink);
	assert_int_equal(error_get_number(err), 701);
	error_free(err);
	temp_dir_fini(&dir);
}

static void file_sink_makes_room_on_a_full_disk(void **state)
{
	(void)state;
	struct temp_dir dir;
	temp_dir_init(&dir);
	if (mount("none", dir.path, "tmpfs", 0, "size=256k") < 0) {
		temp_dir_fini(&dir);
		skip();
	}
	struct exporter_config config = {.directory = dir.path};
	struct file_sink *sink;
	assert_null(file_sink_open(&config, &sink));
	struct profile *profile = collected_large_profile(3000, 0);
	struct error *err = NULL;
	int n = 0;
	for (; !err && n < 50; n++) {
		profile->time_nanos += 1000000000;
		err = put(sink, profile);
	}
	/* Without a bound nothing is removed: full is full, and no trace is left. */
	assert_int_equal(error_get_number(err), 702);
	error_free(err);
	list(dir.path);
	assert_int_equal(listing.n, n);
	/* With one, the oldest give way. */
	config.max_directory_bytes = 1 << 30;
	for (int i = 0; i < 5; i++) {
		profile->time_nanos += 1000000000;
		assert_null(put(sink, profile));
		struct profile *back = read_back(dir.path, "latest");
		assert_int_equal(back->time_nanos, profile->time_nanos);
		profile_free(back);
	}
	assert_true(file_sink_get_counts(sink)->n_removed >= 5);
	profile_free(profile);
	file_sink_close(sink);
	assert_int_equal(umount(dir.path), 0);
	temp_dir_fini(&dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file_sink_names_files_by_time_and_series),
		cmocka_unit_test(file_sink_removes_the_oldest_past_its_bound),
		cmocka_unit_test(file_sink_writes_nothing_of_an_empty_profile),
		cmocka_unit_test(file_sink_makes_room_on_a_full_disk),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
