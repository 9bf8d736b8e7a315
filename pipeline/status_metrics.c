/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics, in the order and with the names of the manual. */
#include <inttypes.h>

#include "base/compiler.h"
#include "base/stats.h"
#include "pipeline/process_facts.h"
#include "pipeline/status_text.h"

/* --- the format --- */

static void begin(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* What a label's value may not hold as it is. */
static void write_value(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			fprintf(out, "\\%c", *text);
		else if (*text == '\n')
			fputs("\\n", out);
		else
			fputc(*text, out);
	}
}

static void write_label(FILE *out, const char *before, const char *key, const char *value)
{
	fprintf(out, "%s%s=\"", before, key);
	write_value(out, value);
	fputc('"', out);
}

static void write_plain(FILE *out, const char *name, const char *type, const char *help,
			double value)
{
	begin(out, name, type, help);
	fprintf(out, "%s %.17g\n", name, value);
}

static void write_receiver(FILE *out, const char *name, const char *type, const char *help,
			   uint64_t value)
{
	begin(out, name, type, help);
	fprintf(out, "%s{receiver=\"perf\"} %" PRIu64 "\n", name, value);
}

/* --- exporters --- */

/* One number of each exporter. */
struct exporter_metric {
	const char *name, *type, *help;
	uint64_t (*value)(const struct exporter_counts *counts);
	bool is_time; /* nanoseconds, shown in seconds */
};

#define VALUE(function, expression)                                                                \
	static uint64_t function(const struct exporter_counts *counts)                             \
	{                                                                                          \
		return expression;                                                                 \
	}
VALUE(sent_profiles, counts->sent_profiles)
VALUE(sent_bytes, counts->sent_bytes)
VALUE(sent_samples, counts->sent_samples)
VALUE(last_success, counts->last_success_ns)
VALUE(queue_bytes, counts->queue.bytes)
VALUE(queue_capacity, counts->queue_capacity_bytes)
VALUE(queue_profiles, counts->queue.profiles)
VALUE(queue_samples, counts->queue.samples)
VALUE(queue_oldest, counts->queue.oldest_time_ns)
VALUE(lost_samples, delivery_counts_lost(counts))

static const struct exporter_metric exporter_metrics[] = {
	{"perfpipe_exporter_sent_profiles_total", "counter", "Profiles that the server took.",
	 sent_profiles, false},
	{"perfpipe_exporter_sent_bytes_total", "counter", "Bytes of the requests with them.",
	 sent_bytes, false},
	{"perfpipe_exporter_sent_samples_total", "counter", "Samples in them.", sent_samples,
	 false},
	{"perfpipe_exporter_lost_samples_total", "counter",
	 "Samples refused, dropped by the queue, or that could not be encoded.", lost_samples,
	 false},
	{"perfpipe_exporter_last_success_timestamp_seconds", "gauge",
	 "When the server last took something; 0 = never.", last_success, true},
	{"perfpipe_queue_bytes", "gauge", "Bytes that wait on disk.", queue_bytes, false},
	{"perfpipe_queue_capacity_bytes", "gauge", "How many may.", queue_capacity, false},
	{"perfpipe_queue_profiles", "gauge", "Profiles that wait.", queue_profiles, false},
	{"perfpipe_queue_samples", "gauge", "Samples that wait.", queue_samples, false},
	{"perfpipe_queue_oldest_timestamp_seconds", "gauge",
	 "When the oldest of them came; 0 = nothing waits.", queue_oldest, true},
};

static void write_exporter_metric(FILE *out, const struct delivery_counts *delivery,
				  const struct exporter_metric *metric)
{
	begin(out, metric->name, metric->type, metric->help);
	for (size_t i = 0; i < delivery->n_exporters; i++) {
		uint64_t value = metric->value(&delivery->exporters[i]);
		fputs(metric->name, out);
		write_label(out, "{", "exporter", delivery->exporters[i].exporter);
		if (metric->is_time)
			fprintf(out, "} %.9f\n", (double)value / 1e9);
		else
			fprintf(out, "} %" PRIu64 "\n", value);
	}
}

static void write_reason(FILE *out, const char *name, const struct exporter_counts *counts,
			 const char *key, const char *value, uint64_t n)
{
	fputs(name, out);
	write_label(out, "{", "exporter", counts->exporter);
	write_label(out, ",", key, value);
	fprintf(out, "} %" PRIu64 "\n", n);
}

static void write_failures(FILE *out, const struct delivery_counts *delivery)
{
	static const char name[] = "perfpipe_exporter_send_failed_profiles_total";
	begin(out, name, "counter", "Profiles in requests that failed, each try.");
	for (size_t i = 0; i < delivery->n_exporters; i++) {
		const struct exporter_counts *counts = &delivery->exporters[i];
		for (int reason = 1; reason < BACKEND_REASON_N; reason++)
			write_reason(out, name, counts, "reason",
				     backend_reason_name((enum backend_reason)reason),
				     counts->failed_profiles[reason]);
	}
}

static void write_drops(FILE *out, const struct delivery_counts *delivery)
{
	static const char name[] = "perfpipe_queue_dropped_profiles_total";
	begin(out, name, "counter", "Profiles that left the queue without being delivered.");
	for (size_t i = 0; i < delivery->n_exporters; i++) {
		const struct exporter_counts *counts = &delivery->exporters[i];
		for (int loss = 0; loss < SPOOL_LOSS_N; loss++)
			write_reason(out, name, counts, "reason",
				     spool_loss_name((enum spool_loss)loss),
				     counts->queue.lost_profiles[loss]);
	}
}

static void write_requests(FILE *out, const struct delivery_counts *delivery)
{
	static const char name[] = "perfpipe_exporter_requests_total";
	begin(out, name, "counter", "Requests by the server's answer, each try.");
	for (size_t i = 0; i < delivery->n_exporters; i++) {
		const struct exporter_counts *counts = &delivery->exporters[i];
		for (int code = 0; code < GRPC_CODE_N; code++) {
			if (counts->requests[code] || code == 0)
				write_reason(out, name, counts, "code",
					     grpc_code_name((enum grpc_code)code),
					     counts->requests[code]);
		}
	}
}

static void write_durations(FILE *out, const struct delivery_counts *delivery)
{
	static const char name[] = "perfpipe_exporter_request_duration_seconds";
	char bucket[80], bound[32];
	begin(out, name, "histogram", "How long requests took, each try.");
	snprintf(bucket, sizeof(bucket), "%s_bucket", name);
	for (size_t i = 0; i < delivery->n_exporters; i++) {
		const struct exporter_counts *counts = &delivery->exporters[i];
		for (int b = 0; b < EXPORTER_DURATION_BUCKETS; b++) {
			snprintf(bound, sizeof(bound), "%g", exporter_duration_bounds_ms[b] / 1e3);
			write_reason(out, bucket, counts, "le", bound, counts->durations[b]);
		}
		write_reason(out, bucket, counts, "le", "+Inf", counts->n_durations);
		fprintf(out, "%s_sum", name);
		write_label(out, "{", "exporter", counts->exporter);
		fprintf(out, "} %.9f\n%s_count", (double)counts->sum_durations_ns / 1e9, name);
		write_label(out, "{", "exporter", counts->exporter);
		fprintf(out, "} %" PRIu64 "\n", counts->n_durations);
	}
}

/* --- the agent --- */

static void write_process(FILE *out)
{
	struct process_facts facts;
	process_facts_read(&facts);
	write_plain(out, "process_cpu_seconds_total", "counter", "User and system CPU time.",
		    facts.cpu_seconds);
	write_plain(out, "process_resident_memory_bytes", "gauge", "Resident memory.",
		    (double)facts.resident_bytes);
	write_plain(out, "process_virtual_memory_bytes", "gauge", "Virtual memory.",
		    (double)facts.virtual_bytes);
	write_plain(out, "process_open_fds", "gauge", "Open file descriptors.",
		    (double)facts.n_fds);
	write_plain(out, "process_max_fds", "gauge", "How many may be open.",
		    (double)facts.max_fds);
	write_plain(out, "process_start_time_seconds", "gauge", "When the process began.",
		    facts.start_seconds);
}

static void write_degraded(FILE *out, const struct agent_state *state)
{
	begin(out, "perfpipe_degraded", "gauge",
	      "1 while running with less than was asked for; perfpipe explain CODE tells more.");
	for (uint32_t i = 0; i < state->n_degraded; i++) {
		fprintf(out, "perfpipe_degraded{component=\"perf\",code=\"W%d\"",
			state->degraded[i].number);
		write_label(out, ",", "reason", state->degraded[i].text);
		fputs("} 1\n", out);
	}
}

static void write_receivers(FILE *out, const struct agent_state *state)
{
	write_receiver(out, "perfpipe_receiver_samples_total", "counter", "Samples taken.",
		       stats_get(STAT_SAMPLES_TAKEN) + state->n_unread_samples);
	/* Both tell of the same losses; the larger one is nearer to the truth. */
	uint64_t events = stats_get(STAT_EVENTS_LOST), samples = stats_get(STAT_SAMPLES_LOST);
	write_receiver(out, "perfpipe_receiver_lost_samples_total", "counter",
		       "Samples that the kernel found no room for.",
		       events > samples ? events : samples);
	write_receiver(out, "perfpipe_receiver_throttled_total", "counter",
		       "Times that the kernel throttled an event.", stats_get(STAT_THROTTLED));
	write_receiver(out, "perfpipe_receiver_frequency_hertz", "gauge",
		       "Samples per second and CPU that are asked for; 0 = by count.",
		       state->is_sampling ? state->frequency_hz : 0);
	write_receiver(out, "perfpipe_receiver_up", "gauge",
		       "1 while samples are taken, 0 while a target is waited for.",
		       state->is_sampling);
}

/* Where samples went on their way to the exporters; with theirs it adds up. */
static void write_samples(FILE *out, const struct agent_state *state)
{
	static const char name[] = "perfpipe_dropped_samples_total";
	begin(out, name, "counter", "Samples that were taken and are in no profile.");
	const struct {
		const char *reason;
		uint64_t n;
	} drops[] = {
		{"conversion_behind", state->n_unread_samples},
		{"delivery_behind", stats_get(STAT_WINDOW_SAMPLES_DROPPED)},
		{"malformed", stats_get(STAT_SAMPLES_MALFORMED)},
		{"no_event", stats_get(STAT_SAMPLES_NO_EVENT)},
		{"left_out", stats_get(STAT_SAMPLES_FILTERED)},
	};
	for (size_t i = 0; i < ARRAY_LEN(drops); i++)
		fprintf(out, "%s{reason=\"%s\"} %" PRIu64 "\n", name, drops[i].reason, drops[i].n);
	write_plain(out, "perfpipe_queued_samples_total", "counter",
		    "Samples in profiles that were given to every exporter.",
		    (double)state->delivery.n_samples);
	write_plain(out, "perfpipe_windows_total", "counter",
		    "Windows that were given to every exporter.",
		    (double)state->delivery.n_windows);
	write_plain(out, "perfpipe_windows_early_total", "counter",
		    "Windows that ended early for want of memory.",
		    (double)stats_get(STAT_WINDOWS_EARLY));
	write_plain(out, "perfpipe_windows_dropped_total", "counter",
		    "Windows dropped because delivery could not keep up.",
		    (double)stats_get(STAT_WINDOWS_DROPPED));
}

void status_text_write_metrics(FILE *out, const struct agent_state *state)
{
	begin(out, "perfpipe_build_info", "gauge", "Always 1; the version is a label.");
	fputs("perfpipe_build_info{version=\"" PERFPIPE_VERSION "\"} 1\n", out);
	write_process(out);
	write_plain(out, "perfpipe_config_last_reload_successful", "gauge",
		    "Whether the last reload was taken.", 1);
	write_plain(out, "perfpipe_config_last_reload_success_timestamp_seconds", "gauge",
		    "When that was; 0 = there was none.", (double)state->reload_wall_ns / 1e9);
	write_degraded(out, state);
	write_receivers(out, state);
	write_samples(out, state);
	const struct delivery_counts *delivery = &state->delivery;
	for (size_t i = 0; i < ARRAY_LEN(exporter_metrics); i++)
		write_exporter_metric(out, delivery, &exporter_metrics[i]);
	write_failures(out, delivery);
	write_drops(out, delivery);
	write_requests(out, delivery);
	write_durations(out, delivery);
	if (state->has_storage)
		write_plain(out, "perfpipe_storage_free_bytes", "gauge",
			    "Free bytes of the disk that the queues are on.",
			    (double)state->storage_free_bytes);
}
