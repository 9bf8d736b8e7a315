/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line with one write(2), so that lines of several threads do not mix:
 *
 *   logfmt  ts=2026-01-02T03:04:05.000000006Z level=warn component=collector msg="ring full" cpu=3
 *   text    2026-01-02T03:04:05.000000006Z WARN collector: ring full cpu=3
 *   json    {"ts":"2026-…","level":"warn","component":"collector","msg":"ring full","cpu":"3"}
 *
 * The words in front of the first key=value become msg. Under journald the line starts with its
 * <priority> and has no time. Control characters are escaped: a process may have any name.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A byte becomes six at most. */
enum { TEXT_MAX_BYTES = 2048, LINE_MAX_BYTES = 6 * TEXT_MAX_BYTES + 512 };

/* Set while the process has one thread. */
static enum log_level current_level = LOG_LEVEL_INFO;
static enum log_format current_format = LOG_FORMAT_AUTO;

static const struct {
	const char *name, *shown, *color;
	int syslog_priority;
} levels[] = {
	[LOG_LEVEL_ERROR] = {"error", "ERROR", "\x1b[31m", 3},
	[LOG_LEVEL_WARN] = {"warn", "WARN", "\x1b[33m", 4},
	[LOG_LEVEL_INFO] = {"info", "INFO", "\x1b[32m", 6},
	[LOG_LEVEL_DEBUG] = {"debug", "DEBUG", "\x1b[2m", 7},
};

struct line {
	char text[LINE_MAX_BYTES];
	size_t n;
};

void log_set_level(enum log_level level)
{
	current_level = level;
}

void log_set_format(enum log_format format)
{
	current_format = format;
}

enum log_level log_get_level(void)
{
	return current_level;
}

/* The variable is inherited by children whose standard error is something else: systemd.exec(5). */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat st;
	if (!stream || fstat(STDERR_FILENO, &st) < 0)
		return false;
	char own[64];
	snprintf(own, sizeof(own), "%llu:%llu", (unsigned long long)st.st_dev,
		 (unsigned long long)st.st_ino);
	return strcmp(stream, own) == 0;
}

static void append(struct line *line, const char *s, size_t n)
{
	size_t left = sizeof(line->text) - line->n;
	if (n > left)
		n = left;
	memcpy(line->text + line->n, s, n);
	line->n += n;
}

static void append_string(struct line *line, const char *s)
{
	append(line, s, strlen(s));
}

/* Every byte becomes four at most. In quotes, what would end them is escaped too. */
static void append_escaped(struct line *line, const char *s, size_t n, bool is_quoted)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		char escape[5];
		if (c == '\n') {
			append_string(line, "\\n");
		} else if (c < 0x20 || c == 0x7f) {
			snprintf(escape, sizeof(escape), "\\x%02x", c);
			append_string(line, escape);
		} else if (is_quoted && (c == '"' || c == '\\')) {
			append(line, "\\", 1);
			append(line, s + i, 1);
		} else {
			append(line, s + i, 1);
		}
	}
}

/* Length of the event in front of the first " key=". */
static size_t event_length(const char *text)
{
	const char *equals = strchr(text, '=');
	if (!equals)
		return strlen(text);
	while (equals > text && *equals != ' ')
		equals--;
	return (size_t)(equals - text);
}

static void append_time(struct line *line)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	struct tm utc;
	gmtime_r(&now.tv_sec, &utc);
	char text[64];
	size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
	append(line, text, n);
	snprintf(text, sizeof(text), ".%09ldZ", now.tv_nsec);
	append_string(line, text);
}

static void write_line(const struct line *line)
{
	ssize_t n;
	do {
		n = write(STDERR_FILENO, line->text, line->n);
	} while (n < 0 && errno == EINTR);
	/* Where the log cannot be written there is nowhere to say so. */
}

/* What a line says, in whatever form. */
struct statement {
	enum log_level level;
	const char *area;
	const char *text; /* the event, and its pairs behind it */
	size_t n_event;
	bool is_journal; /* which has its own time */
};

/* Without a blank in front. */
static const char *pairs_of(const struct statement *statement)
{
	const char *pairs = statement->text + statement->n_event;
	return pairs + strspn(pairs, " ");
}

static void write_logfmt(struct line *line, const struct statement *statement)
{
	if (!statement->is_journal) {
		append_string(line, "ts=");
		append_time(line);
		append_string(line, " ");
	}
	append_string(line, "level=");
	append_string(line, levels[statement->level].name);
	append_string(line, " component=");
	append_string(line, statement->area);
	if (statement->n_event) {
		append_string(line, " msg=\"");
		append_escaped(line, statement->text, statement->n_event, true);
		append_string(line, "\"");
	}
	const char *pairs = pairs_of(statement);
	if (*pairs)
		append_string(line, " ");
	append_escaped(line, pairs, strlen(pairs), false);
}

static bool has_color(void)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	bool is_dumb = term && strcmp(term, "dumb") == 0;
	return isatty(STDERR_FILENO) && !(no_color && *no_color) && !is_dumb;
}

static void write_text(struct line *line, const struct statement *statement)
{
	bool is_colored = has_color();
	if (!statement->is_journal) {
		append_time(line);
		append_string(line, " ");
	}
	append_string(line, is_colored ? levels[statement->level].color : "");
	append_string(line, levels[statement->level].shown);
	append_string(line, is_colored ? "\x1b[0m " : " ");
	append_string(line, statement->area);
	append_string(line, ": ");
	append_escaped(line, statement->text, strlen(statement->text), false);
}

/* Bytes of the UTF-8 character at s, 0 when it is none. */
static size_t utf8_bytes(const unsigned char *s, size_t n)
{
	size_t size = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (size == 0 || s[0] > 0xf4 || size > n)
		return 0;
	for (size_t i = 1; i < size; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	}
	/* Longer than need be, surrogates, past the last plane. */
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return size;
}

static void append_json(struct line *line, const char *text, size_t n)
{
	const unsigned char *s = (const unsigned char *)text;
	append_string(line, "\"");
	for (size_t i = 0; i < n;) {
		size_t size = utf8_bytes(s + i, n - i);
		char escape[8];
		if (size == 0 || s[i] < 0x20 || s[i] == 0x7f) {
			snprintf(escape, sizeof(escape), "\\u%04x", size ? s[i] : 0xfffd);
			append_string(line, escape);
			size = 1;
		} else if (s[i] == '"' || s[i] == '\\') {
			append(line, "\\", 1);
			append(line, text + i, 1);
		} else {
			append(line, text + i, size);
		}
		i += size;
	}
	append_string(line, "\"");
}

/* Length of a value: to the quote that a blank or the end follows, else to the next blank. */
static size_t value_length(const char *value)
{
	if (*value != '"')
		return strcspn(value, " ");
	const char *end = strchr(value + 1, '"');
	while (end && end[1] && end[1] != ' ')
		end = strchr(end + 1, '"');
	return end ? (size_t)(end - value) + 1 : strlen(value);
}

static void append_json_pair(struct line *line, const char *key, size_t n_key, const char *value,
			     size_t n_value)
{
	bool is_quoted = n_value >= 2 && value[0] == '"' && value[n_value - 1] == '"';
	append_string(line, ",");
	append_json(line, key, n_key);
	append_string(line, ":");
	append_json(line, value + is_quoted, n_value - 2 * is_quoted);
}

/* Values are strings: whoever reads them need not know which are numbers today. */
static void write_json(struct line *line, const struct statement *statement)
{
	append_string(line, "{");
	if (!statement->is_journal) {
		append_string(line, "\"ts\":\"");
		append_time(line);
		append_string(line, "\",");
	}
	append_string(line, "\"level\":\"");
	append_string(line, levels[statement->level].name);
	append_string(line, "\"");
	append_json_pair(line, "component", strlen("component"), statement->area,
			 strlen(statement->area));
	if (statement->n_event)
		append_json_pair(line, "msg", strlen("msg"), statement->text, statement->n_event);
	for (const char *pair = pairs_of(statement); *pair; pair += strspn(pair, " ")) {
		size_t n_key = strcspn(pair, "= ");
		const char *value = pair + n_key + (pair[n_key] == '=');
		size_t n_value = pair[n_key] == '=' ? value_length(value) : 0;
		append_json_pair(line, pair, n_key, value, n_value);
		pair = value + n_value;
	}
	append_string(line, "}");
}

static void write_form(struct line *line, const struct statement *statement)
{
	switch (current_format) {
	case LOG_FORMAT_JSON:
		write_json(line, statement);
		return;
	case LOG_FORMAT_TEXT:
		write_text(line, statement);
		return;
	case LOG_FORMAT_LOGFMT:
		write_logfmt(line, statement);
		return;
	case LOG_FORMAT_AUTO:
		break;
	}
	if (isatty(STDERR_FILENO))
		write_text(line, statement);
	else
		write_logfmt(line, statement);
}

void log_line(enum log_level level, const char *area, const char *fmt, ...)
{
	if (level > current_level)
		return;
	int saved_errno = errno;
	char text[TEXT_MAX_BYTES];
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (n < 0)
		text[0] = 0;
	else if ((size_t)n >= sizeof(text))
		memcpy(text + sizeof(text) - 4, "...", 4);

	const struct statement statement = {
		.level = level,
		.area = area,
		.text = text,
		.n_event = event_length(text),
		.is_journal = is_journal(),
	};
	struct line line;
	line.n = 0;
	if (statement.is_journal) {
		char priority[16];
		snprintf(priority, sizeof(priority), "<%d>", levels[level].syslog_priority);
		append_string(&line, priority);
	}
	write_form(&line, &statement);
	append_string(&line, "\n");
	write_line(&line);
	errno = saved_errno;
}

int log_every_allows(struct log_every *every, uint64_t now_ns, uint64_t *n_held_out)
{
	if (every->last_ns && now_ns - every->last_ns < every->interval_ns) {
		every->n_held++;
		return 0;
	}
	if (n_held_out)
		*n_held_out = every->n_held;
	every->last_ns = now_ns;
	every->n_held = 0;
	return 1;
}
