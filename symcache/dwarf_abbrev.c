/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/dwarf_abbrev.h"

#include <stdlib.h>

#include "base/mem.h"
#include "symcache/dwarf_constants.h"
#include "symcache/dwarf_leb.h"

enum { NO_SLOT = DWARF_SLOTS };

int dwarf_abbrev_form_bytes(uint64_t form, const struct dwarf_shape *shape)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_flag:
	case DW_FORM_ref1:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return shape->address_bytes;
	case DW_FORM_ref_addr:
		return shape->is_version_2 ? shape->address_bytes : shape->offset_bytes;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return shape->offset_bytes;
	default:
		return -1;
	}
}

bool dwarf_abbrev_is_form_known(uint64_t form)
{
	return (form >= DW_FORM_addr && form <= DW_FORM_addrx4 && form != 0x02) ||
	       form == DW_FORM_GNU_addr_index || form == DW_FORM_GNU_str_index ||
	       form == DW_FORM_GNU_ref_alt || form == DW_FORM_GNU_strp_alt;
}

static enum dwarf_abbrev_kind kind_of(uint64_t tag)
{
	switch (tag) {
	case DW_TAG_compile_unit:
	case DW_TAG_partial_unit:
	case DW_TAG_type_unit:
	case DW_TAG_skeleton_unit:
		return DWARF_ABBREV_UNIT;
	case DW_TAG_subprogram:
		return DWARF_ABBREV_FUNCTION;
	case DW_TAG_inlined_subroutine:
		return DWARF_ABBREV_INLINED;
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
		return DWARF_ABBREV_TYPE;
	case DW_TAG_array_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_subroutine_type:
	case DW_TAG_call_site:
	case DW_TAG_GNU_call_site:
	case DW_TAG_GNU_template_parameter_pack:
	case DW_TAG_GNU_formal_parameter_pack:
		return DWARF_ABBREV_DATA;
	default:
		return DWARF_ABBREV_OTHER;
	}
}

static int slot_of_function(uint64_t attribute)
{
	switch (attribute) {
	case DW_AT_low_pc:
		return DWARF_SLOT_LOW_PC;
	case DW_AT_high_pc:
		return DWARF_SLOT_HIGH_PC;
	case DW_AT_ranges:
		return DWARF_SLOT_RANGES;
	case DW_AT_abstract_origin:
		return DWARF_SLOT_ORIGIN;
	case DW_AT_specification:
		return DWARF_SLOT_SPECIFICATION;
	case DW_AT_name:
		return DWARF_SLOT_NAME;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		return DWARF_SLOT_LINKAGE_NAME;
	case DW_AT_decl_file:
		return DWARF_SLOT_DECL_FILE;
	case DW_AT_decl_line:
		return DWARF_SLOT_DECL_LINE;
	case DW_AT_call_file:
		return DWARF_SLOT_CALL_FILE;
	case DW_AT_call_line:
		return DWARF_SLOT_CALL_LINE;
	case DW_AT_call_column:
		return DWARF_SLOT_CALL_COLUMN;
	default:
		return NO_SLOT;
	}
}

static int slot_of_unit(uint64_t attribute)
{
	switch (attribute) {
	case DW_AT_low_pc:
		return DWARF_SLOT_LOW_PC;
	case DW_AT_name:
		return DWARF_SLOT_NAME;
	case DW_AT_stmt_list:
		return DWARF_SLOT_STMT_LIST;
	case DW_AT_comp_dir:
		return DWARF_SLOT_COMP_DIR;
	case DW_AT_str_offsets_base:
		return DWARF_SLOT_STR_OFFSETS_BASE;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		return DWARF_SLOT_ADDR_BASE;
	case DW_AT_rnglists_base:
		return DWARF_SLOT_RNGLISTS_BASE;
	case DW_AT_GNU_ranges_base:
		return DWARF_SLOT_GNU_RANGES_BASE;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		return DWARF_SLOT_DWO_NAME;
	case DW_AT_GNU_dwo_id:
		return DWARF_SLOT_DWO_ID;
	default:
		return NO_SLOT;
	}
}

static int slot_of(const struct dwarf_abbrev *abbrev, uint64_t attribute)
{
	if (attribute == DW_AT_sibling)
		return abbrev->has_children ? DWARF_SLOT_SIBLING : NO_SLOT;
	switch (abbrev->kind) {
	case DWARF_ABBREV_FUNCTION:
	case DWARF_ABBREV_INLINED:
		return slot_of_function(attribute);
	case DWARF_ABBREV_UNIT:
		return slot_of_unit(attribute);
	default:
		return NO_SLOT;
	}
}

static void grow_steps(struct dwarf_abbrev_table *table)
{
	table->steps_capacity += table->steps_capacity / 2 + 256;
	table->steps = mem_realloc(table->steps, table->steps_capacity, sizeof(*table->steps));
}

static void add_step(struct dwarf_abbrev_table *table, struct dwarf_step step)
{
	if (table->n_steps == table->steps_capacity)
		grow_steps(table);
	table->steps[table->n_steps++] = step;
}

/* Attributes and forms of one declaration. */
static bool read_attributes(struct dwarf_abbrev_table *table, struct dwarf_abbrev *abbrev,
			    struct cursor *c, const struct dwarf_shape *shape)
{
	uint32_t skip = 0;
	abbrev->first_step = table->n_steps;
	for (int i = 0; i < DWARF_ABBREV_MAX_ATTRIBUTES; i++) {
		uint64_t attribute = dwarf_leb_unsigned(c);
		uint64_t form = dwarf_leb_unsigned(c);
		int64_t constant = form == DW_FORM_implicit_const ? dwarf_leb_signed(c) : 0;
		if (!cursor_is_ok(c))
			return false;
		if (!attribute && !form) {
			abbrev->n_steps = (uint16_t)(table->n_steps - abbrev->first_step);
			abbrev->tail = (uint16_t)skip;
			return true;
		}
		if (!dwarf_abbrev_is_form_known(form))
			return false;
		int slot = slot_of(abbrev, attribute);
		int bytes = dwarf_abbrev_form_bytes(form, shape);
		if (slot == NO_SLOT && bytes >= 0) {
			skip += (uint32_t)bytes;
			continue;
		}
		if (slot == DWARF_SLOT_HIGH_PC || slot == DWARF_SLOT_RANGES)
			abbrev->has_code = true;
		add_step(table, (struct dwarf_step){.skip = skip,
						    .form = (uint16_t)form,
						    .op = slot == NO_SLOT ? DWARF_STEP_SKIP
									  : DWARF_STEP_READ,
						    .slot = (uint8_t)slot,
						    .constant = constant});
		skip = 0;
	}
	return false;
}

static int compare_codes(const void *left, const void *right)
{
	uint64_t a = ((const struct dwarf_abbrev *)left)->code;
	uint64_t b = ((const struct dwarf_abbrev *)right)->code;
	return a < b ? -1 : a > b;
}

static bool read_declarations(struct dwarf_abbrev_table *table, struct cursor *c,
			      const struct dwarf_shape *shape)
{
	for (;;) {
		uint64_t code = dwarf_leb_unsigned(c);
		if (!cursor_is_ok(c))
			return false;
		if (!code)
			return true;
		uint64_t tag = dwarf_leb_unsigned(c);
		struct dwarf_abbrev abbrev = {
			.code = code,
			.tag = tag <= UINT16_MAX ? (uint16_t)tag : 0,
			.kind = (uint8_t)kind_of(tag),
			.has_children = cursor_u8(c) != 0,
		};
		if (table->n == DWARF_ABBREV_MAX_DECLARATIONS ||
		    !read_attributes(table, &abbrev, c, shape))
			return false;
		if (table->n == table->capacity) {
			table->capacity += table->capacity / 2 + 64;
			table->items =
				mem_realloc(table->items, table->capacity, sizeof(*table->items));
		}
		table->is_dense = table->is_dense && code == table->n + 1;
		table->items[table->n++] = abbrev;
	}
}

bool dwarf_abbrev_read(struct dwarf_abbrev_table *table, struct cursor c,
		       const struct dwarf_shape *shape)
{
	*table = (struct dwarf_abbrev_table){.is_dense = true};
	/* Also for declarations without any: who walks them has a place to begin. */
	grow_steps(table);
	const uint8_t *begin = c.next;
	if (!read_declarations(table, &c, shape)) {
		dwarf_abbrev_fini(table);
		return false;
	}
	table->n_bytes = (uint64_t)(c.next - begin);
	if (!table->is_dense)
		qsort(table->items, table->n, sizeof(*table->items), compare_codes);
	return true;
}

void dwarf_abbrev_fini(struct dwarf_abbrev_table *table)
{
	mem_free(table->items);
	mem_free(table->steps);
	*table = (struct dwarf_abbrev_table){0};
}

const struct dwarf_abbrev *dwarf_abbrev_find_slow(const struct dwarf_abbrev_table *table,
						  uint64_t code)
{
	struct dwarf_abbrev key = {.code = code};
	return table->n ? bsearch(&key, table->items, table->n, sizeof(key), compare_codes) : NULL;
}
