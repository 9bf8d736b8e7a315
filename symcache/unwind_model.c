/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/unwind_model.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "symcache/unwind_table_layout.h"

void unwind_model_init(struct unwind_model *model, enum unwind_machine machine)
{
	*model = (struct unwind_model){.machine = machine};
	hash_map_init(&model->rules_by_hash);
	hash_map_init(&model->expressions_by_hash);
	buf_init(&model->expressions, UNWIND_MAX_EXPRESSION_BYTES);
	model->rules_capacity = 64;
	model->rules = mem_zalloc(model->rules_capacity, sizeof(*model->rules));
	model->n_rules = 1; /* UNWIND_RULE_NONE */
}

void unwind_model_fini(struct unwind_model *model)
{
	hash_map_fini(&model->rules_by_hash);
	hash_map_fini(&model->expressions_by_hash);
	buf_fini(&model->expressions);
	mem_free(model->rules);
	mem_free(model->rows);
	*model = (struct unwind_model){0};
}

static uint64_t hash_bytes(const void *bytes, size_t n, uint64_t seed)
{
	const uint8_t *p = bytes;
	uint64_t hash = hash_mix(seed + n);
	for (; n >= sizeof(uint64_t); n -= sizeof(uint64_t), p += sizeof(uint64_t)) {
		uint64_t word;
		memcpy(&word, p, sizeof(word));
		hash = hash_mix(hash ^ word);
	}
	uint64_t rest = 0;
	memcpy(&rest, p, n);
	return hash_mix(hash ^ rest);
}

static struct unwind_value clean_value(struct unwind_value value)
{
	struct unwind_value out;
	memset(&out, 0, sizeof(out)); /* its padding is written out */
	out.kind = value.kind;
	out.register_number = value.kind == UNWIND_REGISTER ? value.register_number : 0;
	out.offset = value.kind == UNWIND_UNDEFINED || value.kind == UNWIND_SAME ? 0 : value.offset;
	return out;
}

struct error *unwind_model_rule(struct unwind_model *model, const struct unwind_rule *rule,
				uint8_t plt_bound, uint32_t *out)
{
	struct unwind_rule clean;
	memset(&clean, 0, sizeof(clean));
	clean.cfa = clean_value(rule->cfa);
	clean.return_address = clean_value(rule->return_address);
	clean.frame_pointer = clean_value(rule->frame_pointer);
	clean.extra = clean_value(rule->extra);
	clean.extra_register = rule->extra_register;
	clean.flags = rule->flags;
	bool is_new;
	uint64_t *first = hash_map_put(&model->rules_by_hash,
				       hash_bytes(&clean, sizeof(clean), plt_bound), &is_new);
	for (uint32_t i = is_new ? 0 : (uint32_t)*first; i; i = model->rules[i].next) {
		if (model->rules[i].plt_bound == plt_bound &&
		    memcmp(&model->rules[i].rule, &clean, sizeof(clean)) == 0) {
			*out = i;
			return NULL;
		}
	}
	if (model->n_rules == UNWIND_MAX_RULES)
		return error_new(ERROR_LIMIT, "unwind table: more than %u different rules",
				 UNWIND_MAX_RULES);
	if (model->n_rules == model->rules_capacity) {
		model->rules_capacity *= 2;
		model->rules =
			mem_realloc(model->rules, model->rules_capacity, sizeof(*model->rules));
	}
	struct unwind_model_rule *slot = &model->rules[model->n_rules];
	memset(slot, 0, sizeof(*slot));
	memcpy(&slot->rule, &clean, sizeof(clean));
	slot->plt_bound = plt_bound;
	slot->next = is_new ? 0 : (uint32_t)*first;
	*out = model->n_rules;
	*first = model->n_rules++;
	return NULL;
}

struct error *unwind_model_expression(struct unwind_model *model, const uint8_t *bytes, size_t n,
				      int32_t *out)
{
	assert(n <= UINT16_MAX);
	struct buf *pool = &model->expressions;
	bool is_new;
	uint64_t *at = hash_map_put(&model->expressions_by_hash, hash_bytes(bytes, n, 0), &is_new);
	uint16_t size = (uint16_t)n;
	/* One of another's hash is stored anew each time: nothing worse than room. */
	if (!is_new && memcmp(pool->data + *at, &size, sizeof(size)) == 0 &&
	    memcmp(pool->data + *at + sizeof(size), bytes, n) == 0) {
		*out = (int32_t)*at;
		return NULL;
	}
	*at = pool->size;
	*out = (int32_t)pool->size;
	struct error *err = buf_append(pool, &size, sizeof(size));
	return err ? err : buf_append(pool, bytes, n);
}

struct error *unwind_model_row(struct unwind_model *model, uint64_t svma, uint32_t rule)
{
	assert(!model->n_rows || svma >= model->rows[model->n_rows - 1].svma);
	if (model->n_rows && model->rows[model->n_rows - 1].svma == svma)
		model->n_rows--;
	uint32_t last = model->n_rows ? model->rows[model->n_rows - 1].rule : UNWIND_RULE_NONE;
	if (rule == last)
		return NULL;
	if (model->n_rows == UNWIND_MAX_ROWS)
		return error_new(ERROR_LIMIT, "unwind table: more than %u rows", UNWIND_MAX_ROWS);
	if (model->n_rows == model->rows_capacity) {
		model->rows_capacity = model->rows_capacity ? 2 * model->rows_capacity : 1024;
		model->rows = mem_realloc(model->rows, model->rows_capacity, sizeof(*model->rows));
	}
	model->rows[model->n_rows++] = (struct unwind_row){.svma = svma, .rule = rule};
	return NULL;
}
