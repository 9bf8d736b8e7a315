/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debuginfod servers that the user named, and which of them are left alone for a while. A
 * server that fails several times in a row is not asked again for some minutes, so that one that
 * hangs costs its time once. An answer, also "not here", ends the row.
 *
 * Text form of URLs as of DEBUGINFOD_URLS, see debuginfod_find_debuginfo(3): base URLs with spaces
 * between them, some tokens being tags ("ima:enforcing") for what follows.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"

enum {
	SERVER_LIST_MAX = 8,
	SERVER_URL_BYTES = 512,
	SERVER_REASON_BYTES = 160,
	SERVER_MAX_FAILURES = 3, /* in a row */
	SERVER_PAUSE_S = 600,
};

struct server {
	char url[SERVER_URL_BYTES]; /* ends with a slash */
	uint32_t n_failures;	    /* in a row */
	uint32_t n_all_failures;    /* since the list was made */
	uint64_t paused_until_ns;   /* wall time; 0 = not */
	char reason[SERVER_REASON_BYTES];
};

struct server_list {
	struct server items[SERVER_LIST_MAX];
	uint32_t n;
	const struct clock *clock;
};

/*
 * urls: http and https only, tags are skipped, equal ones become one. ERROR_USAGE: a token that is
 * none of these, too many, or none at all. clock NULL = clock_system, else it outlives the list.
 */
struct error *server_list_init(struct server_list *list, const char *urls,
			       const struct clock *clock) MUST_USE;

/* Of several lists with the same URLs, whatever their order. */
uint64_t server_list_hash(const struct server_list *list);

bool server_list_is_paused(const struct server_list *list, uint32_t index);
/* Whether there is none to ask. */
bool server_list_are_all_paused(const struct server_list *list);
/* Seconds until the server is asked again, 0 when it is now. */
uint32_t server_list_pause_s(const struct server_list *list, uint32_t index);

void server_list_note_answer(struct server_list *list, uint32_t index);
/* True when the server is paused from now on and was not before. */
bool server_list_note_failure(struct server_list *list, uint32_t index, const char *reason);

/* "debuginfod.example:8002": the part of a URL that tells servers apart for people. */
void server_list_host(const struct server_list *list, uint32_t index, char out[SERVER_URL_BYTES]);

/* Lines "UNTIL URL REASON" of those that are paused. */
struct error *server_list_format(const struct server_list *list, struct buf *out) MUST_USE;
/* Takes pauses over from such lines; what is no such line, of no server here, or over, is skipped.
 */
void server_list_parse(struct server_list *list, const char *text);
