/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/dwarf_unit.h"

#include "symcache/dwarf_leb.h"

static uint64_t read_offset(const struct dwarf_unit *unit, struct cursor *c)
{
	return unit->shape.offset_bytes == 8 ? cursor_u64(c) : cursor_u32(c);
}

static void read_header_5(struct dwarf_unit *unit, struct cursor *c)
{
	unit->type = cursor_u8(c);
	unit->shape.address_bytes = cursor_u8(c);
	unit->abbrev_offset = read_offset(unit, c);
	switch (unit->type) {
	case DW_UT_skeleton:
	case DW_UT_split_compile:
		unit->dwo_id = cursor_u64(c);
		break;
	case DW_UT_type:
	case DW_UT_split_type:
		cursor_skip(c, 8);
		(void)read_offset(unit, c);
		break;
	default:
		break;
	}
}

bool dwarf_unit_read_header(struct dwarf_unit *unit, struct cursor *c, uint64_t *end_out)
{
	*unit = (struct dwarf_unit){.offset = cursor_position(c)};
	*end_out = 0;
	uint64_t length = cursor_u32(c);
	unit->shape.offset_bytes = 4;
	if (length == UINT32_MAX) {
		length = cursor_u64(c);
		unit->shape.offset_bytes = 8;
	} else if (length >= 0xfffffff0) {
		return false;
	}
	if (!cursor_is_ok(c) || length > UINT64_MAX - cursor_position(c))
		return false;
	unit->end = cursor_position(c) + length;
	*end_out = unit->end;
	unit->version = 0;
	uint16_t version = cursor_u16(c);
	if (version < 2 || version > 5)
		return false;
	unit->version = (uint8_t)version;
	unit->shape.is_version_2 = version == 2;
	if (version == 5) {
		read_header_5(unit, c);
	} else {
		unit->type = DW_UT_compile;
		unit->abbrev_offset = read_offset(unit, c);
		unit->shape.address_bytes = cursor_u8(c);
	}
	unit->first_die = cursor_position(c);
	return cursor_is_ok(c) && unit->first_die <= unit->end &&
	       (unit->shape.address_bytes == 4 || unit->shape.address_bytes == 8);
}

static uint64_t read_u24(struct cursor *c)
{
	const uint8_t *p = cursor_bytes(c, 3);
	if (!p)
		return 0;
	return c->is_swapped ? (uint64_t)p[0] << 16 | (uint64_t)p[1] << 8 | p[2]
			     : (uint64_t)p[2] << 16 | (uint64_t)p[1] << 8 | p[0];
}

void dwarf_unit_skip_form(const struct dwarf_shape *shape, uint64_t form, struct cursor *c)
{
	/* Most of what has no fixed size. */
	if (form == DW_FORM_exprloc) {
		cursor_skip(c, dwarf_leb_unsigned(c));
		return;
	}
	int bytes = dwarf_abbrev_form_bytes(form, shape);
	if (bytes >= 0) {
		cursor_skip(c, (size_t)bytes);
		return;
	}
	switch (form) {
	case DW_FORM_block:
		cursor_skip(c, dwarf_leb_unsigned(c));
		break;
	case DW_FORM_block1:
		cursor_skip(c, cursor_u8(c));
		break;
	case DW_FORM_block2:
		cursor_skip(c, cursor_u16(c));
		break;
	case DW_FORM_block4:
		cursor_skip(c, cursor_u32(c));
		break;
	case DW_FORM_string:
		(void)cursor_string(c, SIZE_MAX);
		break;
	case DW_FORM_indirect: {
		uint64_t real = dwarf_leb_unsigned(c);
		/* It may not be indirect again, nor a constant that only a declaration holds. */
		if (real == DW_FORM_indirect || real == DW_FORM_implicit_const ||
		    !dwarf_abbrev_is_form_known(real))
			c->is_bad = true;
		else
			dwarf_unit_skip_form(shape, real, c);
		break;
	}
	default:
		(void)dwarf_leb_unsigned(c);
		break;
	}
}

uint64_t dwarf_unit_read_form(const struct dwarf_shape *shape, uint64_t form, struct cursor *c)
{
	uint64_t position = cursor_position(c);
	switch (form) {
	case DW_FORM_sdata:
		return (uint64_t)dwarf_leb_signed(c);
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		return dwarf_leb_unsigned(c);
	case DW_FORM_flag_present:
		return 1;
	case DW_FORM_string:
	case DW_FORM_block:
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
	case DW_FORM_exprloc:
	case DW_FORM_data16:
		dwarf_unit_skip_form(shape, form, c);
		return position;
	default:
		break;
	}
	switch (dwarf_abbrev_form_bytes(form, shape)) {
	case 1:
		return cursor_u8(c);
	case 2:
		return cursor_u16(c);
	case 3:
		return read_u24(c);
	case 4:
		return cursor_u32(c);
	case 8:
		return cursor_u64(c);
	default:
		dwarf_unit_skip_form(shape, form, c);
		return 0;
	}
}

static bool is_unit_reference(uint64_t form)
{
	return form >= DW_FORM_ref1 && form <= DW_FORM_ref_udata;
}

void dwarf_unit_read_values(const struct dwarf_unit *unit, const struct dwarf_abbrev *abbrev,
			    struct cursor *c, struct dwarf_values *out)
{
	const struct dwarf_step *step = &unit->abbrevs->steps[abbrev->first_step];
	out->present = 0;
	for (unsigned i = 0; i < abbrev->n_steps; i++, step++) {
		cursor_skip(c, step->skip);
		if (step->op == DWARF_STEP_SKIP) {
			dwarf_unit_skip_form(&unit->shape, step->form, c);
			continue;
		}
		uint64_t form = step->form;
		if (form == DW_FORM_indirect) {
			form = dwarf_leb_unsigned(c);
			if (form == DW_FORM_indirect || form == DW_FORM_implicit_const ||
			    !dwarf_abbrev_is_form_known(form)) {
				c->is_bad = true;
				return;
			}
		}
		uint64_t value = form == DW_FORM_implicit_const
					 ? (uint64_t)step->constant
					 : dwarf_unit_read_form(&unit->shape, form, c);
		if (is_unit_reference(form))
			value += unit->offset;
		if (dwarf_values_have(out, step->slot))
			continue;
		out->present |= 1u << step->slot;
		out->forms[step->slot] = (uint16_t)form;
		out->items[step->slot] = value;
	}
	cursor_skip(c, abbrev->tail);
}
