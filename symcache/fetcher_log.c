/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/fetcher_log.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"

struct text {
	const char *start;
	size_t n;
};

static bool skip(struct text *line, const char *word)
{
	size_t n = strlen(word);
	if (line->n < n || strncasecmp(line->start, word, n) != 0)
		return false;
	line->start += n;
	line->n -= n;
	return true;
}

static bool holds(const struct text *line, const char *word)
{
	return memmem(line->start, line->n, word, strlen(word)) != NULL;
}

/* Digits at the start; at most 9. */
static bool skip_number(struct text *line, uint32_t *out)
{
	size_t n = 0;
	uint32_t value = 0;
	for (; n < line->n && n < 9 && line->start[n] >= '0' && line->start[n] <= '9'; n++)
		value = 10 * value + (uint32_t)(line->start[n] - '0');
	line->start += n;
	line->n -= n;
	*out = value;
	return n != 0;
}

static void set_text(char out[SERVER_REASON_BYTES], const struct text *text)
{
	size_t n = text->n < SERVER_REASON_BYTES - 1 ? text->n : SERVER_REASON_BYTES - 1;
	memcpy(out, text->start, n);
	out[n] = 0;
}

static enum fetcher_outcome judge(struct text text)
{
	uint32_t status;
	if (skip(&text, "The requested URL returned error: ") && skip_number(&text, &status))
		return status == 404 || status == 410 ? FETCHER_NOT_THERE : FETCHER_TROUBLE;
	return holds(&text, "too slow") || holds(&text, "timed out") || holds(&text, "Timeout")
		       ? FETCHER_LATE
		       : FETCHER_TROUBLE;
}

static void read_line(struct text line, uint32_t n_servers, struct text *response,
		      struct fetcher_report_message *report)
{
	uint32_t server;
	if (skip(&line, "server response ")) {
		*response = line;
		return;
	}
	if (!skip(&line, "url ") || !skip_number(&line, &server) || server >= n_servers ||
	    server >= SERVER_LIST_MAX)
		return;
	(void)skip(&line, " ");
	struct text url = line;
	if (skip(&url, "http://") || skip(&url, "https://"))
		return;
	/* The transfer's own words may be missing. */
	const struct text *said = line.n ? &line : response;
	if (!said->n)
		return;
	report->outcomes[server] = (uint8_t)judge(*said);
	set_text(report->texts[server], said);
	*response = (struct text){0};
}

void fetcher_log_read(const char *log, size_t n, uint32_t n_servers,
		      struct fetcher_report_message *report)
{
	struct text response = {0};
	const char *end = log + n;
	/* A line without end was not written whole. */
	for (const char *newline; log < end && (newline = memchr(log, '\n', (size_t)(end - log)));
	     log = newline + 1)
		read_line((struct text){log, (size_t)(newline - log)}, n_servers, &response,
			  report);
}

uint64_t fetcher_log_stated_bytes(const char *headers)
{
	static const char name[] = "x-debuginfod-size:";
	for (const char *line = headers; line && *line;) {
		if (strncasecmp(line, name, sizeof(name) - 1) == 0) {
			const char *number = line + sizeof(name) - 1;
			char *end;
			number += strspn(number, " \t");
			errno = 0;
			unsigned long long value = strtoull(number, &end, 10);
			bool is_number = *number >= '0' && *number <= '9' && !errno;
			return is_number ? value : 0;
		}
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return 0;
}
