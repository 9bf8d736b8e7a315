/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/delivery_counts.h"

#include <string.h>

#include "base/mem.h"

void delivery_counts_init(struct delivery_counts *counts, size_t n_exporters)
{
	*counts = (struct delivery_counts){
		.n_exporters = n_exporters,
		.exporters = mem_zalloc(n_exporters, sizeof(*counts->exporters)),
		.earlier_samples = mem_zalloc(n_exporters, sizeof(*counts->earlier_samples)),
	};
}

void delivery_counts_fini(struct delivery_counts *counts)
{
	mem_free(counts->exporters);
	mem_free(counts->earlier_samples);
	*counts = (struct delivery_counts){0};
}

void delivery_counts_copy(const struct delivery_counts *from, struct delivery_counts *out)
{
	struct delivery_counts copy;
	delivery_counts_init(&copy, from->n_exporters);
	struct exporter_counts *exporters = copy.exporters;
	uint64_t *earlier = copy.earlier_samples;
	memcpy(exporters, from->exporters, from->n_exporters * sizeof(*exporters));
	memcpy(earlier, from->earlier_samples, from->n_exporters * sizeof(*earlier));
	copy = *from;
	copy.exporters = exporters;
	copy.earlier_samples = earlier;
	*out = copy;
}

uint64_t delivery_counts_lost(const struct exporter_counts *counts)
{
	uint64_t n = counts->refused_samples + counts->unencodable_samples;
	for (int i = 0; i < SPOOL_LOSS_N; i++)
		n += counts->queue.lost_samples[i];
	return n;
}

int64_t delivery_counts_missing(const struct delivery_counts *counts, size_t exporter)
{
	const struct exporter_counts *now = &counts->exporters[exporter];
	uint64_t known = now->sent_samples + now->queue.samples + delivery_counts_lost(now);
	return (int64_t)(counts->n_samples + counts->earlier_samples[exporter] - known);
}
