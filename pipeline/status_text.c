/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/status_text.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/stats.h"
#include "pipeline/json_text.h"

static void write_json_exporter(FILE *out, const struct delivery_counts *delivery, size_t i)
{
	const struct exporter_counts *counts = &delivery->exporters[i];
	fputs("{\"exporter\": ", out);
	json_text_write(out, counts->exporter);
	fprintf(out,
		", \"is_failing\": %s, \"sent_profiles\": %" PRIu64 ", \"sent_samples\": %" PRIu64
		", \"sent_bytes\": %" PRIu64 ", \"queue_profiles\": %" PRIu64
		", \"queue_samples\": %" PRIu64 ", \"queue_bytes\": %" PRIu64
		", \"queue_capacity_bytes\": %" PRIu64 ", \"lost_samples\": %" PRIu64
		", \"earlier_samples\": %" PRIu64 ", \"missing_samples\": %" PRId64
		", \"last_success_ns\": %" PRIu64 ", \"last_error\": ",
		counts->is_failing ? "true" : "false", counts->sent_profiles, counts->sent_samples,
		counts->sent_bytes, counts->queue.profiles, counts->queue.samples,
		counts->queue.bytes, counts->queue_capacity_bytes, delivery_counts_lost(counts),
		delivery->earlier_samples[i], delivery_counts_missing(delivery, i),
		counts->last_success_ns);
	json_text_write(out, counts->last_error);
	fputc('}', out);
}

void status_text_write_json(FILE *out, const struct agent_state *state)
{
	fprintf(out,
		"{\"schema_version\": 1, \"version\": \"" PERFPIPE_VERSION
		"\", \"is_sampling\": %s, \"waits_because\": ",
		state->is_sampling ? "true" : "false");
	json_text_write(out, state->is_sampling ? NULL : state->target);
	fprintf(out,
		", \"cpus\": %" PRIu32 ", \"frequency_hz\": %" PRIu32 ", \"window_ns\": %" PRIu64
		", \"samples_taken\": %" PRIu64 ", \"samples_lost\": %" PRIu64
		", \"samples_dropped\": %" PRIu64 ", \"samples_for_delivery\": %" PRIu64
		", \"windows\": %" PRIu64 ", \"windows_early\": %" PRIu64
		", \"windows_dropped\": %" PRIu64 ", \"degraded\": [",
		state->n_cpus, state->frequency_hz, state->window_ns,
		stats_get(STAT_SAMPLES_TAKEN) + state->n_unread_samples,
		stats_get(STAT_SAMPLES_LOST),
		state->n_unread_samples + stats_get(STAT_WINDOW_SAMPLES_DROPPED),
		state->delivery.n_samples, state->delivery.n_windows, stats_get(STAT_WINDOWS_EARLY),
		stats_get(STAT_WINDOWS_DROPPED));
	for (uint32_t i = 0; i < state->n_degraded; i++) {
		fprintf(out, "%s{\"code\": \"W%d\", \"text\": ", i ? ", " : "",
			state->degraded[i].number);
		json_text_write(out, state->degraded[i].text);
		fputc('}', out);
	}
	fputs("], \"exporters\": [", out);
	for (size_t i = 0; i < state->delivery.n_exporters; i++) {
		fputs(i ? ", " : "", out);
		write_json_exporter(out, &state->delivery, i);
	}
	fputs("]}\n", out);
}

static void write_exporter(FILE *out, const struct exporter_counts *counts)
{
	fprintf(out, "%s: %s\n", counts->exporter, counts->is_failing ? "failing" : "delivering");
	fprintf(out, "  sent      %" PRIu64 " samples in %" PRIu64 " profiles, %.1f MiB\n",
		counts->sent_samples, counts->sent_profiles, (double)counts->sent_bytes / 1048576);
	fprintf(out, "  waiting   %" PRIu64 " samples in %" PRIu64 " profiles, %.1f of %.0f MiB\n",
		counts->queue.samples, counts->queue.profiles,
		(double)counts->queue.bytes / 1048576,
		(double)counts->queue_capacity_bytes / 1048576);
	fprintf(out, "  lost      %" PRIu64 " samples\n", delivery_counts_lost(counts));
	if (counts->last_success_ns) {
		uint64_t now = clock_system.wall_ns(clock_system.context);
		double ago = ((double)now - (double)counts->last_success_ns) / 1e9;
		fprintf(out, "  last taken %.0f s ago\n", ago > 0 ? ago : 0);
	}
	if (counts->is_failing)
		fprintf(out, "  error     %s\n", counts->last_error);
}

void status_text_write_people(FILE *out, const struct agent_state *state)
{
	if (state->is_sampling)
		fprintf(out, "sampling %" PRIu32 " CPUs at %" PRIu32 " Hz, a window every %.0f s\n",
			state->n_cpus, state->frequency_hz, (double)state->window_ns / 1e9);
	else
		fprintf(out, "waiting for the target: %s\n", state->target);
	fprintf(out,
		"%" PRIu64 " samples taken, %" PRIu64 " lost by the kernel, %" PRIu64 " dropped\n",
		stats_get(STAT_SAMPLES_TAKEN) + state->n_unread_samples,
		stats_get(STAT_SAMPLES_LOST),
		state->n_unread_samples + stats_get(STAT_WINDOW_SAMPLES_DROPPED));
	for (uint32_t i = 0; i < state->n_degraded; i++)
		fprintf(out, "degraded: %s [W%d]\n", state->degraded[i].text,
			state->degraded[i].number);
	for (size_t i = 0; i < state->delivery.n_exporters; i++)
		write_exporter(out, &state->delivery.exporters[i]);
}
