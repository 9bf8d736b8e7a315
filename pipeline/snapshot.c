/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"

enum { NS_PER_CENTISECOND = 10000000, TIME_BYTES = 32 };
#define NS_PER_S ((uint64_t)1000000000)

static void begin_part(struct snapshots *snapshots)
{
	snapshots->begin_wall_ns = clock_system.wall_ns(clock_system.context);
	snapshots->begin_ns = clock_system.monotonic_ns(clock_system.context);
}

void snapshots_open(struct snapshots *snapshots, const struct message *message,
		    struct pipeline *pipeline, const struct output *output, snapshot_write_fn write,
		    void *context)
{
	*snapshots = (struct snapshots){
		.message = message,
		.pipeline = pipeline,
		.output = output,
		.write = write,
		.context = context,
	};
	begin_part(snapshots);
}

/* YYYYMMDDhhmmsscc behind the path, local time and hundredths, as perf has it. */
static char *name_part(const char *path, uint64_t wall_ns)
{
	struct tm parts = {0};
	char text[TIME_BYTES];
	time_t seconds = (time_t)(wall_ns / NS_PER_S);
	localtime_r(&seconds, &parts);
	strftime(text, sizeof(text), "%Y%m%d%H%M%S", &parts);
	return mem_format("%s.%s%02u", path, text,
			  (unsigned)(wall_ns % NS_PER_S / NS_PER_CENTISECOND));
}

static char *name_free_part(const char *path)
{
	uint64_t wall_ns = clock_system.wall_ns(clock_system.context);
	char *name = name_part(path, wall_ns);
	while (access(name, F_OK) == 0) {
		mem_free(name);
		wall_ns += NS_PER_CENTISECOND;
		name = name_part(path, wall_ns);
	}
	return name;
}

/* A pipeline_call_fn. */
static struct error *write_part(void *context)
{
	struct snapshots *snapshots = context;
	struct error *err =
		snapshots->write(snapshots->context, &snapshots->spare, &snapshots->part);
	snapshots->part.is_written = !err;
	return err;
}

static void refuse(const struct snapshots *snapshots, const char *why)
{
	char *text = mem_format("no snapshot: %s; the recording goes on", why);
	message_warning(snapshots->message, 118, text, NULL);
	mem_free(text);
}

bool snapshots_take(struct snapshots *snapshots)
{
	const struct file_writer *writer = &snapshots->output->writer;
	if (writer->is_direct) {
		refuse(snapshots, "the output is no file that others could stand beside");
		return false;
	}
	struct error *err = output_open(&snapshots->spare, snapshots->output->path, true);
	if (err) {
		refuse(snapshots, error_text(err));
		error_free(err);
		return false;
	}
	uint64_t begin_wall_ns = snapshots->begin_wall_ns, begin_ns = snapshots->begin_ns;
	begin_part(snapshots);
	snapshots->part = (struct snapshot_part){
		.path = name_free_part(writer->path),
		.begin_wall_ns = begin_wall_ns,
		.duration_ns = snapshots->begin_ns - begin_ns,
	};
	snapshots->is_pending = true;
	pipeline_call(snapshots->pipeline, write_part, snapshots);
	return true;
}

static void end_part(struct snapshots *snapshots)
{
	output_close(&snapshots->spare);
	mem_free(TAKE(snapshots->part.path));
	snapshots->is_pending = false;
}

void snapshots_settle(struct snapshots *snapshots)
{
	const struct snapshot_part *part = &snapshots->part;
	if (!snapshots->is_pending)
		return;
	/* An error ends the recording, which says it. */
	if (part->is_written) {
		snapshots->n_parts++;
		snapshots->n_samples += part->n_samples;
		message_note(snapshots->message,
			     "snapshot: wrote %s: %" PRIu64 " samples in %.1f s; going on",
			     part->path, part->n_samples, (double)part->duration_ns / 1e9);
	}
	end_part(snapshots);
}

void snapshots_close(struct snapshots *snapshots)
{
	end_part(snapshots);
}
