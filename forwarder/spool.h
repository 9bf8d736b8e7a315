/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The durable queue of one exporter: a folder with one immutable file for each window, holding
 * the window's requests ready to be sent, and beside it what of them was delivered.
 *
 *   DIRECTORY/EXPORTER/….q1          a window: written, fsynced, renamed, folder fsynced
 *   DIRECTORY/EXPORTER/….done1       what of it is over
 *   DIRECTORY/EXPORTER/retry/        refused ones that `spool retry` puts here are taken in again
 *   DIRECTORY/rejected/EXPORTER/     refused for good, with the reason
 *   DIRECTORY/corrupt/EXPORTER/      damaged
 *
 * Starting up reads names (spool_name.h), not contents. All calls are made by one thread at a time
 * and may block on the disk. Whatever fails (disk full, EIO, no descriptors) leaves what was
 * acknowledged in place, is counted, and is over when the disk is well again. What is acknowledged
 * leaves only delivered, refused, or by a bound (bytes, age, free space), which is counted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/backend.h"

enum spool_when_full {
	SPOOL_DROP_OLDEST,
	SPOOL_DROP_NEWEST,
	SPOOL_BLOCK, /* spool_commit says ERROR_AGAIN */
};

/* Shared by the spools of all exporters of one directory. */
struct spool_limits {
	uint64_t max_bytes;	     /* of this exporter; 0 = 1 GiB */
	uint64_t min_free_bytes;     /* of the file system; 0 = 5 % of it */
	uint64_t max_age_ns;	     /* 0 = never too old */
	uint64_t max_rejected_bytes; /* 0 = a tenth of max_bytes */
	enum spool_when_full when_full;
	/* Several processes may send to the same place: who finds the folder in use takes
	 * EXPORTER.2 and so on, and whoever comes later takes over what the others left. */
	bool is_shared;
};

struct spool;

/* Why requests left without being delivered. */
enum spool_loss {
	SPOOL_LOSS_FULL,
	SPOOL_LOSS_EXPIRED,
	SPOOL_LOSS_CORRUPT,
	SPOOL_LOSS_REJECTED,
	SPOOL_LOSS_DISK,    /* could not be written: never acknowledged */
	SPOOL_LOSS_REMOVED, /* its file was removed by hand */
	SPOOL_LOSS_N,
};

/* "full", "expired", … */
const char *spool_loss_name(enum spool_loss loss);

/* Requests of one window that are lost. */
struct spool_lost {
	uint64_t sequence;
	enum spool_loss loss;
	uint64_t n_requests, n_profiles, n_samples;
};
/* Must not call the spool. */
typedef void (*spool_lost_fn)(void *context, const struct spool_lost *lost);

struct spool_counts {
	uint64_t bytes, requests, profiles, samples, windows; /* that wait */
	uint64_t oldest_time_ns; /* when the oldest of them came; 0 = empty */
	uint64_t lost_requests[SPOOL_LOSS_N], lost_profiles[SPOOL_LOSS_N],
		lost_samples[SPOOL_LOSS_N];
};

/* Takes the folder for itself (ERROR_UNAVAILABLE: another process has it); cleans up what a crash
 * left half-written. kind is noted in the files; exporter names the folder, with '/' made '~'. */
struct error *spool_open(const char *directory, const char *exporter, enum exporter_kind kind,
			 const struct spool_limits *limits, const struct clock *clock,
			 struct spool **out) MUST_USE;
void spool_close(struct spool *spool);

/*
 * A window being written: requests are appended to a temporary file as they are encoded. What fails
 * on the way is told by commit; all of the window is lost then, and counted.
 */
struct spool_window;
struct spool_window *spool_begin(struct spool *spool);
/* What its requests will be known by (spool_request.sequence). */
uint64_t spool_window_sequence(const struct spool_window *window);
/* How many were appended without an error. */
uint32_t spool_window_requests(const struct spool_window *window);
void spool_append(struct spool_window *window, const uint8_t *message, size_t n,
		  const struct request_summary *summary);
/*
 * Durable once it returns without an error. ERROR_AGAIN (SPOOL_BLOCK and no room): the window stays
 * open. Any other outcome ends it; ERROR_LIMIT: dropped by a bound.
 */
struct error *spool_commit(struct spool_window *window) MUST_USE;
/*
 * As spool_commit for what replaces a request that is still there: bounds do not apply, and with an
 * error nothing is lost or counted.
 */
struct error *spool_commit_parts(struct spool_window *window) MUST_USE;
/* Ends a window that is not wanted; nothing is counted. */
void spool_abandon(struct spool_window *window);

/* A request that waits. */
struct spool_request {
	uint64_t sequence; /* of its window */
	uint32_t index;	   /* within the window */
	struct request_summary summary;
	uint64_t enqueued_ns; /* wall clock */
	size_t n;
};

/*
 * The oldest request that waits and is not taken; its message is appended to `message`. A taken
 * request is not handed out again until it is put back. error_no_entry when there is none.
 * Damaged ones are set aside and counted on the way.
 */
struct error *spool_take(struct spool *spool, struct spool_request *out,
			 struct buf *message) MUST_USE;
/* Delivered, or replaced by requests committed as a window of their own: remembered beside the
 * file, which goes with its last request. */
void spool_delivered(struct spool *spool, const struct spool_request *request);
/* Not now: it is the next to be taken again. */
void spool_put_back(struct spool *spool, const struct spool_request *request);
/* Refused for good: its message moves to rejected/ with the reason. With an error it is still
 * taken: put it back and try later. */
struct error *spool_reject(struct spool *spool, const struct spool_request *request,
			   const uint8_t *message, const char *reason) MUST_USE;
/* Drops what is too old, takes in what is to be tried again, retries what the disk refused. To be
 * called now and then. */
void spool_tend(struct spool *spool);
/* Tells each loss of what was acknowledged as it is counted; those of spool_open are in the counts
 * only. */
void spool_on_lost(struct spool *spool, spool_lost_fn on_lost, void *context);
uint64_t spool_capacity_bytes(const struct spool *spool);
void spool_get_counts(const struct spool *spool, struct spool_counts *out);
