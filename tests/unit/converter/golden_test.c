/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/golden/CASE/records.txt through the converter, in both byte orders, compared with want.txt;
 * UPDATE_GOLDEN=1 writes want.txt anew. No file is opened and no kernel asked: what is shown is
 * what the records say. One record or setting a line, numbers of addresses in hex:
 *
 *     event NAME TYPE CONFIG hz|period N     TYPE: hardware, software, tracepoint, raw
 *     labels LIST        keep EVENT          settings, before any record
 *     time NS                                of the records that follow
 *     ~ …                                    the record is synthetic (from /proc)
 *     comm PID/TID NAME                      exec PID/TID NAME (COMM of an exec)
 *     fork PID/TID PARENT/PTID               known PID/TID PARENT/PTID (FORK made by perf)
 *     exit PID/TID
 *     map PID START-END @OFFSET [id=HEX] PATH
 *     kernel START-END @OFFSET NAME
 *     bpf START+LENGTH NAME                  unbpf START+LENGTH NAME
 *     lost N             lost_samples N      cgroup ID PATH
 *     sample EVENT PID/TID PERIOD MODE …     MODE: u, k; then entries of the chain:
 *                                            hex, K, U, H, G (guest kernel), D:COOKIE
 *     user TID COOKIE …                      the deferred user part
 *     window                                 a profile of what came so far
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/file.h"
#include "base/mem.h"
#include "converter/converter.h"
#include "tests/support/profile_dump.h"
#include "tests/support/record_maker.h"

enum { EVENTS_MAX = 8, CHAIN_MAX = 64, WORD_BYTES = 256 };

struct golden {
	const char *name; /* of the case */
	unsigned line;
	struct perf_event_info events[EVENTS_MAX];
	char event_names[EVENTS_MAX][WORD_BYTES];
	struct perf_source_info source;
	struct converter_config config;
	char keep[WORD_BYTES];
	struct symcache *cache;
	struct converter *converter; /* made at the first record */
	struct record_maker maker;
	struct buf out;
};

static void bad_line(const struct golden *g, const char *why)
{
	fail_msg("%s/records.txt:%u: %s", g->name, g->line, why);
}

/* The next word into out; false at the end of the line. */
static bool next_word(const char **p, char out[WORD_BYTES])
{
	*p += strspn(*p, " ");
	size_t n = strcspn(*p, " ");
	if (!n || n >= WORD_BYTES)
		return false;
	memcpy(out, *p, n);
	out[n] = '\0';
	*p += n;
	return true;
}

static const char *rest_of(const char **p)
{
	*p += strspn(*p, " ");
	return *p;
}

static uint64_t next_number(const struct golden *g, const char **p, int base)
{
	char *end;
	*p += strspn(*p, " @+-/");
	uint64_t value = strtoull(*p, &end, base);
	if (end == *p)
		bad_line(g, "a number is missing");
	*p = end;
	return value;
}

static uint32_t next_id(const struct golden *g, const char **p)
{
	return (uint32_t)next_number(g, p, 10);
}

static void read_event(struct golden *g, const char *p)
{
	static const char *const types[] = {
		[PERF_TYPE_HARDWARE] = "hardware",
		[PERF_TYPE_SOFTWARE] = "software",
		[PERF_TYPE_TRACEPOINT] = "tracepoint",
		[PERF_TYPE_HW_CACHE] = "cache",
		[PERF_TYPE_RAW] = "raw",
	};
	char word[WORD_BYTES];
	uint32_t index = g->source.n_events++;
	struct perf_event_info *event = &g->events[index];
	if (index >= EVENTS_MAX || !next_word(&p, g->event_names[index]) || !next_word(&p, word))
		bad_line(g, "event NAME TYPE CONFIG hz|period N");
	event->name = g->event_names[index];
	event->attr.type = UINT32_MAX;
	for (uint32_t t = 0; t < ARRAY_LEN(types); t++) {
		if (strcmp(types[t], word) == 0)
			event->attr.type = t;
	}
	event->attr.config = next_number(g, &p, 0);
	if (!next_word(&p, word))
		bad_line(g, "hz or period");
	perf_attr_set(&event->attr, PERF_ATTR_FREQ, strcmp(word, "hz") == 0);
	event->attr.sample_period = next_number(g, &p, 10);
	event->attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				  PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN;
	perf_attr_set(&event->attr, PERF_ATTR_SAMPLE_ID_ALL, 1);
	event->layout = sample_layout_of(&event->attr);
	g->maker.trailer = &g->events[0].attr;
}

/* Names apart from each other, as --labels takes them; unknown ones count as none. */
static uint32_t read_labels(const char *list)
{
	uint32_t labels = 0;
	for (unsigned i = 0; i < CONVERTER_LABEL_N; i++) {
		const char *name = converter_label_name(i);
		size_t n = strlen(name);
		for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',') {
			if (strcspn(p, ",") == n && strncmp(p, name, n) == 0)
				labels |= 1u << i;
		}
	}
	return labels;
}

static bool read_setting(struct golden *g, const char *verb, const char *p)
{
	if (strcmp(verb, "event") == 0) {
		read_event(g, p);
	} else if (strcmp(verb, "labels") == 0) {
		g->config.labels = read_labels(rest_of(&p));
	} else if (strcmp(verb, "keep") == 0) {
		(void)next_word(&p, g->keep);
		g->config.event = g->keep;
	} else if (strcmp(verb, "time") == 0) {
		g->maker.time_ns = next_number(g, &p, 10);
	} else {
		return false;
	}
	return true;
}

static size_t read_chain(const struct golden *g, const char *p, uint64_t chain[CHAIN_MAX])
{
	static const struct {
		char letter;
		uint64_t marker;
	} markers[] = {
		{'K', PERF_CONTEXT_KERNEL},
		{'U', PERF_CONTEXT_USER},
		{'H', PERF_CONTEXT_HV},
		{'G', PERF_CONTEXT_GUEST_KERNEL},
	};
	char word[WORD_BYTES];
	size_t n = 0;
	while (n + 2 < CHAIN_MAX && next_word(&p, word)) {
		if (strncmp(word, "D:", 2) == 0) {
			chain[n++] = PERF_CONTEXT_USER_DEFERRED;
			chain[n++] = strtoull(word + 2, NULL, 10);
			continue;
		}
		char *end;
		chain[n] = strtoull(word, &end, 16);
		for (size_t m = 0; m < ARRAY_LEN(markers); m++) {
			if (word[0] == markers[m].letter && !word[1]) {
				chain[n] = markers[m].marker;
				end = word + 1;
			}
		}
		if (*end)
			bad_line(g, "an entry is neither hex nor a marker");
		n++;
	}
	return n;
}

static void read_sample(struct golden *g, const char *p)
{
	char name[WORD_BYTES], mode[WORD_BYTES];
	uint64_t chain[CHAIN_MAX];
	if (!next_word(&p, name))
		bad_line(g, "sample EVENT PID/TID PERIOD MODE …");
	g->maker.event_index = PERF_EVENT_INDEX_NONE;
	for (uint32_t e = 0; e < g->source.n_events; e++) {
		if (strcmp(g->event_names[e], name) == 0)
			g->maker.event_index = e;
	}
	struct record_maker_sample sample = {.chain = chain};
	sample.pid = next_id(g, &p);
	sample.tid = next_id(g, &p);
	sample.period = next_number(g, &p, 10);
	if (!next_word(&p, mode))
		bad_line(g, "u or k");
	sample.n_chain = read_chain(g, p, chain);
	for (size_t i = sample.n_chain; i > 0; i--) {
		if (chain[i - 1] < PERF_CONTEXT_MAX)
			sample.ip = chain[i - 1];
	}
	uint32_t e = g->maker.event_index < g->source.n_events ? g->maker.event_index : 0;
	record_maker_sample(&g->maker,
			    mode[0] == 'k' ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER,
			    &g->events[e].attr, &sample);
	g->maker.event_index = 0;
}

static void read_map(struct golden *g, const char *p, bool is_kernel)
{
	uint32_t pid = is_kernel ? UINT32_MAX : next_id(g, &p);
	uint64_t start = next_number(g, &p, 16), end = next_number(g, &p, 16);
	uint64_t offset = next_number(g, &p, 16);
	if (is_kernel) {
		record_maker_kernel(&g->maker, start, end - start, offset, rest_of(&p));
		return;
	}
	struct record_maker_file file = {0};
	char word[WORD_BYTES];
	const char *after = p;
	if (next_word(&after, word) && strncmp(word, "id=", 3) == 0) {
		if (!build_id_parse(word + 3, &file.build_id))
			bad_line(g, "a build-id is hex");
		p = after;
	}
	file.path = rest_of(&p);
	record_maker_mmap2(&g->maker, pid, start, end - start, offset, &file);
}

static void read_task(struct golden *g, const char *verb, const char *p)
{
	uint32_t pid = next_id(g, &p), tid = next_id(g, &p);
	if (strcmp(verb, "exit") == 0) {
		record_maker_task(&g->maker, PERF_RECORD_EXIT, pid, 1, tid, 1);
		return;
	}
	uint32_t parent_pid = next_id(g, &p), parent_tid = next_id(g, &p);
	struct perf_record *record =
		record_maker_task(&g->maker, PERF_RECORD_FORK, pid, parent_pid, tid, parent_tid);
	if (strcmp(verb, "known") == 0)
		record->misc = PERF_RECORD_MISC_FORK_EXEC;
}

static bool read_record(struct golden *g, const char *verb, const char *p)
{
	uint64_t chain[CHAIN_MAX];
	bool is_exec = strcmp(verb, "exec") == 0;
	if (is_exec || strcmp(verb, "comm") == 0) {
		uint32_t pid = next_id(g, &p), tid = next_id(g, &p);
		record_maker_comm(&g->maker, pid, tid, rest_of(&p), is_exec);
	} else if (strcmp(verb, "fork") == 0 || strcmp(verb, "known") == 0 ||
		   strcmp(verb, "exit") == 0) {
		read_task(g, verb, p);
	} else if (strcmp(verb, "map") == 0 || strcmp(verb, "kernel") == 0) {
		read_map(g, p, verb[0] == 'k');
	} else if (strcmp(verb, "bpf") == 0 || strcmp(verb, "unbpf") == 0) {
		uint64_t start = next_number(g, &p, 16), length = next_number(g, &p, 16);
		record_maker_ksymbol(&g->maker, start, (uint32_t)length, rest_of(&p),
				     verb[0] == 'u');
	} else if (strcmp(verb, "lost") == 0) {
		record_maker_lost(&g->maker, next_number(g, &p, 10));
	} else if (strcmp(verb, "lost_samples") == 0) {
		record_maker_lost_samples(&g->maker, next_number(g, &p, 10));
	} else if (strcmp(verb, "cgroup") == 0) {
		uint64_t id = next_number(g, &p, 10);
		record_maker_cgroup(&g->maker, id, rest_of(&p));
	} else if (strcmp(verb, "user") == 0) {
		uint32_t tid = next_id(g, &p);
		uint64_t cookie = next_number(g, &p, 10);
		record_maker_deferred(&g->maker, tid, cookie, chain, read_chain(g, p, chain));
	} else if (strcmp(verb, "sample") == 0) {
		read_sample(g, p);
	} else {
		return false;
	}
	return true;
}

static void end_window(struct golden *g)
{
	if (!g->converter)
		g->converter = converter_new(&g->config, &g->source, g->cache);
	assert_null(converter_feed(g->converter, g->maker.records, g->maker.n));
	record_maker_clear(&g->maker);
	struct profile *profile = NULL;
	struct error *err = converter_finish(g->converter, NULL, NULL, &profile);
	if (err) {
		assert_null(buf_printf(&g->out, "error %s\n", error_text(err)));
		error_free(err);
		return;
	}
	profile_dump(profile, &g->out);
	profile_free(profile);
}

static void read_line(struct golden *g, const char *p)
{
	char verb[WORD_BYTES];
	if (!next_word(&p, verb) || verb[0] == '#')
		return;
	g->maker.is_synthetic = strcmp(verb, "~") == 0;
	if (g->maker.is_synthetic && !next_word(&p, verb))
		bad_line(g, "a record is missing");
	if (strcmp(verb, "window") == 0) {
		end_window(g);
		assert_null(buf_printf(&g->out, "\n"));
	} else if (!read_setting(g, verb, p) && !read_record(g, verb, p)) {
		bad_line(g, "unknown word");
	}
}

static void convert_text(struct golden *g, const char *text, bool is_swapped)
{
	const struct symcache_config cache_config = {.no_symbols = true, .sysroot = "/nonexistent"};
	g->config.labels = CONVERTER_LABEL_DEFAULT;
	g->source.events = g->events;
	g->source.is_swapped = is_swapped;
	g->cache = symcache_new(&cache_config);
	record_maker_init(&g->maker, is_swapped);
	buf_init(&g->out, 1 << 24);
	while (*text) {
		size_t n = strcspn(text, "\n");
		char *line = mem_copy(text, n + 1);
		line[n] = '\0';
		g->line++;
		read_line(g, line);
		mem_free(line);
		text += n + (text[n] == '\n');
	}
	end_window(g);
}

static void golden_fini(struct golden *g)
{
	converter_free(g->converter);
	symcache_free(g->cache);
	record_maker_fini(&g->maker);
	buf_fini(&g->out);
}

static char *read_text(const char *path)
{
	FILE *file = fopen(path, "r");
	if (!file)
		return NULL;
	char *text = mem_zalloc(1 << 20, 1);
	size_t n = fread(text, 1, (1 << 20) - 1, file);
	text[n] = '\0';
	fclose(file);
	return text;
}

/* Whether the case holds. */
static bool check_case(const char *name)
{
	char *folder = mem_format("%s/tests/golden/%s", TEST_SOURCE_DIR, name);
	char *records_path = mem_format("%s/records.txt", folder);
	char *want_path = mem_format("%s/want.txt", folder);
	char *records = read_text(records_path), *want = read_text(want_path);
	assert_non_null(records);
	bool is_right = true;
	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		struct golden *g = mem_zalloc(1, sizeof(*g));
		g->name = name;
		convert_text(g, records, is_swapped);
		const char *got = buf_string(&g->out);
		if (!is_swapped && getenv("UPDATE_GOLDEN")) {
			FILE *file = fopen(want_path, "w");
			assert_non_null(file);
			fputs(got, file);
			fclose(file);
			mem_free(want);
			want = mem_copy_string(got);
		}
		if (!want || strcmp(got, want) != 0) {
			print_error("%s (%s byte order) gives:\n%s\nnot what want.txt has\n", name,
				    is_swapped ? "other" : "own", got);
			is_right = false;
		}
		golden_fini(g);
		mem_free(g);
	}
	mem_free(want);
	mem_free(records);
	mem_free(want_path);
	mem_free(records_path);
	mem_free(folder);
	return is_right;
}

static int is_case(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void golden_records_give_the_wanted_profiles(void **state)
{
	(void)state;
	struct dirent **entries;
	int n = scandir(TEST_SOURCE_DIR "/tests/golden", &entries, is_case, alphasort);
	assert_true(n >= 12);
	int n_wrong = 0;
	for (int i = 0; i < n; i++) {
		n_wrong += !check_case(entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	assert_int_equal(n_wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_records_give_the_wanted_profiles),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
