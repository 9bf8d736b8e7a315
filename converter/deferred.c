/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/deferred.h"

#include "base/mem.h"

static void finish_one(struct deferred_sample *item, const uint8_t *chain, uint64_t n_chain,
		       deferred_finish_fn finish, void *context)
{
	finish(context, &item->record, chain, n_chain);
	mem_free((uint8_t *)item->record.bytes);
	item->record.bytes = NULL;
}

/* Those taken out of the middle leave holes; holes at the front go at once. */
static void trim(struct deferred_table *table)
{
	while (table->n && !table->items[table->first].record.bytes) {
		table->first = (table->first + 1) % DEFERRED_MAX;
		table->n--;
	}
}

void deferred_add(struct deferred_table *table, const struct perf_record *record, uint32_t tid,
		  uint64_t cookie, deferred_finish_fn finish, void *context)
{
	if (table->n == DEFERRED_MAX) {
		finish_one(&table->items[table->first], NULL, 0, finish, context);
		trim(table);
	}
	struct deferred_sample *item = &table->items[(table->first + table->n++) % DEFERRED_MAX];
	*item = (struct deferred_sample){.record = *record, .cookie = cookie, .tid = tid};
	item->record.bytes = mem_copy(record->bytes, record->size);
}

void deferred_complete(struct deferred_table *table, uint32_t tid, uint64_t cookie,
		       const uint8_t *chain, uint64_t n_chain, deferred_finish_fn finish,
		       void *context)
{
	for (uint32_t i = 0; i < table->n; i++) {
		struct deferred_sample *item = &table->items[(table->first + i) % DEFERRED_MAX];
		if (item->record.bytes && item->tid == tid && item->cookie == cookie)
			finish_one(item, chain, n_chain, finish, context);
	}
	trim(table);
}

void deferred_flush(struct deferred_table *table, deferred_finish_fn finish, void *context)
{
	for (uint32_t i = 0; i < table->n; i++) {
		struct deferred_sample *item = &table->items[(table->first + i) % DEFERRED_MAX];
		if (item->record.bytes)
			finish_one(item, NULL, 0, finish, context);
	}
	table->first = table->n = 0;
}

static void drop(void *context, const struct perf_record *record, const uint8_t *chain,
		 uint64_t n_chain)
{
	(void)context;
	(void)record;
	(void)chain;
	(void)n_chain;
}

void deferred_fini(struct deferred_table *table)
{
	deferred_flush(table, drop, NULL);
}
