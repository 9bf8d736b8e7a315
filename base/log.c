/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One logfmt line with one write(2), so that lines of several threads do not mix:
 *
 *   ts=2026-01-02T03:04:05.000000006Z level=warn component=collector msg="ring full" cpu=3
 *
 * The words in front of the first key=value become msg. Under journald the line starts with its
 * <priority> and has no ts. Control characters are escaped: a process may have any name.
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

enum { TEXT_MAX_BYTES = 2048, LINE_MAX_BYTES = 4 * TEXT_MAX_BYTES + 256 };

/* Set while the process has one thread. */
static enum log_level current_level = LOG_LEVEL_INFO;

static const struct {
	const char *name;
	int syslog_priority;
} levels[] = {
	[LOG_LEVEL_ERROR] = {"error", 3},
	[LOG_LEVEL_WARN] = {"warn", 4},
	[LOG_LEVEL_INFO] = {"info", 6},
	[LOG_LEVEL_DEBUG] = {"debug", 7},
};

struct line {
	char text[LINE_MAX_BYTES];
	size_t n;
};

void log_set_level(enum log_level level)
{
	current_level = level;
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
	size_t n = strftime(text, sizeof(text), "ts=%Y-%m-%dT%H:%M:%S", &utc);
	append(line, text, n);
	snprintf(text, sizeof(text), ".%09ldZ ", now.tv_nsec);
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

	struct line line;
	line.n = 0;
	if (is_journal()) {
		char priority[16];
		snprintf(priority, sizeof(priority), "<%d>", levels[level].syslog_priority);
		append_string(&line, priority);
	} else {
		append_time(&line);
	}
	append_string(&line, "level=");
	append_string(&line, levels[level].name);
	append_string(&line, " component=");
	append_string(&line, area);
	size_t n_event = event_length(text);
	if (n_event) {
		append_string(&line, " msg=\"");
		append_escaped(&line, text, n_event, true);
		append_string(&line, "\"");
	}
	const char *keys = text + n_event;
	if (*keys && *keys != ' ')
		append_string(&line, " ");
	append_escaped(&line, keys, strlen(keys), false);
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
