/* SPDX-License-Identifier: Apache-2.0 */
#define LOG_AREA "sampler"
#include "pipeline/sampler.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "converter/converter.h"
#include "pipeline/finished_window.h"
#include "proto/profile_merge.h"

struct sampler {
	struct sampler_options options;
	struct converter *converter;
	struct delivery *delivery;
	struct sampler_moment begin; /* of the window that is open */
	struct log_every early;
	bool is_summing;
	struct profile_merge sum;
};

static struct sampler_moment now(void)
{
	return (struct sampler_moment){
		.monotonic_ns = clock_system.monotonic_ns(clock_system.context),
		.wall_ns = clock_system.wall_ns(clock_system.context),
	};
}

struct sampler *sampler_open(const struct sampler_options *options,
			     const struct perf_source_info *info, struct symcache *cache,
			     struct delivery *delivery)
{
	struct sampler *sampler = mem_zalloc(1, sizeof(*sampler));
	const struct converter_config config = {.labels = options->labels};
	sampler->options = *options;
	sampler->converter = converter_new(&config, info, cache);
	sampler->delivery = delivery;
	sampler->begin = now();
	sampler->early.interval_ns = LOG_REPEAT_NS;
	profile_merge_init(&sampler->sum);
	return sampler;
}

void sampler_close(struct sampler *sampler)
{
	if (!sampler)
		return;
	converter_free(sampler->converter);
	profile_merge_fini(&sampler->sum);
	mem_free(sampler);
}

void sampler_begin_sum(struct sampler *sampler)
{
	profile_free(profile_merge_take(&sampler->sum));
	sampler->is_summing = true;
}

struct profile *sampler_end_sum(struct sampler *sampler)
{
	sampler->is_summing = false;
	return profile_merge_take(&sampler->sum);
}

/* Fails when an event came meanwhile; then there is no sum. */
static void add_to_sum(struct sampler *sampler, const struct profile *profile)
{
	struct error *err = profile_merge_add(&sampler->sum, profile);
	if (!err)
		return;
	log_warn("a profile for now is given up err=\"%s\"", error_text(err));
	error_free(err);
	profile_free(sampler_end_sum(sampler));
}

struct error *sampler_cut(struct sampler *sampler, struct sampler_moment at)
{
	struct profile *profile;
	struct error *err = converter_finish(sampler->converter, NULL, NULL, &profile);
	if (err)
		return err;
	profile->time_nanos = (int64_t)sampler->begin.wall_ns;
	profile->duration_nanos = (int64_t)(at.monotonic_ns - sampler->begin.monotonic_ns);
	sampler->begin = at;
	if (sampler->is_summing)
		add_to_sum(sampler, profile);
	struct finished_window *window =
		finished_window_new(profile, sampler->options.max_services);
	stats_add(STAT_SAMPLES_PACKED, window->n_samples);
	delivery_put(sampler->delivery, window);
	return NULL;
}

static struct error *cut_early(struct sampler *sampler)
{
	uint64_t n_held;
	struct sampler_moment at = now();
	if (log_every_allows(&sampler->early, at.monotonic_ns, &n_held))
		log_warn("window ends early, it has reached its memory limit bytes=%zu "
			 "repeats=%" PRIu64,
			 converter_window_bytes(sampler->converter), n_held);
	stats_add(STAT_WINDOWS_EARLY, 1);
	return sampler_cut(sampler, at);
}

/* A perf_record_sink_fn. */
static struct error *add(void *context, const struct perf_record *records, size_t n)
{
	struct sampler *sampler = context;
	struct error *err = converter_feed(sampler->converter, records, n);
	if (!err && converter_window_bytes(sampler->converter) > sampler->options.max_window_bytes)
		err = cut_early(sampler);
	return err;
}

struct pipeline_sink sampler_sink(struct sampler *sampler)
{
	return (struct pipeline_sink){.add = add, .context = sampler};
}
