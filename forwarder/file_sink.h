/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporter that sends nothing: a folder of pprof files, one for each profile, which appear
 * whole or not at all; names sort by time; the link `latest` leads to the newest; the oldest go
 * when the folder's bound is reached.
 */
#pragma once

#include "base/compiler.h"
#include "base/error.h"
#include "forwarder/backend.h"
#include "forwarder/exporter.h"
#include "forwarder/exporter_config.h"

struct file_sink;

/* config is borrowed until close. Makes the folder. */
struct error *file_sink_open(const struct exporter_config *config, struct file_sink **out) MUST_USE;
void file_sink_close(struct file_sink *sink); /* accepts NULL */
/* Writes the file; what fails is counted and told by commit. */
void file_sink_put(struct file_sink *sink, const struct outgoing_profile *outgoing);
/* Makes what was put durable, renews `latest`, removes what is beyond the bound. */
struct error *file_sink_commit(struct file_sink *sink) MUST_USE;
/* sent_… are files written; queue.lost_…[SPOOL_LOSS_DISK] what could not be. */
void file_sink_get_counts(const struct file_sink *sink, struct exporter_counts *out);
