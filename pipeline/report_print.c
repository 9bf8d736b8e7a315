/* SPDX-License-Identifier: Apache-2.0 */
/* A report table as text for people, JSON and CSV. */
#include "pipeline/report_print.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "pipeline/json_text.h"

enum { TEXT_BYTES = 64, VALUE_WIDTH = 10 };

static double percent(int64_t value, int64_t total)
{
	return total ? 100.0 * (double)value / (double)total : 0.0;
}

struct scale {
	double factor; /* of the column's unit */
	const char *suffix;
};

static const struct scale time_scales[] = {{3600e9, "h"}, {60e9, "min"}, {1e9, "s"},
					   {1e6, "ms"},	  {1e3, "us"},	 {1, "ns"}};
static const struct scale byte_scales[] = {
	{1099511627776.0, "TB"}, {1073741824.0, "GB"}, {1048576.0, "MB"}, {1024.0, "kB"}, {1, "B"}};

/* What one of the unit is in ns or bytes. */
static const struct {
	const char *unit;
	double factor;
	bool is_bytes;
} units[] = {
	{"nanoseconds", 1, false},    {"nanosecond", 1, false}, {"ns", 1, false},
	{"microseconds", 1e3, false}, {"us", 1e3, false},	{"milliseconds", 1e6, false},
	{"ms", 1e6, false},	      {"seconds", 1e9, false},	{"s", 1e9, false},
	{"bytes", 1, true},	      {"byte", 1, true},	{"kilobytes", 1024, true},
	{"megabytes", 1048576, true},
};

void report_print_value(int64_t value, const char *unit, char *out, size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (strcmp(units[i].unit, unit) != 0)
			continue;
		const struct scale *scale = units[i].is_bytes ? byte_scales : time_scales;
		size_t n = units[i].is_bytes ? ARRAY_LEN(byte_scales) : ARRAY_LEN(time_scales);
		double base = (double)value * units[i].factor;
		double magnitude = base < 0 ? -base : base;
		while (--n && magnitude < scale->factor)
			scale++;
		if (!value) {
			snprintf(out, size, "0");
			return;
		}
		char number[TEXT_BYTES];
		int length = snprintf(number, sizeof(number), "%.2f", base / scale->factor);
		while (length && number[length - 1] == '0')
			length--;
		if (length && number[length - 1] == '.')
			length--;
		snprintf(out, size, "%.*s%s", length, number, scale->suffix);
		return;
	}
	snprintf(out, size, "%" PRId64, value);
}

/* Names come from others' programs: nothing in them may steer the terminal. */
void report_print_plain(FILE *out, const char *text)
{
	for (const char *p = text; *p; p++) {
		unsigned char c = (unsigned char)*p;
		/* C1 controls are c2 80 to c2 9f in UTF-8. */
		bool is_c1 =
			c == 0xc2 && (unsigned char)p[1] >= 0x80 && (unsigned char)p[1] <= 0x9f;
		if (is_c1)
			p++;
		putc(is_c1 || c < 0x20 || c == 0x7f ? '?' : c, out);
	}
}

static const char *value_text(const struct report_table *table, const struct report_table_row *row,
			      uint32_t key)
{
	uint32_t string = table->values[(size_t)row->values * table->n_keys + key];
	return report_table_text(table, string);
}

static void print_name(const struct report_table *table, const struct report_table_row *row,
		       FILE *out)
{
	for (uint32_t i = 0; i < table->n_keys; i++) {
		const char *value = value_text(table, row, i);
		fprintf(out, "%s", i ? " " : "");
		report_print_plain(out, report_table_text(table, table->keys[i]));
		putc('=', out);
		report_print_plain(out, *value ? value : "(none)");
	}
	if (table->has_functions) {
		fprintf(out, "%s", table->n_keys ? "  " : "");
		report_print_plain(out, report_table_text(table, row->name));
	}
}

static void print_header(const struct report_table *table, int64_t shown, FILE *out)
{
	const struct profile *profile = table->profile;
	const char *unit = report_table_text(table, table->unit);
	char total[TEXT_BYTES];
	char kept[TEXT_BYTES];
	report_print_value(table->total, unit, total, sizeof(total));
	report_print_value(shown, unit, kept, sizeof(kept));
	fprintf(out, "Column: ");
	report_print_plain(out, report_table_text(table, table->type));
	fprintf(out, " (");
	report_print_plain(out, unit);
	fprintf(out, "), total %s\n", total);
	if (profile->time_nanos > 0) {
		time_t seconds = (time_t)(profile->time_nanos / 1000000000);
		struct tm tm;
		char text[TEXT_BYTES];
		if (gmtime_r(&seconds, &tm) &&
		    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm))
			fprintf(out, "Time:   %s\n", text);
	}
	if (profile->duration_nanos > 0) {
		char text[TEXT_BYTES];
		report_print_value(profile->duration_nanos, "ns", text, sizeof(text));
		fprintf(out, "Length: %s\n", text);
	}
	for (uint32_t i = 0; i < profile->comments.n; i++) {
		fprintf(out, "Note:   ");
		report_print_plain(out, profile_text(profile, profile->comments.items[i]));
		putc('\n', out);
	}
	fprintf(out, "Rows:   %u of %u, %s of %s (%.2f%%)\n", table->n_rows, table->n_all_rows,
		kept, total, percent(shown, table->total));
}

static int64_t sum_shown(const struct report_table *table)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < table->n_rows; i++)
		sum = (int64_t)((uint64_t)sum + (uint64_t)table->rows[i].flat);
	return sum;
}

static void write_text(const struct report_table *table, FILE *out)
{
	print_header(table, sum_shown(table), out);
	fprintf(out, "%*s %7s %7s %*s %7s  %s\n", VALUE_WIDTH, "flat", "flat%", "sum%", VALUE_WIDTH,
		"cum", "cum%", table->has_functions ? "name" : "labels");
	const char *unit = report_table_text(table, table->unit);
	int64_t sum = 0;
	for (uint32_t i = 0; i < table->n_rows; i++) {
		const struct report_table_row *row = &table->rows[i];
		char flat[TEXT_BYTES];
		char cum[TEXT_BYTES];
		report_print_value(row->flat, unit, flat, sizeof(flat));
		report_print_value(row->cum, unit, cum, sizeof(cum));
		sum = (int64_t)((uint64_t)sum + (uint64_t)row->flat);
		fprintf(out, "%*s %6.2f%% %6.2f%% %*s %6.2f%%  ", VALUE_WIDTH, flat,
			percent(row->flat, table->total), percent(sum, table->total), VALUE_WIDTH,
			cum, percent(row->cum, table->total));
		print_name(table, row, out);
		putc('\n', out);
	}
}

static void write_json_row(const struct report_table *table, const struct report_table_row *row,
			   int64_t sum, FILE *out)
{
	fprintf(out, "\n    {");
	if (table->has_functions) {
		fprintf(out, "\"name\": ");
		json_text_write(out, report_table_text(table, row->name));
		fprintf(out, ", ");
	}
	if (table->n_keys) {
		fprintf(out, "\"labels\": {");
		for (uint32_t i = 0; i < table->n_keys; i++) {
			fprintf(out, "%s", i ? ", " : "");
			json_text_write(out, report_table_text(table, table->keys[i]));
			fprintf(out, ": ");
			json_text_write(out, value_text(table, row, i));
		}
		fprintf(out, "}, ");
	}
	fprintf(out,
		"\"flat\": %" PRId64 ", \"flat_percent\": %.4f, \"sum_percent\": %.4f, "
		"\"cum\": %" PRId64 ", \"cum_percent\": %.4f}",
		row->flat, percent(row->flat, table->total), percent(sum, table->total), row->cum,
		percent(row->cum, table->total));
}

static void write_json(const struct report_table *table, FILE *out)
{
	const struct profile *profile = table->profile;
	fprintf(out, "{\n  \"schema_version\": 1,\n  \"type\": ");
	json_text_write(out, report_table_text(table, table->type));
	fprintf(out, ",\n  \"unit\": ");
	json_text_write(out, report_table_text(table, table->unit));
	fprintf(out,
		",\n  \"total\": %" PRId64 ",\n  \"kept\": %" PRId64
		",\n  \"distinct_samples\": %" PRIu64 ",\n  \"time_nanos\": %" PRId64
		",\n  \"duration_nanos\": %" PRId64 ",\n  \"comments\": [",
		table->total, table->kept, table->n_samples, profile->time_nanos,
		profile->duration_nanos);
	for (uint32_t i = 0; i < profile->comments.n; i++) {
		fprintf(out, "%s", i ? ", " : "");
		json_text_write(out, profile_text(profile, profile->comments.items[i]));
	}
	fprintf(out, "],\n  \"rows_total\": %u,\n  \"rows\": [", table->n_all_rows);
	int64_t sum = 0;
	for (uint32_t i = 0; i < table->n_rows; i++) {
		sum = (int64_t)((uint64_t)sum + (uint64_t)table->rows[i].flat);
		fprintf(out, "%s", i ? "," : "");
		write_json_row(table, &table->rows[i], sum, out);
	}
	fprintf(out, "%s]\n}\n", table->n_rows ? "\n  " : "");
}

static void write_csv_text(FILE *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		fputs(text, out);
		return;
	}
	putc('"', out);
	for (const char *p = text; *p; p++) {
		if (*p == '"')
			putc('"', out);
		putc(*p, out);
	}
	putc('"', out);
}

static void write_csv(const struct report_table *table, FILE *out)
{
	fprintf(out, "flat,flat_percent,sum_percent,cum,cum_percent");
	for (uint32_t i = 0; i < table->n_keys; i++) {
		putc(',', out);
		write_csv_text(out, report_table_text(table, table->keys[i]));
	}
	fprintf(out, "%s\n", table->has_functions ? ",name" : "");
	int64_t sum = 0;
	for (uint32_t i = 0; i < table->n_rows; i++) {
		const struct report_table_row *row = &table->rows[i];
		sum = (int64_t)((uint64_t)sum + (uint64_t)row->flat);
		fprintf(out, "%" PRId64 ",%.4f,%.4f,%" PRId64 ",%.4f", row->flat,
			percent(row->flat, table->total), percent(sum, table->total), row->cum,
			percent(row->cum, table->total));
		for (uint32_t key = 0; key < table->n_keys; key++) {
			putc(',', out);
			write_csv_text(out, value_text(table, row, key));
		}
		if (table->has_functions) {
			putc(',', out);
			write_csv_text(out, report_table_text(table, row->name));
		}
		putc('\n', out);
	}
}

bool report_print_parse_format(const char *name, enum report_print_format *out)
{
	static const char *const names[] = {
		[REPORT_PRINT_TEXT] = "text",
		[REPORT_PRINT_JSON] = "json",
		[REPORT_PRINT_CSV] = "csv",
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		*out = (enum report_print_format)i;
		return true;
	}
	return false;
}

struct error *report_print(const struct report_table *table, enum report_print_format format,
			   FILE *out)
{
	if (format == REPORT_PRINT_JSON)
		write_json(table, out);
	else if (format == REPORT_PRINT_CSV)
		write_csv(table, out);
	else
		write_text(table, out);
	if (fflush(out) || ferror(out))
		return error_new(ERROR_IO, "the table could not be written");
	return NULL;
}
