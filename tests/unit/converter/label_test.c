/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "converter/converter.h"
#include "converter/label.h"

struct fixture {
	struct image_table images;
	struct process_table processes;
	struct labeler labeler;
	struct profile *profile;
	char text[1024];
};

static void fixture_init(struct fixture *f, uint32_t labels)
{
	*f = (struct fixture){.profile = profile_new()};
	image_table_init(&f->images);
	process_table_init(&f->processes, &f->images);
	labeler_init(&f->labeler, labels);
	labeler_begin(&f->labeler, f->profile);
}

static void fixture_fini(struct fixture *f)
{
	labeler_fini(&f->labeler);
	process_table_fini(&f->processes);
	image_table_fini(&f->images);
	profile_free(f->profile);
}

static uint32_t label(struct fixture *f, uint32_t pid, uint32_t tid, const struct sample *sample)
{
	struct thread *thread = process_table_recent(&f->processes, pid, tid);
	return labeler_label(&f->labeler, thread, sample);
}

/* "comm=x pid=1" */
static const char *text_of(struct fixture *f, uint32_t set)
{
	struct profile_label_set labels = f->profile->label_sets.items[set];
	size_t used = 0;
	f->text[0] = '\0';
	for (uint32_t i = 0; i < labels.n; i++) {
		const struct profile_label l = profile_label_at(f->profile, labels.first + i);
		int n = l.is_number ? snprintf(f->text + used, sizeof(f->text) - used, "%s%s=%d",
					       i ? " " : "", profile_text(f->profile, l.key),
					       (int)l.num)
				    : snprintf(f->text + used, sizeof(f->text) - used, "%s%s=%s",
					       i ? " " : "", profile_text(f->profile, l.key),
					       profile_text(f->profile, l.str));
		used += (size_t)n;
	}
	return f->text;
}

static const char *text_for(struct fixture *f, uint32_t pid, uint32_t tid)
{
	const struct sample sample = {.cpu = UINT32_MAX};
	return text_of(f, label(f, pid, tid, &sample));
}

static void label_default_is_comm_and_pid(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, CONVERTER_LABEL_DEFAULT);
	process_table_comm(&f.processes, 5, 6, "worker", false, false);
	assert_string_equal(text_for(&f, 5, 6), "comm=worker pid=5");
	assert_string_equal(text_for(&f, 5, 7), "comm=:7 pid=5");
	assert_string_equal(text_for(&f, 0, 0), "comm=swapper pid=0");
	fixture_fini(&f);
}

static void label_none_is_the_empty_set(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 0);
	const struct sample sample = {.cpu = 1};
	assert_int_equal(label(&f, 5, 6, &sample), 0);
	fixture_fini(&f);
}

static void label_all_come_in_their_order(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, 0xff);
	process_table_comm(&f.processes, 5, 5, "app", true, false);
	process_table_comm(&f.processes, 5, 6, "wrk one", false, false);
	process_table_exec(&f.processes, 5, 6, "app --x", "/from-exec");
	const struct sample sample = {.cpu = 3};
	assert_string_equal(text_of(&f, label(&f, 5, 6, &sample)),
			    "comm=wrk one pid=5 tid=6 thread=wrk one process=app cpu=3 "
			    "cgroup=/from-exec cmdline=app --x");
	fixture_fini(&f);
}

static void label_cgroup_of_the_sample_wins_and_is_renamed(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, CONVERTER_LABEL_CGROUP);
	process_table_exec(&f.processes, 5, 5, NULL, "/old");
	labeler_add_cgroup(&f.labeler, 77, "/new");
	labeler_add_cgroup(&f.labeler, 78, "/other");
	labeler_add_cgroup(&f.labeler, 78, "/renamed");
	const struct sample known = {.cgroup_id = 77}, unknown = {.cgroup_id = 99},
			    renamed = {.cgroup_id = 78};
	assert_string_equal(text_of(&f, label(&f, 5, 5, &known)), "cgroup=/new");
	assert_string_equal(text_of(&f, label(&f, 5, 5, &unknown)), "cgroup=/old");
	assert_string_equal(text_of(&f, label(&f, 5, 5, &renamed)), "cgroup=/renamed");
	assert_string_equal(text_of(&f, label(&f, 6, 6, &unknown)), "");
	fixture_fini(&f);
}

static void label_cgroups_are_bounded(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, CONVERTER_LABEL_CGROUP);
	for (uint64_t id = 1; id < 100000; id++)
		labeler_add_cgroup(&f.labeler, id, "/x");
	assert_int_equal(f.labeler.cgroups.n, 1 << 16);
	labeler_add_cgroup(&f.labeler, 1, "/known ones may change");
	const struct sample sample = {.cgroup_id = 1};
	assert_string_equal(text_of(&f, label(&f, 5, 5, &sample)), "cgroup=/known ones may change");
	fixture_fini(&f);
}

static void label_follows_names_as_they_change(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, CONVERTER_LABEL_COMM | CONVERTER_LABEL_CMDLINE);
	process_table_comm(&f.processes, 5, 5, "sh", false, false);
	assert_string_equal(text_for(&f, 5, 5), "comm=sh");
	process_table_comm(&f.processes, 5, 5, "cc", true, false);
	assert_string_equal(text_for(&f, 5, 5), "comm=cc");
	process_table_exec(&f.processes, 5, 5, "cc -c x.c", NULL);
	assert_string_equal(text_for(&f, 5, 5), "comm=cc cmdline=cc -c x.c");
	process_table_fork(&f.processes, 6, 5, 6, 5, false);
	assert_string_equal(text_for(&f, 6, 6), "comm=cc cmdline=cc -c x.c");
	process_table_comm(&f.processes, 6, 6, "ld", true, false);
	assert_string_equal(text_for(&f, 6, 6), "comm=ld");
	fixture_fini(&f);
}

/* Threads are sampled before the record that names their process. */
static void label_of_a_thread_follows_its_process(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, CONVERTER_LABEL_PROCESS | CONVERTER_LABEL_CMDLINE);
	assert_string_equal(text_for(&f, 5, 6), "process=:6");
	process_table_comm(&f.processes, 5, 5, "app", false, true);
	assert_string_equal(text_for(&f, 5, 6), "process=app");
	process_table_exec(&f.processes, 5, 5, "app -v", NULL);
	assert_string_equal(text_for(&f, 5, 6), "process=app cmdline=app -v");
	fixture_fini(&f);
}

static void label_sets_are_made_anew_in_each_window(void **state)
{
	(void)state;
	struct fixture f;
	fixture_init(&f, CONVERTER_LABEL_DEFAULT);
	process_table_comm(&f.processes, 5, 5, "five", false, false);
	process_table_comm(&f.processes, 6, 6, "six", false, false);
	assert_string_equal(text_for(&f, 5, 5), "comm=five pid=5");
	assert_string_equal(text_for(&f, 6, 6), "comm=six pid=6");
	profile_free(f.profile);
	f.profile = profile_new();
	labeler_begin(&f.labeler, f.profile);
	assert_string_equal(text_for(&f, 6, 6), "comm=six pid=6");
	assert_string_equal(text_for(&f, 5, 5), "comm=five pid=5");
	fixture_fini(&f);
}

static void label_names_are_those_of_their_bits(void **state)
{
	(void)state;
	assert_string_equal(converter_label_name(0), "comm");
	for (unsigned i = 0; i < CONVERTER_LABEL_N; i++)
		assert_true(*converter_label_name(i));
	assert_int_equal(1 << (CONVERTER_LABEL_N - 1), CONVERTER_LABEL_CMDLINE);
	assert_string_equal(converter_label_name(CONVERTER_LABEL_N - 1), "cmdline");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(label_default_is_comm_and_pid),
		cmocka_unit_test(label_none_is_the_empty_set),
		cmocka_unit_test(label_all_come_in_their_order),
		cmocka_unit_test(label_cgroup_of_the_sample_wins_and_is_renamed),
		cmocka_unit_test(label_cgroups_are_bounded),
		cmocka_unit_test(label_follows_names_as_they_change),
		cmocka_unit_test(label_of_a_thread_follows_its_process),
		cmocka_unit_test(label_sets_are_made_anew_in_each_window),
		cmocka_unit_test(label_names_are_those_of_their_bits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
