/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between the agent, the fetcher process and its workers; the functions that carry them
 * are builder_wire's. What comes out of a worker is hostile: it has talked to servers.
 *
 *   agent ── fetcher_order_message + descriptors ──> fetcher process
 *   agent <──────── fetcher_end_message ──────────── fetcher process, once a worker is gone
 *   agent <─────── fetcher_report_message ────────── worker (its own socket), last of all
 */
#pragma once

#include <stdint.h>

#include "base/build_id.h"
#include "symcache/server_list.h"

enum {
	FETCHER_WIRE_PATH_BYTES = 512,
	FETCHER_WIRE_URLS_BYTES = SERVER_LIST_MAX * SERVER_URL_BYTES
};

enum fetcher_kind { FETCHER_DEBUGINFO, FETCHER_EXECUTABLE, FETCHER_KIND_N };

/* Descriptors: socket, folder to work in. */
struct fetcher_order_message {
	uint32_t number;
	uint32_t kind; /* enum fetcher_kind */
	struct build_id id;
	uint32_t answer_s;  /* until the first byte */
	uint32_t whole_s;   /* until the last one */
	uint64_t max_bytes; /* of the file */
	uint32_t n_servers;
	char urls[FETCHER_WIRE_URLS_BYTES]; /* closed by 0, a space between two */
};

struct fetcher_end_message {
	uint32_t number;
	int32_t status; /* as of wait(2) */
};

/* What one server did. */
enum fetcher_outcome {
	FETCHER_SILENT,	   /* nothing that can be held against it: another one was faster */
	FETCHER_NOT_THERE, /* it knows no such file */
	FETCHER_TROUBLE,   /* it failed, see the text */
	FETCHER_LATE,	   /* no answer in time */
	FETCHER_OUTCOME_N,
};

struct fetcher_report_message {
	uint8_t is_found;
	uint8_t is_too_large;
	uint32_t server;		    /* of the file found */
	uint64_t stated_bytes;		    /* what the server said the file has; 0 = nothing */
	char path[FETCHER_WIRE_PATH_BYTES]; /* of the file, within the folder */
	uint8_t outcomes[SERVER_LIST_MAX];  /* enum fetcher_outcome */
	char texts[SERVER_LIST_MAX][SERVER_REASON_BYTES];
};

/* Closes texts and paths, and takes unknown values for harmless ones. */
void fetcher_wire_clean(struct fetcher_report_message *message);
