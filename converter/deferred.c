/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/deferred.h"

#include "base/hash_map.h"
#include "base/mem.h"

static uint32_t key_of(uint32_t tid, uint64_t cookie)
{
	return (uint32_t)hash_mix(cookie ^ (uint64_t)tid << 32);
}

static void finish_one(struct deferred_table *table, struct deferred_sample *item,
		       const uint8_t *chain, uint64_t n_chain, deferred_finish_fn finish,
		       void *context)
{
	finish(context, &item->record, chain, n_chain);
	mem_free((uint8_t *)item->record.bytes);
	item->record.bytes = NULL;
	table->n_waiting--;
}

/* Moves those that wait together, in their order. */
static void squeeze(struct deferred_table *table)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < table->n; i++) {
		uint32_t from = (table->first + i) % DEFERRED_MAX;
		uint32_t to = (table->first + kept) % DEFERRED_MAX;
		if (!table->items[from].record.bytes)
			continue;
		table->items[to] = table->items[from];
		table->keys[to] = table->keys[from];
		kept++;
	}
	table->n = kept;
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
	/* With a quarter of it free, squeezing costs each added sample a few moves. */
	if (table->n == DEFERRED_MAX && table->n_waiting <= DEFERRED_MAX / 4 * 3) {
		squeeze(table);
	} else if (table->n == DEFERRED_MAX) {
		finish_one(table, &table->items[table->first], NULL, 0, finish, context);
		trim(table);
	}
	uint32_t at = (table->first + table->n++) % DEFERRED_MAX;
	struct deferred_sample *item = &table->items[at];
	*item = (struct deferred_sample){.record = *record, .cookie = cookie, .tid = tid};
	item->record.bytes = mem_copy(record->bytes, record->size);
	table->keys[at] = key_of(tid, cookie);
	table->n_waiting++;
}

void deferred_complete(struct deferred_table *table, uint32_t tid, uint64_t cookie,
		       const uint8_t *chain, uint64_t n_chain, deferred_finish_fn finish,
		       void *context)
{
	uint32_t key = key_of(tid, cookie);
	for (uint32_t i = 0; i < table->n; i++) {
		uint32_t at = (table->first + i) % DEFERRED_MAX;
		struct deferred_sample *item = &table->items[at];
		if (table->keys[at] == key && item->record.bytes && item->tid == tid &&
		    item->cookie == cookie)
			finish_one(table, item, chain, n_chain, finish, context);
	}
	trim(table);
}

void deferred_flush(struct deferred_table *table, deferred_finish_fn finish, void *context)
{
	for (uint32_t i = 0; i < table->n; i++) {
		struct deferred_sample *item = &table->items[(table->first + i) % DEFERRED_MAX];
		if (item->record.bytes)
			finish_one(table, item, NULL, 0, finish, context);
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
