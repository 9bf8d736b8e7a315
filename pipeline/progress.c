/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/progress.h"

#include <stdio.h>

#include "base/clock.h"

enum { NS_PER_S = 1000000000, PATIENCE_NS = NS_PER_S, REFRESH_NS = NS_PER_S / 5 };

static uint64_t now(void)
{
	return clock_system.monotonic_ns(clock_system.context);
}

void progress_begin(struct progress *progress, bool is_on, enum progress_unit unit,
		    const char *what)
{
	*progress = (struct progress){.what = what, .unit = unit, .is_on = is_on};
	progress->begin_ns = progress->last_ns = now();
}

static void format_amount(enum progress_unit unit, double n, char *out, size_t size)
{
	if (unit == PROGRESS_BYTES)
		snprintf(out, size, "%.1f MiB", n / (1 << 20));
	else if (unit == PROGRESS_TIME)
		snprintf(out, size, "%.0f s", n / NS_PER_S);
	else
		snprintf(out, size, "%.0f", n);
}

static void draw(const struct progress *progress, uint64_t done, uint64_t total, double seconds)
{
	char amount[32], of[48] = "", rate[48] = "", left[32] = "";
	format_amount(progress->unit, (double)done, amount, sizeof(amount));
	if (total >= done && total) {
		char whole[32];
		format_amount(progress->unit, (double)total, whole, sizeof(whole));
		snprintf(of, sizeof(of), " of %s", whole);
		double rest = (double)(total - done);
		if (progress->unit == PROGRESS_TIME)
			snprintf(left, sizeof(left), ", %.0f s left", rest / NS_PER_S);
		else if (done)
			snprintf(left, sizeof(left), ", %.0f s left",
				 seconds * rest / (double)done);
	}
	if (progress->unit != PROGRESS_TIME) {
		char each[32];
		format_amount(progress->unit, (double)done / seconds, each, sizeof(each));
		snprintf(rate, sizeof(rate), ", %s/s", each);
	}
	fprintf(stderr, "\r\033[Kperfpipe: %s %s%s%s%s", progress->what, amount, of, rate, left);
	fflush(stderr);
}

void progress_update(void *context, uint64_t done, uint64_t total)
{
	struct progress *progress = context;
	if (!progress->is_on)
		return;
	uint64_t now_ns = now();
	if (now_ns - progress->begin_ns < PATIENCE_NS || now_ns - progress->last_ns < REFRESH_NS)
		return;
	progress->last_ns = now_ns;
	progress->is_shown = true;
	draw(progress, done, total, (double)(now_ns - progress->begin_ns) / NS_PER_S);
}

void progress_end(struct progress *progress)
{
	if (progress->is_shown)
		fputs("\r\033[K", stderr);
	progress->is_shown = false;
}
