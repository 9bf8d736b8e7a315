/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A spool seen from outside, while another process may use it: what waits, what was refused, what
 * is damaged; and what people may do about it. What vanishes meanwhile is passed over.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/spool_file.h"
#include "forwarder/spool_name.h"

enum spool_list_kind { SPOOL_LIST_WAITING, SPOOL_LIST_REFUSED, SPOOL_LIST_DAMAGED };

struct spool_list_entry {
	enum spool_list_kind kind;
	char exporter[SPOOL_FOLDER_BYTES];
	const char *path, *folder; /* of the file; borrowed */
	struct spool_name name;
	uint32_t n_over; /* requests of it that are delivered or refused */
};

/* Walks by kind, exporter, age. NULL exporter = all. An error of found ends the walk. */
typedef struct error *(*spool_list_fn)(void *context, const struct spool_list_entry *entry);
struct error *spool_list_walk(const char *directory, const char *exporter, spool_list_fn found,
			      void *context) MUST_USE;

/* The reason that stands in a refused file, appended with a 0; empty when it cannot be read. */
void spool_list_reason(const char *path, struct buf *reason);

/* Moves a refused file to where its exporter's spool takes it in again. */
struct error *spool_list_retry(const char *directory,
			       const struct spool_list_entry *entry) MUST_USE;
/* Removes a file of any kind; its spool counts it as removed by hand. */
struct error *spool_list_drop(const struct spool_list_entry *entry) MUST_USE;
