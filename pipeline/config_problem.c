/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/config_problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "pipeline/explain.h"
#include "pipeline/json_text.h"

enum {
	MAX_PROBLEMS = 200,
	TEXT_BYTES = 1024,
	SHOWN_COLUMNS = 120, /* of a line; the caret stays within */
};

void config_problems_init(struct config_problems *problems)
{
	*problems = (struct config_problems){0};
	arena_init(&problems->arena, 0);
}

void config_problems_fini(struct config_problems *problems)
{
	for (size_t i = 0; i < problems->n_sources; i++)
		mem_free(problems->sources[i].text);
	mem_free(problems->sources);
	mem_free(problems->problems);
	mem_free(problems->hidden);
	arena_fini(&problems->arena);
	*problems = (struct config_problems){0};
}

const char *config_problems_take_source(struct config_problems *problems, const char *path,
					char *text, size_t size)
{
	problems->sources =
		mem_realloc(problems->sources, problems->n_sources + 1, sizeof(*problems->sources));
	struct config_source *source = &problems->sources[problems->n_sources++];
	*source = (struct config_source){
		.path = arena_copy_string(&problems->arena, path, strlen(path)),
		.text = text,
		.size = size,
	};
	return source->path;
}

static bool is_same(const struct config_place *a, const struct config_place *b)
{
	return a->file == b->file && a->line == b->line && a->column == b->column;
}

/* What is wrong with one value is told once: the rest follows from it. */
static bool is_told(const struct config_problems *problems, const struct config_place *place)
{
	for (size_t i = 0; i < problems->n && place->line; i++) {
		if (!problems->problems[i].is_warning &&
		    is_same(&problems->problems[i].place, place))
			return true;
	}
	return false;
}

static void add(struct config_problems *problems, bool is_warning, int number,
		struct config_place place, const char *fmt, va_list args)
{
	if (is_told(problems, &place))
		return;
	problems->n_errors += !is_warning;
	if (problems->n == MAX_PROBLEMS) {
		problems->n_dropped++;
		return;
	}
	if (problems->n == problems->capacity) {
		problems->capacity = problems->capacity ? 2 * problems->capacity : 16;
		problems->problems = mem_realloc(problems->problems, problems->capacity,
						 sizeof(*problems->problems));
	}
	char text[TEXT_BYTES];
	vsnprintf(text, sizeof(text), fmt, args);
	size_t order = 0;
	while (order < problems->n_sources && place.file != problems->sources[order].path)
		order++;
	const char *file = place.file;
	if (file && order == problems->n_sources)
		file = arena_copy_string(&problems->arena, file, strlen(file));
	problems->problems[problems->n++] = (struct config_problem){
		.is_warning = is_warning,
		.number = number,
		.place = {file, place.line, place.column},
		.file_order = order,
		.text = arena_copy_string(&problems->arena, text, strlen(text)),
	};
}

void config_error_numbered(struct config_problems *problems, int number, struct config_place place,
			   const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	add(problems, false, number, place, fmt, args);
	va_end(args);
}

void config_warn(struct config_problems *problems, int number, struct config_place place,
		 const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	add(problems, true, number, place, fmt, args);
	va_end(args);
}

void config_problems_hide(struct config_problems *problems, struct config_place begin,
			  struct config_place end)
{
	if (problems->n_hidden == problems->hidden_capacity) {
		problems->hidden_capacity =
			problems->hidden_capacity ? 2 * problems->hidden_capacity : 16;
		problems->hidden = mem_realloc(problems->hidden, problems->hidden_capacity,
					       sizeof(*problems->hidden));
	}
	problems->hidden[problems->n_hidden++] = (struct config_span){begin, end};
}

/* --- the line --- */

static const struct config_source *find_source(const struct config_problems *problems,
					       const char *path)
{
	for (size_t i = 0; i < problems->n_sources; i++) {
		if (problems->sources[i].path == path)
			return &problems->sources[i];
	}
	return NULL;
}

/* YAML breaks lines at \n, \r and \r\n; its other breaks are not known to editors either. */
static const char *find_line(const struct config_source *source, unsigned line, size_t *n_out)
{
	const char *p = source->text;
	for (unsigned at = 1; at < line; at++) {
		p += strcspn(p, "\r\n");
		if (*p == '\0')
			return NULL;
		p += p[0] == '\r' && p[1] == '\n' ? 2 : 1;
	}
	*n_out = strcspn(p, "\r\n");
	return p;
}

static bool is_between(const struct config_place *place, const struct config_place *begin,
		       const struct config_place *end)
{
	if (begin->file != place->file)
		return false;
	bool is_behind = place->line > begin->line ||
			 (place->line == begin->line && place->column >= begin->column);
	bool is_before = place->line < end->line ||
			 (place->line == end->line && place->column < end->column);
	return is_behind && is_before;
}

bool config_problems_has_between(const struct config_problems *problems, struct config_place begin,
				 struct config_place end)
{
	for (size_t i = 0; i < problems->n; i++) {
		if (!problems->problems[i].is_warning &&
		    is_between(&problems->problems[i].place, &begin, &end))
			return true;
	}
	return false;
}

/* Marks which of the SHOWN_COLUMNS from first on belong to a secret. */
static void mark_hidden(const struct config_problems *problems, const struct config_place *line,
			unsigned first, bool marks[SHOWN_COLUMNS])
{
	memset(marks, 0, SHOWN_COLUMNS * sizeof(*marks));
	for (size_t i = 0; i < problems->n_hidden; i++) {
		const struct config_place *begin = &problems->hidden[i].begin;
		const struct config_place *end = &problems->hidden[i].end;
		if (begin->file != line->file || begin->line > line->line || end->line < line->line)
			continue;
		unsigned from =
			begin->line == line->line && begin->column > first ? begin->column : first;
		unsigned to = first + SHOWN_COLUMNS;
		if (end->line == line->line && end->column < to)
			to = end->column;
		for (unsigned column = from; column < to; column++)
			marks[column - first] = true;
	}
}

/* Characters of the line from first on, secrets masked; what is no text becomes '?'. */
static void copy_line(const struct config_problems *problems, const struct config_place *place,
		      const char *line, size_t n, unsigned first, struct buf *out)
{
	unsigned column = 0;
	struct error *err = NULL;
	bool is_hidden[SHOWN_COLUMNS];
	mark_hidden(problems, place, first, is_hidden);
	for (size_t i = 0; i < n && !err && column + 1 < first + SHOWN_COLUMNS;) {
		size_t length = 1;
		while (i + length < n && ((unsigned char)line[i + length] & 0xc0) == 0x80)
			length++;
		column++;
		bool is_control = (unsigned char)line[i] < 0x20 && line[i] != '\t';
		if (column >= first) {
			if (is_hidden[column - first])
				err = buf_append(out, "*", 1);
			else
				err = buf_append(out, is_control ? "?" : line + i,
						 is_control ? 1 : length);
		}
		i += length;
	}
	error_free(err); /* a line too long for the buffer is shown in part */
}

static void print_line(const struct config_problems *problems, const struct config_problem *problem,
		       const struct message *message)
{
	const struct config_place *place = &problem->place;
	const struct config_source *source =
		place->line ? find_source(problems, place->file) : NULL;
	size_t n;
	const char *line = source ? find_line(source, place->line, &n) : NULL;
	if (!line)
		return;
	unsigned first = place->column > SHOWN_COLUMNS - 20 ? place->column - SHOWN_COLUMNS / 2 : 1;
	struct buf shown;
	buf_init(&shown, 8 * SHOWN_COLUMNS);
	copy_line(problems, place, line, n, first, &shown);
	message_print_escaped(buf_string(&shown));
	fputc('\n', stderr);
	/* Tabs before the place are as wide in the line of the caret. */
	unsigned column = first;
	for (size_t i = 0; column < place->column; i++) {
		bool is_inside = i < shown.size;
		if (is_inside && (shown.data[i] & 0xc0) == 0x80)
			continue;
		fputc(is_inside && shown.data[i] == '\t' ? '\t' : ' ', stderr);
		column++;
	}
	fprintf(stderr, "%s^%s\n", message->has_color ? "\033[1;32m" : "",
		message->has_color ? "\033[0m" : "");
	buf_fini(&shown);
}

/* --- printing --- */

static int compare(const void *a, const void *b)
{
	const struct config_problem *x = a;
	const struct config_problem *y = b;
	if (x->is_warning != y->is_warning)
		return x->is_warning ? 1 : -1;
	if (x->file_order != y->file_order)
		return x->file_order < y->file_order ? -1 : 1;
	if (x->place.line != y->place.line)
		return x->place.line < y->place.line ? -1 : 1;
	if (x->place.column != y->place.column)
		return x->place.column < y->place.column ? -1 : 1;
	return strcmp(x->text, y->text);
}

static void print_json(const struct config_problem *problem)
{
	const struct explain_entry *entry = explain_find(
		problem->is_warning ? EXPLAIN_WARNING : EXPLAIN_ERROR, problem->number);
	fprintf(stderr, "{\"code\":\"%c%d\",\"message\":", problem->is_warning ? 'W' : 'E',
		problem->number);
	json_text_write(stderr, problem->text);
	fputs(",\"why\":", stderr);
	json_text_write(stderr, entry ? entry->why : NULL);
	fputs(",\"fix\":", stderr);
	json_text_write(stderr, entry ? entry->fix : NULL);
	fputs(",\"file\":", stderr);
	json_text_write(stderr, problem->place.file);
	fprintf(stderr, ",\"line\":%u,\"column\":%u}\n", problem->place.line,
		problem->place.column);
}

static void print_text(const struct config_problem *problem, const struct message *message)
{
	const struct config_place *place = &problem->place;
	const char *severity = problem->is_warning ? "warning:" : "error:";
	const char *color = problem->is_warning ? "\033[1;33m" : "\033[1;31m";
	message_print_escaped(place->file ? place->file : "perfpipe");
	if (place->line)
		fprintf(stderr, ":%u:%u", place->line, place->column);
	fprintf(stderr, ": %s%s%s ", message->has_color ? color : "", severity,
		message->has_color ? "\033[0m" : "");
	message_print_escaped(problem->text);
	if (problem->is_warning)
		fprintf(stderr, " [W%d]\n", problem->number);
	else
		fprintf(stderr, " [E%d, exit %d]\n", problem->number, EXIT_CODE_CONFIG);
}

void config_problems_print(struct config_problems *problems, const struct message *message)
{
	fflush(stdout);
	if (problems->n)
		qsort(problems->problems, problems->n, sizeof(*problems->problems), compare);
	for (size_t i = 0; i < problems->n; i++) {
		if (message->is_json) {
			print_json(&problems->problems[i]);
			continue;
		}
		print_text(&problems->problems[i], message);
		print_line(problems, &problems->problems[i], message);
		if (i == 0 && problems->n_errors > 1)
			fprintf(stderr, "%zu more error%s below\n", problems->n_errors - 1,
				problems->n_errors == 2 ? "" : "s");
	}
	if (problems->n_dropped && !message->is_json)
		fprintf(stderr, "perfpipe: %zu more are not shown\n", problems->n_dropped);
}
