/* SPDX-License-Identifier: Apache-2.0 */
/* The page of inspect for people. Names come from the file: control bytes in them are not shown. */
#include <inttypes.h>
#include <string.h>

#include "base/compiler.h"
#include "pipeline/inspect.h"
#include "pipeline/inspect_names.h"

enum { TEXT_ROWS = 10, LABEL_COLUMNS = 14, PAGE_COLUMNS = 98 };

static void write_safe(FILE *out, const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		fputc(*p < 0x20 || *p == 0x7f ? '?' : *p, out);
}

static void write_line(FILE *out, const char *label, const char *text)
{
	if (!text || !text[0])
		return;
	fprintf(out, "%-*s", LABEL_COLUMNS, label);
	write_safe(out, text);
	fputc('\n', out);
}

static void write_header(FILE *out, const struct inspect_subject *subject)
{
	const struct perf_source_info *info = subject->info;
	const struct collector_file_format *format = subject->format;
	write_line(out, "file", subject->path);
	fprintf(out, "%-*s%s, %s-endian, %" PRIu64 " bytes read", LABEL_COLUMNS, "format",
		format->is_directory ? "folder of perf record --threads"
				     : (format->is_pipe ? "pipe mode" : "file mode"),
		format->is_big_endian ? "big" : "little", format->bytes_read);
	if (format->n_compressed_records)
		fprintf(out, ", %" PRIu64 " compressed records", format->n_compressed_records);
	fputc('\n', out);
	write_line(out, "host", info->hostname);
	write_line(out, "kernel", info->os_release);
	write_line(out, "arch", info->arch);
	write_line(out, "perf version", info->perf_version);
	write_line(out, "command", info->cmdline);
	if (info->n_cpus_online)
		fprintf(out, "%-*s%" PRIu32 " online, %" PRIu32 " available\n", LABEL_COLUMNS,
			"CPUs", info->n_cpus_online, info->n_cpus_available);
	if (info->n_build_ids)
		fprintf(out, "%-*s%" PRIu32 "\n", LABEL_COLUMNS, "build-ids", info->n_build_ids);
	if (format->stream_stopped)
		write_line(out, "STOPPED", format->stream_stopped);
}

static void write_features(FILE *out, const struct collector_file_format *format)
{
	if (!format->n_features)
		return;
	int column = fprintf(out, "%-*s", LABEL_COLUMNS - 1, "features");
	for (size_t i = 0; i < format->n_features; i++) {
		char buffer[INSPECT_NAME_BYTES];
		const char *name = inspect_feature_name(format->features[i], buffer);
		if (column + 1 + (int)strlen(name) > PAGE_COLUMNS)
			column = fprintf(out, "\n%-*s", LABEL_COLUMNS - 1, "") - 1;
		column += fprintf(out, " %s", name);
	}
	fputc('\n', out);
}

static void write_sample_fields(FILE *out, uint64_t sample_type)
{
	const char *comma = "";
	for (unsigned int bit = 0; bit < 64; bit++) {
		if (!(sample_type >> bit & 1))
			continue;
		const char *name = inspect_sample_bit_name(bit);
		if (name)
			fprintf(out, "%s%s", comma, name);
		else
			fprintf(out, "%sbit%u", comma, bit);
		comma = ",";
	}
}

static void write_events(FILE *out, const struct inspect_subject *subject)
{
	fprintf(out, "\n%10s %20s %16s  %s\n", "samples", "sum of periods", "sampled every",
		"event");
	for (uint32_t i = 0; i < subject->report->n_events; i++) {
		const struct perf_event_info *info = &subject->info->events[i];
		const struct survey_event *event = &subject->report->events[i];
		bool is_frequency = perf_attr_has(&info->attr, PERF_ATTR_FREQ);
		fprintf(out, "%10" PRIu64 " %20" PRIu64 " %13" PRIu64 " %s  ", event->n_samples,
			event->period_sum, info->attr.sample_period, is_frequency ? "Hz" : "ev");
		write_safe(out, info->name);
		fputs("\n             ", out);
		write_sample_fields(out, info->attr.sample_type);
		fputc('\n', out);
	}
}

static void write_counts(FILE *out, const struct inspect_subject *subject)
{
	const struct survey_report *report = subject->report;
	const struct survey_chains *chains = &report->chains;
	fprintf(out, "\n%-*s%" PRIu64, LABEL_COLUMNS, "samples", report->n_samples);
	if (report->first_ns)
		fprintf(out, " in %.3f s", (double)(report->last_ns - report->first_ns) / 1e9);
	fprintf(out, ", %s%" PRIu64 " distinct stacks, %s%" PRIu32 " distinct addresses\n",
		report->n_stacks_over ? "over " : "", report->n_stacks_by_pid,
		report->n_leaves_over ? "over " : "", report->n_leaves);
	if (chains->n_with || chains->n_empty)
		fprintf(out,
			"%-*s%" PRIu64 " samples have one, %" PRIu64 " an empty one; %" PRIu64
			" kernel and %" PRIu64 " user frames, at most %" PRIu64 " in one\n",
			LABEL_COLUMNS, "call chains", chains->n_with, chains->n_empty,
			chains->n_kernel_frames, chains->n_user_frames, chains->max_frames);
	if (report->n_deferred_records)
		fprintf(out,
			"%-*s%" PRIu64 " records, merged into %" PRIu64 " samples; %" PRIu64
			" never came\n",
			LABEL_COLUMNS, "deferred", report->n_deferred_records,
			report->n_deferred_merged, report->n_deferred_left);
	if (report->n_user_regs || report->n_user_stacks)
		fprintf(out,
			"%-*s%" PRIu64 " samples with registers, %" PRIu64
			" with a stack copy, %" PRIu64 " bytes\n",
			LABEL_COLUMNS, "user stacks", report->n_user_regs, report->n_user_stacks,
			report->user_stack_bytes);
	if (report->n_branches)
		fprintf(out, "%-*s%" PRIu64 " in %" PRIu64 " samples\n", LABEL_COLUMNS, "branches",
			report->n_branches, report->n_with_branches);
	if (report->n_raw)
		fprintf(out, "%-*s%" PRIu64 " samples\n", LABEL_COLUMNS, "raw data", report->n_raw);
	if (report->n_malformed || report->n_no_event)
		fprintf(out, "%-*s%" PRIu64 " malformed samples, %" PRIu64 " of no known event\n",
			LABEL_COLUMNS, "left out", report->n_malformed, report->n_no_event);
	if (report->n_lost_records || report->n_lost_samples_records)
		fprintf(out,
			"%-*s%" PRIu64 " events in %" PRIu64 " LOST records, %" PRIu64
			" samples in %" PRIu64 " LOST_SAMPLES records (they overlap)\n",
			LABEL_COLUMNS, "lost", report->n_lost_events, report->n_lost_records,
			report->n_lost_samples, report->n_lost_samples_records);
}

static void write_records(FILE *out, const struct collector_file_format *format)
{
	char buffer[INSPECT_NAME_BYTES];
	fprintf(out, "\n%10s  %s\n", "records", "type");
	for (uint32_t type = 0; type < ARRAY_LEN(format->n_records_by_type); type++) {
		if (format->n_records_by_type[type])
			fprintf(out, "%10" PRIu64 "  %s\n", format->n_records_by_type[type],
				inspect_record_name(type, buffer));
	}
	for (size_t i = 0; i < format->n_unknown; i++) {
		if (format->unknown[i].type >= ARRAY_LEN(format->n_records_by_type))
			fprintf(out, "%10" PRIu64 "  %s\n", format->unknown[i].n,
				inspect_record_name(format->unknown[i].type, buffer));
	}
}

static void write_more(FILE *out, uint64_t n)
{
	if (n > TEXT_ROWS)
		fprintf(out, "%10s  and %" PRIu64 " more (--format json lists more)\n", "",
			n - TEXT_ROWS);
}

static void write_tasks(FILE *out, const struct survey_report *report)
{
	fprintf(out, "\n%10s  %10s  %s\n", "samples", "pid", "command");
	for (uint32_t i = 0; i < report->n_tasks && i < TEXT_ROWS; i++) {
		const struct survey_task *task = &report->tasks[i];
		fprintf(out, "%10" PRIu64 "  %10" PRId32 "  ", task->n_samples, (int32_t)task->pid);
		write_safe(out, task->comm);
		fputc('\n', out);
	}
	write_more(out, report->n_tasks);
}

static void write_mapping(FILE *out, const struct survey_mapping *mapping, bool is_user)
{
	fprintf(out, "%10" PRIu64 "  ", mapping->n_samples);
	if (is_user)
		fprintf(out, "%10" PRId32 "  ", (int32_t)mapping->pid);
	else
		fprintf(out, "%10s  ", "kernel");
	write_safe(out, mapping->file);
	fputc('\n', out);
}

static void write_mappings(FILE *out, const struct survey_report *report)
{
	uint64_t unmapped =
		report->n_by_kind[SURVEY_UNKNOWN] + report->n_by_kind[SURVEY_KERNEL_UNMAPPED];
	fprintf(out, "\n%10s  %10s  %s\n", "samples", "pid", "file");
	for (uint32_t i = 0; i < report->n_kernel && i < TEXT_ROWS; i++)
		write_mapping(out, &report->kernel[i], false);
	for (uint32_t i = 0; i < report->n_user && i < TEXT_ROWS; i++)
		write_mapping(out, &report->user[i], true);
	write_more(out, report->n_user);
	if (unmapped)
		fprintf(out, "%10" PRIu64 "  %10s  [unknown]\n", unmapped, "");
}

static void write_leaves(FILE *out, const struct survey_report *report)
{
	fprintf(out, "\n%10s  %18s  %s\n", "samples", "address", "in (an offset in files)");
	for (uint32_t i = 0; i < report->n_leaves && i < INSPECT_LEAVES; i++) {
		const struct survey_leaf *leaf = &report->leaves[i];
		fprintf(out, "%10" PRIu64 "  %#18" PRIx64 "  ", leaf->n_samples, leaf->address);
		write_safe(out, leaf->file);
		fputc('\n', out);
	}
}

static void write_limits(FILE *out, const struct survey_report *report)
{
	const struct {
		uint64_t n;
		const char *what;
	} limits[] = {
		{report->n_tasks_over, "commands"},
		{report->n_mappings_over, "files"},
		{report->n_leaves_over, "addresses"},
		{report->n_stacks_over, "stacks"},
	};
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		if (limits[i].n)
			fprintf(out,
				"\n%" PRIu64 " samples came when the table of %s was full: they "
				"are not in it\n",
				limits[i].n, limits[i].what);
	}
}

void inspect_write_text(FILE *out, const struct inspect_subject *subject)
{
	const struct survey_report *report = subject->report;
	write_header(out, subject);
	write_features(out, subject->format);
	write_counts(out, subject);
	write_events(out, subject);
	write_records(out, subject->format);
	if (!report->n_samples)
		return;
	write_tasks(out, report);
	write_mappings(out, report);
	write_leaves(out, report);
	write_limits(out, report);
}
