/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine-readable page of inspect. Every section is one line of the output, so that two of
 * them can be compared with diff.
 */
#include <inttypes.h>

#include "base/compiler.h"
#include "pipeline/inspect.h"
#include "pipeline/inspect_names.h"
#include "pipeline/json_text.h"

static const char *bool_text(bool value)
{
	return value ? "true" : "false";
}

static void write_field(FILE *out, const char *name, const char *text)
{
	fprintf(out, ",\"%s\":", name);
	json_text_write(out, text);
}

static void write_format(FILE *out, const struct inspect_subject *subject)
{
	const struct perf_source_info *info = subject->info;
	const struct collector_file_format *format = subject->format;
	fprintf(out,
		" \"format\":{\"mode\":\"%s\",\"is_directory\":%s,\"byte_order\":\"%s\""
		",\"header_size\":%" PRIu64,
		format->is_pipe ? "pipe" : "file", bool_text(format->is_directory),
		format->is_big_endian ? "big" : "little", format->header_size);
	write_field(out, "arch", info->arch);
	write_field(out, "perf_version", info->perf_version);
	write_field(out, "os_release", info->os_release);
	write_field(out, "hostname", info->hostname);
	write_field(out, "cmdline", info->cmdline);
	fputs(",\"features\":[", out);
	for (size_t i = 0; i < format->n_features; i++) {
		char buffer[INSPECT_NAME_BYTES];
		fprintf(out, "%s\"%s\"", i ? "," : "",
			inspect_feature_name(format->features[i], buffer));
	}
	fprintf(out, "],\"compressed_records\":%" PRIu64 ",\"attr_size\":",
		format->n_compressed_records);
	if (format->attr_size)
		fprintf(out, "%" PRIu32, format->attr_size);
	else
		fputs("null", out);
	fprintf(out, ",\"attr_count\":%" PRIu32 ",\"bytes_read\":%" PRIu64, info->n_events,
		format->bytes_read);
	write_field(out, "stream_stopped", format->stream_stopped);
	fputs("},\n", out);
}

static void write_records(FILE *out, const struct collector_file_format *format)
{
	char buffer[INSPECT_NAME_BYTES];
	const char *comma = "";
	fputs(" \"records\":{", out);
	for (uint32_t type = 0; type < ARRAY_LEN(format->n_records_by_type); type++) {
		if (!format->n_records_by_type[type])
			continue;
		fprintf(out, "%s\"%s\":%" PRIu64, comma, inspect_record_name(type, buffer),
			format->n_records_by_type[type]);
		comma = ",";
	}
	for (size_t i = 0; i < format->n_unknown; i++) {
		if (format->unknown[i].type < ARRAY_LEN(format->n_records_by_type))
			continue;
		fprintf(out, "%s\"%s\":%" PRIu64, comma,
			inspect_record_name(format->unknown[i].type, buffer), format->unknown[i].n);
		comma = ",";
	}
	fputs("},\n", out);
}

/* null where there is none. */
static void write_build_id(FILE *out, const struct build_id *id)
{
	char hex[BUILD_ID_HEX_BYTES];
	build_id_format(id, hex);
	json_text_write(out, hex[0] ? hex : NULL);
}

static void write_build_ids(FILE *out, const struct perf_source_info *info)
{
	fprintf(out, " \"build_ids\":{\"count\":%" PRIu32 ",\"list\":[", info->n_build_ids);
	for (uint32_t i = 0; i < info->n_build_ids && i < INSPECT_BUILD_IDS; i++) {
		const struct perf_build_id_entry *entry = &info->build_ids[i];
		fprintf(out, "%s{\"pid\":%" PRId32 ",\"build_id\":", i ? "," : "", entry->pid);
		write_build_id(out, &entry->id);
		write_field(out, "file", entry->filename);
		fputc('}', out);
	}
	fputs("]},\n", out);
}

static void write_sample_type(FILE *out, uint64_t sample_type)
{
	const char *comma = "";
	fputs(",\"sample_type\":[", out);
	for (unsigned int bit = 0; bit < 64; bit++) {
		if (!(sample_type >> bit & 1))
			continue;
		const char *name = inspect_sample_bit_name(bit);
		if (name)
			fprintf(out, "%s\"%s\"", comma, name);
		else
			fprintf(out, "%s\"bit%u\"", comma, bit);
		comma = ",";
	}
	fputc(']', out);
}

static void write_event(FILE *out, uint32_t index, const struct perf_event_info *info,
			const struct survey_event *event)
{
	const struct perf_event_attr *attr = &info->attr;
	const char *type = inspect_event_type_name(attr->type);
	fprintf(out, "{\"index\":%" PRIu32, index);
	write_field(out, "name", info->name);
	fprintf(out, ",\"name_from_file\":%s", bool_text(info->is_name_from_file));
	if (type)
		write_field(out, "type", type);
	else
		fprintf(out, ",\"type\":%" PRIu32, attr->type);
	fprintf(out, ",\"config\":\"0x%" PRIx64 "\",\"freq\":%s,\"period_or_freq\":%" PRIu64,
		attr->config, bool_text(perf_attr_has(attr, PERF_ATTR_FREQ)), attr->sample_period);
	write_sample_type(out, attr->sample_type);
	fprintf(out,
		",\"sample_id_all\":%s,\"precise_ip\":%u,\"read_format\":\"0x%" PRIx64
		"\",\"ids\":%" PRIu32 ",\"attr_size\":%" PRIu32 ",\"samples\":%" PRIu64
		",\"period_sum\":%" PRIu64,
		bool_text(perf_attr_has(attr, PERF_ATTR_SAMPLE_ID_ALL)),
		(unsigned int)(attr->flags >> PERF_ATTR_PRECISE_IP & 3), attr->read_format,
		info->n_ids, info->attr_size, event->n_samples, event->period_sum);
	if (attr->sample_type & PERF_SAMPLE_REGS_USER)
		fprintf(out, ",\"sample_regs_user\":\"0x%" PRIx64 "\"", attr->sample_regs_user);
	if (attr->sample_type & PERF_SAMPLE_STACK_USER)
		fprintf(out, ",\"sample_stack_user\":%" PRIu32, attr->sample_stack_user);
	if (attr->sample_type & PERF_SAMPLE_BRANCH_STACK)
		fprintf(out, ",\"branch_sample_type\":\"0x%" PRIx64 "\"", attr->branch_sample_type);
	if (attr->sample_type & PERF_SAMPLE_READ)
		fprintf(out, ",\"read_group\":%s,\"read_values_total\":%" PRIu64,
			bool_text(attr->read_format & PERF_FORMAT_GROUP), event->n_read_values);
	fputc('}', out);
}

static void write_events(FILE *out, const struct inspect_subject *subject)
{
	fputs(" \"events\":[", out);
	for (uint32_t i = 0; i < subject->report->n_events; i++) {
		fputs(i ? ",\n  " : "\n  ", out);
		write_event(out, i, &subject->info->events[i], &subject->report->events[i]);
	}
	fputs("],\n", out);
}

static void write_samples(FILE *out, const struct survey_report *report)
{
	fprintf(out, " \"samples_total\":%" PRIu64 ",\n \"time_ns\":", report->n_samples);
	if (report->first_ns)
		fprintf(out, "{\"first\":%" PRIu64 ",\"last\":%" PRIu64 "},\n", report->first_ns,
			report->last_ns);
	else
		fputs("null,\n", out);
	fputs(" \"samples_per_comm_pid\":[", out);
	for (uint32_t i = 0; i < report->n_tasks; i++) {
		const struct survey_task *task = &report->tasks[i];
		fputs(i ? ",[" : "[", out);
		json_text_write(out, task->comm);
		fprintf(out, ",%" PRId32 ",%" PRIu64 "]", (int32_t)task->pid, task->n_samples);
	}
	fprintf(out,
		"],\n \"samples_left_out\":{\"no_event\":%" PRIu64 ",\"malformed\":%" PRIu64 "},\n",
		report->n_no_event, report->n_malformed);
}

static void write_parts(FILE *out, const struct survey_report *report)
{
	const struct survey_chains *chains = &report->chains;
	fprintf(out,
		" \"callchain\":{\"samples_with_callchain\":%" PRIu64 ",\"entries_total\":%" PRIu64
		",\"frames_total\":%" PRIu64 ",\"kernel_frames\":%" PRIu64
		",\"user_frames\":%" PRIu64 ",\"max_frames\":%" PRIu64
		",\"samples_with_zero_length_chain\":%" PRIu64 "},\n",
		chains->n_with, chains->n_entries, chains->n_frames, chains->n_kernel_frames,
		chains->n_user_frames, chains->max_frames, chains->n_empty);
	fprintf(out,
		" \"deferred_callchains\":{\"deferred_records\":%" PRIu64
		",\"deferred_merged_samples\":%" PRIu64 ",\"deferred_never_completed\":%" PRIu64
		"},\n",
		report->n_deferred_records, report->n_deferred_merged, report->n_deferred_left);
	fprintf(out,
		" \"user_stack\":{\"samples_with_user_regs\":%" PRIu64
		",\"samples_with_user_stack\":%" PRIu64 ",\"dump_bytes_total\":%" PRIu64 "},\n",
		report->n_user_regs, report->n_user_stacks, report->user_stack_bytes);
	fprintf(out,
		" \"branch_stack\":{\"samples_with_branches\":%" PRIu64
		",\"entries_total\":%" PRIu64 "},\n \"raw_samples\":%" PRIu64 ",\n",
		report->n_with_branches, report->n_branches, report->n_raw);
	fprintf(out,
		" \"lost\":{\"lost_records\":%" PRIu64 ",\"lost_events\":%" PRIu64
		",\"lost_samples_records\":%" PRIu64 ",\"lost_samples\":%" PRIu64 "},\n",
		report->n_lost_records, report->n_lost_events, report->n_lost_samples_records,
		report->n_lost_samples);
}

static void write_mappings(FILE *out, const struct survey_report *report)
{
	fprintf(out,
		" \"mappings_hit\":{\"user_distinct_pid_file\":%" PRIu32
		",\"user_distinct_files\":%" PRIu32 ",\"kernel_distinct\":%" PRIu32
		",\"unmapped_samples\":%" PRIu64 ",\"user\":[",
		report->n_user, report->n_user_files, report->n_kernel,
		report->n_by_kind[SURVEY_UNKNOWN] + report->n_by_kind[SURVEY_KERNEL_UNMAPPED]);
	for (uint32_t i = 0; i < report->n_user && i < INSPECT_MAPPINGS; i++) {
		const struct survey_mapping *mapping = &report->user[i];
		fprintf(out, "%s{\"pid\":%" PRId32, i ? "," : "", (int32_t)mapping->pid);
		write_field(out, "file", mapping->file);
		fputs(",\"build_id_in_mmap2\":", out);
		write_build_id(out, &mapping->build_id);
		fprintf(out, ",\"samples\":%" PRIu64 "}", mapping->n_samples);
	}
	fputs("],\"kernel\":[", out);
	for (uint32_t i = 0; i < report->n_kernel && i < INSPECT_MAPPINGS; i++) {
		const struct survey_mapping *mapping = &report->kernel[i];
		fputs(i ? ",{\"file\":" : "{\"file\":", out);
		json_text_write(out, mapping->file);
		fprintf(out, ",\"kind\":\"%s\",\"samples\":%" PRIu64 "}",
			survey_kind_name(mapping->kind), mapping->n_samples);
	}
	fputs("]},\n", out);
}

static void write_leaves(FILE *out, const struct survey_report *report)
{
	fprintf(out,
		" \"leaf_distinct\":%" PRIu32 ",\n \"distinct_stacks\":{\"by_pid\":%" PRIu64
		",\"by_event_pid\":%" PRIu64 "},\n \"leaf_kinds\":{",
		report->n_leaves, report->n_stacks_by_pid, report->n_stacks_by_event_pid);
	const char *comma = "";
	for (int kind = 0; kind < SURVEY_KINDS; kind++) {
		if (!report->n_by_kind[kind])
			continue;
		fprintf(out, "%s\"%s\":%" PRIu64, comma, survey_kind_name(kind),
			report->n_by_kind[kind]);
		comma = ",";
	}
	fputs("},\n \"top_leaf\":[", out);
	for (uint32_t i = 0; i < report->n_leaves && i < INSPECT_LEAVES; i++) {
		const struct survey_leaf *leaf = &report->leaves[i];
		fputs(i ? ",\n  {\"dso\":" : "\n  {\"dso\":", out);
		json_text_write(out, leaf->file);
		fprintf(out,
			",\"kind\":\"%s\",\"addr\":\"0x%" PRIx64 "\",\"samples\":%" PRIu64
			",\"period\":%" PRIu64 "}",
			survey_kind_name(leaf->kind), leaf->address, leaf->n_samples,
			leaf->period_sum);
	}
	fputs("],\n", out);
}

static void write_warnings(FILE *out, const struct inspect_subject *subject)
{
	const struct survey_report *report = subject->report;
	fprintf(out,
		" \"over_capacity\":{\"samples_per_comm_pid\":%" PRIu64 ",\"mappings_hit\":%" PRIu64
		",\"top_leaf\":%" PRIu64 ",\"distinct_stacks\":%" PRIu64 "},\n \"warnings\":[",
		report->n_tasks_over, report->n_mappings_over, report->n_leaves_over,
		report->n_stacks_over);
	for (size_t i = 0; i < subject->n_warnings; i++) {
		const struct collector_warning *warning = &subject->warnings[i];
		fprintf(out, "%s{\"code\":\"W%d\",\"is_damage\":%s", i ? "," : "", warning->number,
			bool_text(warning->is_damage));
		write_field(out, "text", warning->text);
		fputc('}', out);
	}
	fputs("]\n", out);
}

void inspect_write_json(FILE *out, const struct inspect_subject *subject)
{
	fputs("{\"schema_version\":1,\n \"file\":", out);
	json_text_write(out, subject->path);
	fputs(",\n", out);
	write_format(out, subject);
	write_records(out, subject->format);
	write_build_ids(out, subject->info);
	write_events(out, subject);
	write_samples(out, subject->report);
	write_parts(out, subject->report);
	write_mappings(out, subject->report);
	write_leaves(out, subject->report);
	write_warnings(out, subject);
	fputs("}\n", out);
}
