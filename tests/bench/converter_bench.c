/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sample costs in the converter: SAMPLES samples of CHAINS distinct call chains of about 9
 * frames in PROCESSES processes, made beforehand, fed in batches as a file source does.
 *
 *     converter_bench [SAMPLES [CHAINS [PROCESSES]]]      2000000 1100000 50 by default
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "converter/converter.h"

enum { BATCH = 256, FRAMES_MEAN = 9, SITES = 4000, RECORD_MAX = 8 + 5 * 8 + 24 * 8 };

/* CPU time, so that a busy machine matters less. */
static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

struct stream {
	uint8_t *bytes;
	size_t size;
	struct perf_record *records;
	size_t n;
};

static void put(uint8_t **p, const void *value, size_t n)
{
	memcpy(*p, value, n);
	*p += n;
}

static void put_u64(uint8_t **p, uint64_t v)
{
	put(p, &v, sizeof(v));
}

static void put_u32(uint8_t **p, uint32_t v)
{
	put(p, &v, sizeof(v));
}

static void add(struct stream *stream, uint32_t type, uint16_t misc, const uint8_t *end)
{
	uint8_t *begin = stream->bytes + stream->size;
	uint16_t size = (uint16_t)(end - begin);
	memcpy(begin, &type, 4);
	memcpy(begin + 4, &misc, 2);
	memcpy(begin + 6, &size, 2);
	stream->records[stream->n++] = (struct perf_record){
		.bytes = begin,
		.type = type,
		.size = size,
		.misc = misc,
	};
	stream->size += size;
}

static void add_map(struct stream *stream, uint32_t pid)
{
	uint8_t *p = stream->bytes + stream->size + sizeof(struct perf_event_header);
	char path[32] = {0};
	snprintf(path, sizeof(path), "/nonexistent/app%u", pid % 7);
	put_u32(&p, pid);
	put_u32(&p, pid);
	put_u64(&p, 0x400000);
	put_u64(&p, 0x1000000);
	put_u64(&p, 0);
	put(&p, path, sizeof(path));
	add(stream, PERF_RECORD_MMAP, PERF_RECORD_MISC_USER, p);
}

/* Chains share their roots as real ones do: the frames near the root depend on few bits. */
static void add_sample(struct stream *stream, uint64_t chain, uint32_t pid, uint64_t time_ns)
{
	uint64_t seed = mix(chain);
	uint64_t n = FRAMES_MEAN - 4 + seed % 9;
	uint8_t *p = stream->bytes + stream->size + sizeof(struct perf_event_header);
	put_u64(&p, 0x400000);
	put_u32(&p, pid);
	put_u32(&p, pid);
	put_u64(&p, time_ns);
	put_u64(&p, 10000000);
	put_u64(&p, n + 1);
	put_u64(&p, PERF_CONTEXT_USER);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t from_root = n - 1 - i;
		unsigned bits = from_root < 8 ? (unsigned)(from_root + 1) * 4 : 40;
		uint64_t site = mix(seed >> (64 - bits) ^ from_root << 56) % SITES;
		put_u64(&p, 0x400000 + site * 0x40 + 5);
	}
	add(stream, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, p);
}

int main(int argc, char **argv)
{
	uint64_t n_samples = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000000;
	uint64_t n_chains = argc > 2 ? strtoull(argv[2], NULL, 10) : 1100000;
	uint32_t n_processes = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 50;
	if (!n_samples || !n_chains || !n_processes)
		return 2;
	struct perf_event_info event = {.name = (char *)"cpu-clock"};
	event.attr.type = PERF_TYPE_SOFTWARE;
	event.attr.sample_period = 99;
	event.attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				 PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN;
	const struct perf_source_info source = {.events = &event, .n_events = 1};

	struct stream stream = {
		.bytes = mem_alloc((n_samples + n_processes) * RECORD_MAX),
		.records = mem_zalloc(n_samples + n_processes, sizeof(*stream.records)),
	};
	for (uint32_t i = 0; i < n_processes; i++)
		add_map(&stream, 1000 + i);
	for (uint64_t i = 0; i < n_samples; i++) {
		/* Each chain once, then again at random. */
		uint64_t chain = i < n_chains ? i * 7919 % n_chains : mix(i) % n_chains;
		add_sample(&stream, chain, 1000 + (uint32_t)(chain % n_processes), i + 1);
	}

	const struct symcache_config cache_config = {.no_symbols = true, .sysroot = "/nonexistent"};
	const struct converter_config config = {.labels = CONVERTER_LABEL_DEFAULT};
	struct symcache *cache = symcache_new(&cache_config);
	struct converter *converter = converter_new(&config, &source, cache);
	size_t before = mem_resident_bytes();
	double begin = now_ns();
	for (size_t i = 0; i < stream.n; i += BATCH) {
		size_t n = stream.n - i < BATCH ? stream.n - i : BATCH;
		struct error *err = converter_feed(converter, stream.records + i, n);
		if (err)
			return 1;
	}
	double fed = now_ns();
	struct profile *profile = NULL;
	struct error *err = converter_finish(converter, NULL, NULL, &profile);
	if (err)
		return 1;
	double finished = now_ns();
	printf("feed %.0f ns/sample, finish %.1f ms; %u rows, %u stack nodes, %u locations, "
	       "%zu MiB\n",
	       (fed - begin) / (double)n_samples, (finished - fed) / 1e6, profile->samples.n,
	       profile->stacks.n, profile->locations.n, (mem_resident_bytes() - before) >> 20);
	profile_free(profile);
	converter_free(converter);
	symcache_free(cache);
	mem_free(stream.bytes);
	mem_free(stream.records);
	return 0;
}
