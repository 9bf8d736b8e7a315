/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of JIT code, from records to the profile. Recorded processes have their files below a
 * sysroot; the live one is this process, with its map in the real /tmp.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "converter/converter.h"
#include "tests/support/jit_dump_maker.h"
#include "tests/support/profile_dump.h"
#include "tests/support/record_maker.h"
#include "tests/support/temp_dir.h"

enum { PID = 77, CHILD = 78, CODE = 0x10000, CODE_BYTES = 0x10000 };
static const uint64_t second = 1000000000;

struct fixture {
	struct temp_dir dir;
	char root[PATH_MAX], map[PATH_MAX];
	struct perf_event_info event;
	struct perf_source_info source;
	struct record_maker maker;
	struct jit_dump_maker dump;
	struct symcache_config symbols;
	struct symcache *cache;
	struct converter_config config;
	struct converter *converter;
	struct profile *profile;
	struct buf text;
	uint64_t base_ns;
	uint32_t pid;
};

static struct fixture *begin(void **state)
{
	struct fixture *f = mem_zalloc(1, sizeof(*f));
	temp_dir_init(&f->dir);
	snprintf(f->root, sizeof(f->root), "%s", temp_dir_path(&f->dir, "root"));
	f->event.name = "cpu-clock";
	f->event.attr.type = PERF_TYPE_SOFTWARE;
	f->event.attr.sample_period = 100;
	f->event.attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				    PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN;
	perf_attr_set(&f->event.attr, PERF_ATTR_FREQ, 1);
	perf_attr_set(&f->event.attr, PERF_ATTR_SAMPLE_ID_ALL, 1);
	f->event.layout = sample_layout_of(&f->event.attr);
	f->source = (struct perf_source_info){
		.events = &f->event, .n_events = 1, .clockid = CLOCK_MONOTONIC};
	record_maker_init(&f->maker, false);
	f->maker.trailer = &f->event.attr;
	jit_dump_maker_init(&f->dump, false);
	buf_init(&f->text, 1 << 20);
	f->symbols = (struct symcache_config){.no_cache = true};
	f->config.labels = CONVERTER_LABEL_PID;
	f->pid = PID;
	*state = f;
	return f;
}

static int setup(void **state)
{
	struct fixture *f = begin(state);
	f->symbols.sysroot = f->root;
	snprintf(f->map, sizeof(f->map), "%s", temp_dir_path(&f->dir, "root/tmp/perf-77.map"));
	return 0;
}

static int setup_live(void **state)
{
	struct fixture *f = begin(state);
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	f->base_ns = (uint64_t)now.tv_sec * second + (uint64_t)now.tv_nsec;
	f->pid = (uint32_t)getpid();
	f->source.is_live = f->symbols.is_live = true;
	snprintf(f->map, sizeof(f->map), "/tmp/perf-%u.map", f->pid);
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	(void)remove(f->map);
	profile_free(f->profile);
	converter_free(f->converter);
	symcache_free(f->cache);
	record_maker_fini(&f->maker);
	jit_dump_maker_fini(&f->dump);
	buf_fini(&f->text);
	temp_dir_fini(&f->dir);
	mem_free(f);
	return 0;
}

static void write_bytes(const char *path, int flags, const void *bytes, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), (ssize_t)n);
	close(fd);
}

static void write_map(const struct fixture *f, const char *text)
{
	write_bytes(f->map, O_TRUNC, text, strlen(text));
}

static void append_map(const struct fixture *f, const char *text)
{
	write_bytes(f->map, O_APPEND, text, strlen(text));
}

/* Feeds what was made since. */
static void feed(struct fixture *f)
{
	if (!f->converter) {
		f->cache = symcache_new(&f->symbols);
		f->converter = converter_new(&f->config, &f->source, f->cache);
	}
	assert_null(converter_feed(f->converter, f->maker.records, f->maker.n));
	record_maker_clear(&f->maker);
}

static void at(struct fixture *f, uint64_t time_ns)
{
	f->maker.time_ns = f->base_ns + time_ns;
}

static void map_code(struct fixture *f, uint32_t pid, const char *path)
{
	record_maker_mmap(&f->maker, pid, CODE, CODE_BYTES, 0, path);
}

static void sample(struct fixture *f, uint32_t pid, uint64_t vaddr)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, vaddr};
	const struct record_maker_sample sample = {
		.ip = vaddr, .pid = pid, .tid = pid, .period = 1, .chain = chain, .n_chain = 2};
	record_maker_sample(&f->maker, PERF_RECORD_MISC_USER, &f->event.attr, &sample);
}

static const char *finish(struct fixture *f)
{
	feed(f);
	profile_free(f->profile);
	f->profile = NULL;
	assert_null(converter_finish(f->converter, NULL, NULL, &f->profile));
	const struct converter_totals *t = converter_get_totals(f->converter);
	assert_int_equal(t->taken, t->written);
	buf_clear(&f->text);
	profile_dump(f->profile, &f->text);
	return buf_string(&f->text);
}

/* Samples whose leaf has that name. */
static int64_t n_of(const struct fixture *f, const char *name)
{
	const struct profile *p = f->profile;
	int64_t n = 0;
	for (uint32_t i = 0; i < p->samples.n; i++) {
		uint32_t l = p->stacks.items[p->samples.items[i].stack].location;
		uint32_t first = p->locations.items[l].first_line;
		uint32_t function = p->lines.items[first].function;
		if (!strcmp(profile_text(p, p->functions.items[function].name), name))
			n += profile_values(p, i)[0];
	}
	return n;
}

/* Line of the location at that address and of that name, and its function's file. */
static int64_t line_of(const struct fixture *f, uint64_t address, const char *name,
		       const char *file)
{
	const struct profile *p = f->profile;
	for (uint32_t i = 0; i < p->locations.n; i++) {
		const struct profile_location *location = &p->locations.items[i];
		const struct profile_line *line = &p->lines.items[location->first_line];
		const struct profile_function *function = &p->functions.items[line->function];
		if (location->address != address ||
		    strcmp(profile_text(p, function->name), name) != 0)
			continue;
		assert_string_equal(profile_text(p, function->filename), file);
		return line->line;
	}
	fail_msg("no %s at that address", name);
	return 0;
}

static void assert_has(const char *text, const char *line)
{
	if (!strstr(text, line))
		fail_msg("no \"%s\" in:\n%s", line, text);
}

static void assert_lacks(const char *text, const char *line)
{
	if (strstr(text, line))
		fail_msg("\"%s\" in:\n%s", line, text);
}

/* --- recorded --- */

static void jit_table_names_code_by_its_map(void **state)
{
	struct fixture *f = *state;
	write_map(f, "10000 100 JS:*fib /srv/fib.js:3:7\n10040 10 py::leaf:/srv/leaf.py\nbad\n");
	map_code(f, PID, "//anon");
	sample(f, PID, 0x10000);
	sample(f, PID, 0x10045);
	sample(f, PID, 0x10050);
	sample(f, PID, 0x10100);
	const char *text = finish(f);
	assert_int_equal(n_of(f, "JS:*fib /srv/fib.js:3:7"), 2);
	assert_int_equal(n_of(f, "py::leaf"), 1);
	assert_int_equal(n_of(f, "[anon]"), 1);
	assert_has(text, "location [jit] 0x10045 py::leaf");
	assert_has(text, "location //anon 0x10100 [anon]");
	assert_has(text, "comment jit_names_malformed: 1\n");
	const struct profile *p = f->profile;
	bool has_node = false, has_python = false;
	for (uint32_t i = 0; i < p->functions.n; i++) {
		const struct profile_function *function = &p->functions.items[i];
		const char *file = profile_text(p, function->filename);
		has_node |= !strcmp(file, "/srv/fib.js") && function->start_line == 3;
		has_python |=
			!strcmp(file, "/srv/leaf.py") &&
			!strcmp(profile_text(p, function->system_name), "py::leaf:/srv/leaf.py");
	}
	assert_true(has_node && has_python);
}

static void jit_table_keeps_what_has_no_name(void **state)
{
	struct fixture *f = *state;
	write_map(f, "10000 100 one\n");
	f->symbols.no_symbols = true;
	map_code(f, PID, "//anon");
	sample(f, PID, 0x10000);
	assert_has(finish(f), "sample 1 1 pid=77 | [anon]\n");
}

/* .NET maps its code from a memfd; without names it is in the form for files. */
static void jit_table_names_code_in_a_memfd(void **state)
{
	struct fixture *f = *state;
	write_map(f, "10000 100 one\n");
	record_maker_mmap(&f->maker, PID, CODE, CODE_BYTES, 0x3000,
			  "/memfd:doublemapper (deleted)");
	sample(f, PID, 0x10000);
	sample(f, PID, 0x10200);
	const char *text = finish(f);
	assert_has(text, "location [jit] 0x10000 one");
	assert_has(text, "location /memfd:doublemapper 0x3200");
}

static void save_dump(struct fixture *f)
{
	write_bytes(temp_dir_path(&f->dir, "root/home/u/jit-77.dump"), O_TRUNC, f->dump.data,
		    f->dump.size);
}

static void map_dump(struct fixture *f)
{
	record_maker_mmap(&f->maker, PID, 0x5000, 0x1000, 0, "/home/u/jit-77.dump");
	map_code(f, PID, "//anon");
}

static void jit_table_names_code_by_the_time_of_its_dump(void **state)
{
	struct fixture *f = *state;
	const struct jit_dump_maker_line lines[] = {{0x10000, 5, "/a.c"}, {0x10010, 6, "/b.h"}};
	jit_dump_maker_header(&f->dump, 1, PID, 0);
	jit_dump_maker_lines(&f->dump, 100, 0x10000, lines, 2);
	jit_dump_maker_load(&f->dump, 100, 0x10000, 0x100, 1, "before");
	jit_dump_maker_load(&f->dump, 200, 0x10000, 0x100, 2, "behind");
	jit_dump_maker_move(&f->dump, 300, 0x10000, 0x18000, 0x100, 2);
	save_dump(f);
	write_map(f, "10000 1000 from the map\n");
	at(f, 1);
	map_dump(f);
	for (uint64_t time = 50; time <= 350; time += 100) {
		at(f, time);
		sample(f, PID, 0x10010);
		sample(f, PID, 0x18010);
	}
	const char *text = finish(f);
	assert_int_equal(n_of(f, "before"), 1);
	assert_int_equal(n_of(f, "behind"), 2); /* here, then there */
	/* The dump tells nothing of the time before its first record: there the map counts. */
	assert_int_equal(n_of(f, "from the map"), 1);
	assert_int_equal(n_of(f, "[anon]"), 4);
	assert_has(text, "location [jit] 0x18010 behind");
	assert_int_equal(line_of(f, 0x10010, "before", "/b.h"), 6);
	assert_int_equal(line_of(f, 0x10010, "behind", ""), 0);
}

/* FR-53 */
static void jit_table_refuses_a_dump_on_another_clock(void **state)
{
	struct fixture *f = *state;
	jit_dump_maker_header(&f->dump, 1, PID, 0);
	jit_dump_maker_load(&f->dump, 100, 0x10000, 0x100, 1, "code");
	save_dump(f);
	f->source.clockid = -1;
	at(f, 150);
	map_dump(f);
	sample(f, PID, 0x10010);
	const char *text = finish(f);
	assert_has(text, "| [anon]\n");
	assert_has(text, "perf record -k mono");
	assert_int_equal(converter_get_totals(f->converter)->jit.dump_states[JIT_DUMP_OTHER_CLOCK],
			 1);
}

static void jit_table_refuses_the_dump_of_another_process(void **state)
{
	struct fixture *f = *state;
	jit_dump_maker_header(&f->dump, 1, PID + 1, 0);
	jit_dump_maker_load(&f->dump, 100, 0x10000, 0x100, 1, "code");
	save_dump(f);
	at(f, 150);
	map_dump(f);
	sample(f, PID, 0x10010);
	const char *text = finish(f);
	assert_has(text, "| [anon]\n");
	assert_has(text, "comment jitdump not used: 1 (of another process than its name says)");
}

/* FR-55 */
static void jit_table_child_has_the_code_of_its_parent(void **state)
{
	struct fixture *f = *state;
	jit_dump_maker_header(&f->dump, 1, PID, 0);
	jit_dump_maker_load(&f->dump, 100, 0x10000, 0x100, 1, "parent");
	jit_dump_maker_load(&f->dump, 300, 0x10000, 0x100, 2, "parent, later");
	save_dump(f);
	write_bytes(temp_dir_path(&f->dir, "root/tmp/perf-78.map"), O_TRUNC, "10800 100 child\n",
		    16);
	at(f, 1);
	map_dump(f);
	at(f, 200);
	record_maker_task(&f->maker, PERF_RECORD_FORK, CHILD, PID, CHILD, PID);
	at(f, 400);
	sample(f, CHILD, 0x10000);
	sample(f, CHILD, 0x10800);
	sample(f, PID, 0x10000);
	sample(f, PID, 0x10800);
	const char *text = finish(f);
	assert_has(text, "sample 1 1 pid=78 | parent\n");
	assert_has(text, "sample 1 1 pid=78 | child\n");
	assert_has(text, "sample 1 1 pid=77 | parent, later\n");
	assert_has(text, "sample 1 1 pid=77 | [anon]\n");
}

static void jit_table_exec_ends_the_names(void **state)
{
	struct fixture *f = *state;
	jit_dump_maker_header(&f->dump, 1, PID, 0);
	jit_dump_maker_load(&f->dump, 100, 0x10000, 0x100, 1, "code");
	save_dump(f);
	at(f, 1);
	map_dump(f);
	at(f, 150);
	sample(f, PID, 0x10000);
	record_maker_comm(&f->maker, PID, PID, "next", true);
	map_code(f, PID, "//anon");
	sample(f, PID, 0x10000);
	const char *text = finish(f);
	assert_has(text, "sample 1 1 pid=77 | code\n");
	assert_has(text, "sample 1 1 pid=77 | [anon]\n");
}

/* FR-55: an interpreter without frame pointers has a map, but no chain leads there. */
static void jit_table_map_that_no_frame_meets_is_told(void **state)
{
	struct fixture *f = *state;
	write_map(f, "10000 100 py::f:/f.py\n");
	map_code(f, PID, "//anon");
	sample(f, PID, 0x900000);
	const char *text = finish(f);
	assert_has(text, "comment JIT map without frames: 1 (");
}

/* FR-54: the runtime maps the whole area anew behind the records. */
static void jit_table_larger_mapping_hides_no_code(void **state)
{
	struct fixture *f = *state;
	jit_dump_maker_header(&f->dump, 1, PID, 0);
	jit_dump_maker_load(&f->dump, 100, 0x10000, 0x100, 1, "code");
	save_dump(f);
	at(f, 1);
	map_dump(f);
	at(f, 200);
	record_maker_mmap(&f->maker, PID, 0x4000, 0x20000, 0, "/home/u/jit-77.dump");
	sample(f, PID, 0x10000);
	assert_has(finish(f), "sample 1 1 pid=77 | code\n");
}

/* FR-09: an address is one of the process, whatever the mapping's offset. */
static void jit_table_two_processes_have_names_of_their_own(void **state)
{
	struct fixture *f = *state;
	write_map(f, "10000 100 one\n");
	write_bytes(temp_dir_path(&f->dir, "root/tmp/perf-78.map"), O_TRUNC, "10000 100 two\n", 14);
	record_maker_mmap(&f->maker, PID, CODE, CODE_BYTES, 0x7000, "//anon");
	record_maker_mmap(&f->maker, CHILD, CODE, CODE_BYTES, 0x9000, "//anon");
	sample(f, PID, 0x10000);
	sample(f, CHILD, 0x10000);
	const char *text = finish(f);
	assert_has(text, "sample 1 1 pid=77 | one\n");
	assert_has(text, "sample 1 1 pid=78 | two\n");
}

static void jit_table_second_window_has_names_too(void **state)
{
	struct fixture *f = *state;
	write_map(f, "10000 100 one\n10100 100 two\n");
	map_code(f, PID, "//anon");
	sample(f, PID, 0x10000);
	assert_has(finish(f), "sample 1 1 pid=77 | one\n");
	sample(f, PID, 0x10000);
	sample(f, PID, 0x10100);
	const char *text = finish(f);
	assert_has(text, "sample 1 1 pid=77 | one\n");
	assert_has(text, "sample 1 1 pid=77 | two\n");
}

/* --- live --- */

static void jit_table_live_map_is_read_as_it_grows(void **state)
{
	struct fixture *f = *state;
	at(f, 0);
	map_code(f, f->pid, "//anon");
	sample(f, f->pid, 0x10000); /* before there is a map */
	feed(f);
	write_map(f, "10000 100 old\n10000 100 n");
	at(f, second);
	sample(f, f->pid, 0x10000);
	feed(f);
	append_map(f, "ew\n10200 100 late\n");
	at(f, 2 * second);
	sample(f, f->pid, 0x10000);
	sample(f, f->pid, 0x10200);
	feed(f);
	at(f, 3 * second);
	sample(f, f->pid, 0x10000);
	sample(f, f->pid, 0x10300);
	feed(f);
	append_map(f, "10300 100 last\n");
	const char *text = finish(f);
	assert_int_equal(n_of(f, "old"), 2);
	assert_int_equal(n_of(f, "new"), 2);
	assert_int_equal(n_of(f, "late"), 1);
	assert_int_equal(n_of(f, "last"), 1);
	assert_lacks(text, "[anon]");
	assert_int_equal(f->profile->locations.n, 4);
}

static void jit_table_live_map_written_anew_is_read_anew(void **state)
{
	struct fixture *f = *state;
	at(f, 0);
	write_map(f, "10000 100 old\n");
	map_code(f, f->pid, "//anon");
	sample(f, f->pid, 0x10000);
	feed(f);
	write_map(f, "10000 100 new, and longer than before\n");
	at(f, second);
	sample(f, f->pid, 0x10000);
	feed(f);
	assert_int_equal(remove(f->map), 0);
	write_map(f, "10000 100 third\n");
	at(f, 2 * second);
	sample(f, f->pid, 0x10000);
	const char *text = finish(f);
	assert_has(text, "| old\n");
	assert_has(text, "| new, and longer than before\n");
	assert_has(text, "| third\n");
}

static void jit_table_live_names_outlive_the_process(void **state)
{
	struct fixture *f = *state;
	at(f, 0);
	write_map(f, "10000 100 code\n");
	map_code(f, f->pid, "//anon");
	sample(f, f->pid, 0x10000);
	record_maker_task(&f->maker, PERF_RECORD_EXIT, f->pid, 1, f->pid, 1);
	feed(f);
	assert_int_equal(remove(f->map), 0);
	sample(f, f->pid, 0x10000); /* of another CPU, late */
	const char *text = finish(f);
	assert_has(text, "sample 2 2 ");
	assert_has(text, "| code\n");
}

static void jit_table_live_dump_may_be_written_late(void **state)
{
	struct fixture *f = *state;
	char name[64];
	snprintf(name, sizeof(name), "jit-%u.dump", f->pid);
	const char *path = temp_dir_path(&f->dir, name);
	jit_dump_maker_header(&f->dump, 1, f->pid, 0);
	write_bytes(path, O_TRUNC, f->dump.data, f->dump.size);
	at(f, 0);
	map_code(f, f->pid, "//anon");
	record_maker_mmap(&f->maker, f->pid, 0x5000, 0x1000, 0, path);
	for (uint64_t i = 0; i < 10; i++) {
		at(f, i * second / 10);
		sample(f, f->pid, 0x10000);
	}
	feed(f);
	size_t before = f->dump.size;
	jit_dump_maker_load(&f->dump, f->base_ns, 0x10000, 0x100, 1, "first");
	jit_dump_maker_load(&f->dump, f->base_ns + second * 3 / 10, 0x10000, 0x100, 2, "second");
	write_bytes(path, O_APPEND, f->dump.data + before, f->dump.size - before);
	const char *text = finish(f);
	assert_lacks(text, "[anon]");
	assert_int_equal(n_of(f, "first"), 3);
	assert_int_equal(n_of(f, "second"), 7);
	assert_int_equal(f->profile->locations.n, 2);
}

static void jit_table_live_refusal_is_told(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(symlink("/etc/passwd", f->map), 0);
	at(f, 0);
	map_code(f, f->pid, "//anon");
	sample(f, f->pid, 0x10000);
	const char *text = finish(f);
	assert_has(text, "| [anon]\n");
	assert_has(text, "comment JIT map not used: 1 (a link), first of pid ");
	assert_int_equal(converter_get_totals(f->converter)->jit.maps[JIT_FILE_LINK], 1);
}

int main(void)
{
#define RECORDED(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define LIVE(name)     cmocka_unit_test_setup_teardown(name, setup_live, teardown)
	const struct CMUnitTest tests[] = {
		RECORDED(jit_table_names_code_by_its_map),
		RECORDED(jit_table_keeps_what_has_no_name),
		RECORDED(jit_table_names_code_in_a_memfd),
		RECORDED(jit_table_names_code_by_the_time_of_its_dump),
		RECORDED(jit_table_refuses_a_dump_on_another_clock),
		RECORDED(jit_table_refuses_the_dump_of_another_process),
		RECORDED(jit_table_child_has_the_code_of_its_parent),
		RECORDED(jit_table_exec_ends_the_names),
		RECORDED(jit_table_map_that_no_frame_meets_is_told),
		RECORDED(jit_table_larger_mapping_hides_no_code),
		RECORDED(jit_table_two_processes_have_names_of_their_own),
		RECORDED(jit_table_second_window_has_names_too),
		LIVE(jit_table_live_map_is_read_as_it_grows),
		LIVE(jit_table_live_map_written_anew_is_read_anew),
		LIVE(jit_table_live_names_outlive_the_process),
		LIVE(jit_table_live_dump_may_be_written_late),
		LIVE(jit_table_live_refusal_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
