/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an unwind table is made of: rules, each kept once, and rows that say from which address on
 * one holds. Filled in the order of addresses (cfi_source.h), written by unwind_table_writer.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/hash_map.h"
#include "symcache/unwind_table.h"

enum { UNWIND_RULE_NONE = 0 }; /* the rule for code that nothing is said of */

struct unwind_model_rule {
	struct unwind_rule rule;
	/* Of an x86-64 PLT, whose rule is rsp + 8 with nothing saved: from this byte of each
	 * 16-byte slot on the CFA is 8 more. 0 = another rule. */
	uint8_t plt_bound;
	uint32_t next; /* with the same hash */
};

struct unwind_row {
	uint64_t svma;
	uint32_t rule;
};

struct unwind_model {
	enum unwind_machine machine;
	uint8_t extra_register; /* what all rules tell of, 0 = none */
	struct unwind_model_rule *rules;
	uint32_t n_rules, rules_capacity;
	struct hash_map rules_by_hash; /* → index */
	struct unwind_row *rows;
	size_t n_rows, rows_capacity;
	struct buf expressions; /* u16 size and bytes of each */
	struct hash_map expressions_by_hash;
};

void unwind_model_init(struct unwind_model *model, enum unwind_machine machine);
void unwind_model_fini(struct unwind_model *model);

/* ERROR_LIMIT: more different rules than a table can have. */
struct error *unwind_model_rule(struct unwind_model *model, const struct unwind_rule *rule,
				uint8_t plt_bound, uint32_t *out) MUST_USE;
/* An offset for struct unwind_value. bytes passed unwind_expression_check. */
struct error *unwind_model_expression(struct unwind_model *model, const uint8_t *bytes, size_t n,
				      int32_t *out) MUST_USE;
/*
 * The rule holds from svma until the next row. svma never falls; the same again replaces. Rows that
 * change nothing are left out.
 */
struct error *unwind_model_row(struct unwind_model *model, uint64_t svma, uint32_t rule) MUST_USE;
