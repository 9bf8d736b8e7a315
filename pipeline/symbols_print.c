/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/symbols_print.h"

#include <inttypes.h>
#include <time.h>

#include "pipeline/json_text.h"
#include "pipeline/report_print.h"

#define NS_PER_S ((uint64_t)1000000000)
enum { DATE_BYTES = 32 };

static const char *const qualities[SYMBOL_QUALITY_N] = {
	[SYMBOL_QUALITY_NONE] = "none",
	[SYMBOL_QUALITY_DYNSYM] = "dynsym",
	[SYMBOL_QUALITY_SYMTAB] = "symtab",
	[SYMBOL_QUALITY_DWARF] = "dwarf",
};

static const char *quality_text(enum symbol_quality quality)
{
	return quality < SYMBOL_QUALITY_N ? qualities[quality] : "unknown";
}

static const char *bool_text(bool value)
{
	return value ? "true" : "false";
}

static void print_field(FILE *out, const char *name, const char *text)
{
	fprintf(out, ",\"%s\":", name);
	json_text_write(out, text);
}

void symbols_print_id(const struct build_id *id, char out[SYMBOLS_PRINT_ID_BYTES])
{
	char hex[BUILD_ID_HEX_BYTES];
	build_id_format(id, hex);
	snprintf(out, SYMBOLS_PRINT_ID_BYTES, "%s%s",
		 id->kind == BUILD_ID_GO     ? "go-"
		 : id->kind == BUILD_ID_HASH ? "hash-"
					     : "",
		 hex);
}

static void format_date(uint64_t ns, char out[DATE_BYTES])
{
	struct tm parts;
	time_t seconds = (time_t)(ns / NS_PER_S);
	if (!gmtime_r(&seconds, &parts) || !strftime(out, DATE_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts))
		snprintf(out, DATE_BYTES, "unknown");
}

void symbols_print_list_begin(struct symbols_print *print, const char *path)
{
	print->n = 0;
	if (!print->is_json) {
		fprintf(print->out, "%s\n", path);
		return;
	}
	fputs("{\"schema_version\":1", print->out);
	print_field(print->out, "path", path);
	fputs(",\"entries\":[", print->out);
}

static void print_entry_json(struct symbols_print *print, const struct store_entry *entry,
			     const char *id, const char *date)
{
	FILE *out = print->out;
	fputs(print->n ? ",\n{\"build_id\":" : "\n{\"build_id\":", out);
	json_text_write(out, id);
	if (entry->has_file) {
		print_field(out, "quality", quality_text(entry->quality));
		fprintf(out, ",\"bytes\":%" PRIu64, entry->file_bytes);
		print_field(out, "used", date);
	}
	if (entry->has_failure) {
		print_field(out, "failed_quality", quality_text(entry->failed_quality));
		print_field(out, "failure", entry->reason);
		char end[DATE_BYTES];
		format_date(entry->failure_end_ns, end);
		print_field(out, "failure_end", end);
	}
	fputc('}', out);
}

void symbols_print_entry(struct symbols_print *print, const struct store_entry *entry)
{
	char id[SYMBOLS_PRINT_ID_BYTES], date[DATE_BYTES];
	symbols_print_id(&entry->build_id, id);
	format_date(entry->used_ns, date);
	if (print->is_json) {
		print_entry_json(print, entry, id, date);
	} else {
		if (entry->has_file)
			fprintf(print->out, "%-40s  %-6s  %10" PRIu64 "  %s\n", id,
				quality_text(entry->quality), entry->file_bytes, date);
		if (entry->has_failure)
			fprintf(print->out, "%-40s  %-6s  failed: %s\n", id,
				quality_text(entry->failed_quality), entry->reason);
	}
	print->n++;
}

void symbols_print_list_end(struct symbols_print *print)
{
	if (print->is_json)
		fputs("]}\n", print->out);
}

void symbols_print_file(struct symbols_print *print, const struct symbol_file_info *info)
{
	FILE *out = print->out;
	char id[SYMBOLS_PRINT_ID_BYTES];
	symbols_print_id(&info->build_id, id);
	print->n = 0;
	if (print->is_json) {
		fputs("{\"schema_version\":1", out);
		print_field(out, "build_id", id);
		print_field(out, "quality", quality_text(info->quality));
		fprintf(out,
			",\"bytes\":%zu,\"functions\":%" PRIu32 ",\"inlined_calls\":%" PRIu32
			",\"source_files\":%" PRIu32 ",\"has_lines\":%s,\"has_columns\":%s"
			",\"has_inlines\":%s,\"addresses\":[",
			info->size, info->n_functions, info->n_edges, info->n_paths,
			bool_text(info->has_lines), bool_text(info->has_columns),
			bool_text(info->has_inlines));
		return;
	}
	fprintf(out, "build-id      %s\nfrom          %s\nbytes         %zu\n", id,
		quality_text(info->quality), info->size);
	fprintf(out,
		"functions     %" PRIu32 "\ninlined calls %" PRIu32 "\nsource files  %" PRIu32 "\n",
		info->n_functions, info->n_edges, info->n_paths);
	fprintf(out, "has           %s%s%s%s\n", info->n_functions ? "names" : "nothing",
		info->has_lines ? ", lines" : "", info->has_columns ? ", columns" : "",
		info->has_inlines ? ", inlined calls" : "");
}

static void print_frame_json(FILE *out, const struct symbol_frame *frame)
{
	fputs("{\"name\":", out);
	json_text_write(out, frame->name);
	print_field(out, "linkage_name", frame->linkage_name);
	print_field(out, "file", frame->file);
	fprintf(out, ",\"line\":%" PRIu32 ",\"column\":%" PRIu32 ",\"start_line\":%" PRIu32 "}",
		frame->line, frame->column, frame->start_line);
}

static void print_frame_text(FILE *out, const struct symbol_frame *frame)
{
	fputs("  ", out);
	report_print_plain(out, frame->name);
	if (frame->file) {
		fputs(" at ", out);
		report_print_plain(out, frame->file);
		fprintf(out, ":%" PRIu32, frame->line);
	}
	if (frame->file && frame->column)
		fprintf(out, ":%" PRIu32, frame->column);
	fputc('\n', out);
}

void symbols_print_address(struct symbols_print *print, uint64_t address,
			   const struct symbol_result *result)
{
	FILE *out = print->out;
	if (print->is_json)
		fprintf(out, "%s\n{\"address\":\"0x%" PRIx64 "\",\"frames\":[", print->n ? "," : "",
			address);
	else
		fprintf(out, "0x%" PRIx64 "%s\n", address,
			result->n_frames ? "" : ": no symbol covers the address");
	for (uint32_t i = 0; i < result->n_frames; i++) {
		if (!print->is_json) {
			print_frame_text(out, &result->frames[i]);
			continue;
		}
		if (i)
			fputc(',', out);
		print_frame_json(out, &result->frames[i]);
	}
	if (print->is_json)
		fputs("]}", out);
	print->n++;
}

void symbols_print_file_end(struct symbols_print *print)
{
	if (print->is_json)
		fputs("]}\n", print->out);
}

void symbols_print_upkeep_begin(struct symbols_print *print)
{
	print->n = 0;
	if (print->is_json)
		fputs("{\"schema_version\":1,\"removed_files\":[", print->out);
}

void symbols_print_removed(struct symbols_print *print, const char *name, const char *reason)
{
	if (print->is_json) {
		fputs(print->n ? ",\n{\"name\":" : "\n{\"name\":", print->out);
		json_text_write(print->out, name);
		print_field(print->out, "reason", reason);
		fputc('}', print->out);
	} else {
		fprintf(print->out, "removed   %s: ", name);
		report_print_plain(print->out, reason);
		fputc('\n', print->out);
	}
	print->n++;
}

void symbols_print_summary(struct symbols_print *print, const struct store_summary *summary)
{
	fprintf(print->out,
		print->is_json ? "],\"files\":%" PRIu64 ",\"failures\":%" PRIu64
				 ",\"bytes\":%" PRIu64 ",\"removed\":%" PRIu64
				 ",\"removed_bytes\":%" PRIu64 "}\n"
			       : "files     %" PRIu64 "\nfailures  %" PRIu64 "\nbytes     %" PRIu64
				 "\nremoved   %" PRIu64 " (%" PRIu64 " bytes)\n",
		summary->n_files, summary->n_failures, summary->bytes, summary->n_removed,
		summary->removed_bytes);
}
