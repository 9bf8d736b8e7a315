/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Debug information for Parca's DebuginfoService, once for each build-id:
 *
 *   ShouldInitiateUpload ─► extract ─► InitiateUpload ─┬─► Upload (stream) ───┬─►
 * MarkUploadFinished └─► PUT to a signed URL ┘
 *
 * Each build-id is unknown, pending, done, or refused until some time; only what the server has
 * acknowledged is done. What fails in passing is tried again with back-off, the first question
 * comes after a random wait (a fleet that starts at once must not ask at once), few uploads run at
 * a time, and done and refused are remembered in a small file over restarts.
 *
 * Order of calls: debuginfo_upload_new; debuginfo_upload_wants, then debuginfo_upload_offer with an
 * open file, for what is seen; debuginfo_upload_tick whenever debuginfo_upload_next_ns is over;
 * debuginfo_upload_free. Belongs to the thread of its transport.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/build_id.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/grpc_channel.h"

/* A PUT of n_bytes with Content-Length. */
struct debuginfo_put {
	const char *url; /* valid until done */
	uint64_t n_bytes;
	/* False: the file cannot be read any more; the PUT is to be broken off. */
	bool (*read)(void *context, uint64_t offset, uint8_t *out, size_t n);
	/* Exactly once, not within put. http_status 0: no answer, message says why. */
	void (*done)(void *context, int http_status, const char *message);
	void *context;
};

/* How calls are made; debuginfo_wire.h has the real one. */
struct debuginfo_transport {
	struct grpc_call *(*call)(void *context, const struct grpc_request *request);
	void (*cancel)(struct grpc_call *call);
	/* NULL: servers that want a PUT are left alone for a day, as are those whose URL gives an
	 * error. The handle is for cancel_put. */
	struct error *(*put)(void *context, const struct debuginfo_put *put, void **handle_out);
	void (*cancel_put)(void *handle);
	void *context;
};

/* What became of an attempt. Texts are borrowed for the call. */
struct debuginfo_event {
	enum {
		DEBUGINFO_EVENT_UPLOADED,
		DEBUGINFO_EVENT_KNOWN,	 /* the server had it already */
		DEBUGINFO_EVENT_REFUSED, /* by the server, or not worth sending */
		DEBUGINFO_EVENT_FAILED,	 /* for now */
	} kind;
	const struct build_id *id;
	uint64_t n_bytes; /* of DEBUGINFO_EVENT_UPLOADED */
	const char *text; /* why */
	int error_number; /* of explain.c; 0 = none */
	bool is_auth;	  /* who we are is refused */
};
/* Must not call the uploader. */
typedef void (*debuginfo_event_fn)(void *context, const struct debuginfo_event *event);

struct debuginfo_upload_config {
	struct debuginfo_transport transport;
	const struct clock *clock;   /* NULL = the system's */
	const char *state_file;	     /* NULL = nothing is remembered */
	uint64_t max_bytes;	     /* of one upload; 0 = 1,000,000,000, the server's default */
	uint64_t jitter_ns;	     /* longest wait before the first question; 0 = 30 s */
	uint32_t max_active;	     /* uploads under way; 0 = 2 */
	uint64_t seed;		     /* of the jitter */
	uint64_t retry_ns;	     /* wait after a first failure; 0 = 60 s */
	uint64_t timeout_ns;	     /* of a call that uploads nothing; 0 = 60 s */
	debuginfo_event_fn on_event; /* may be NULL */
	void *context;
};

struct debuginfo_upload;

/* The config's texts are copied. A state file that cannot be read is logged and begun anew. */
struct debuginfo_upload *debuginfo_upload_new(const struct debuginfo_upload_config *config);
/* Cancels what runs. */
void debuginfo_upload_free(struct debuginfo_upload *upload);

/* Whether an offer of this build-id would be taken now. */
bool debuginfo_upload_wants(const struct debuginfo_upload *upload, const struct build_id *id);
/* Takes fd in any case. */
void debuginfo_upload_offer(struct debuginfo_upload *upload, const struct build_id *id, int fd);

/* No further try for this build-id; what runs of it is cancelled. */
void debuginfo_upload_withdraw(struct debuginfo_upload *upload, const struct build_id *id);

/* Monotonic time of the next tick; UINT64_MAX: nothing waits for time. */
uint64_t debuginfo_upload_next_ns(const struct debuginfo_upload *upload);
void debuginfo_upload_tick(struct debuginfo_upload *upload);

enum debuginfo_state {
	DEBUGINFO_UNKNOWN,
	DEBUGINFO_PENDING,
	DEBUGINFO_DONE,
	DEBUGINFO_REFUSED,
};
enum debuginfo_state debuginfo_upload_state(const struct debuginfo_upload *upload,
					    const struct build_id *id);

struct debuginfo_upload_counts {
	uint64_t n_uploaded, n_uploaded_bytes;
	uint64_t n_known;    /* that the server had already */
	uint64_t n_refused;  /* by the server, or not worth sending */
	uint64_t n_failures; /* attempts that are tried again */
	char last_error[256];
};
void debuginfo_upload_get_counts(const struct debuginfo_upload *upload,
				 struct debuginfo_upload_counts *out);
