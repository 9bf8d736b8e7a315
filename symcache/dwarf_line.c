/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/dwarf_line.h"

#include <string.h>

#include "base/mem.h"
#include "symcache/dwarf_constants.h"
#include "symcache/dwarf_leb.h"

enum { LENGTH_BYTES = 12 };

static bool add_name(struct dwarf_line_names *names, const char *bytes, size_t n, uint64_t folder)
{
	if (names->n == DWARF_LINE_MAX_FILES || n > DWARF_LINE_MAX_PATH_BYTES)
		return false;
	if (names->n == names->capacity) {
		names->capacity += names->capacity + 32;
		names->items = mem_realloc(names->items, names->capacity, sizeof(*names->items));
	}
	names->items[names->n++] = (struct dwarf_line_name){
		.bytes = bytes,
		.n = (uint32_t)n,
		.folder = folder <= UINT32_MAX ? (uint32_t)folder : UINT32_MAX,
		.id = UINT32_MAX,
	};
	return true;
}

/* Name, folder, time, size. False at the empty name that ends the list. */
static bool read_old_file(struct dwarf_line_table *table, struct cursor *c)
{
	const char *name = cursor_string(c, SIZE_MAX);
	if (!name || !*name)
		return false;
	uint64_t folder = dwarf_leb_unsigned(c);
	(void)dwarf_leb_unsigned(c);
	(void)dwarf_leb_unsigned(c);
	return cursor_is_ok(c) && add_name(&table->files, name, strlen(name), folder);
}

static bool read_old_names(struct dwarf_line_table *table, struct cursor *c)
{
	const char *folder;
	while ((folder = cursor_string(c, SIZE_MAX)) && *folder) {
		if (!add_name(&table->folders, folder, strlen(folder), 0))
			return false;
	}
	while (cursor_is_ok(c) && read_old_file(table, c))
		;
	return cursor_is_ok(c);
}

struct column {
	uint64_t content, form;
};

/* One entry of a table of names of version 5. */
static bool read_entry(struct dwarf_info *info, const struct dwarf_unit *unit,
		       const struct column *columns, unsigned n_columns, struct cursor *c,
		       struct dwarf_line_names *names)
{
	struct dwarf_text text = {.bytes = ""};
	uint64_t folder = 0;
	for (unsigned i = 0; i < n_columns; i++) {
		uint64_t form = columns[i].form;
		if (columns[i].content == DW_LNCT_path && form == DW_FORM_string) {
			text.bytes = cursor_string(c, SIZE_MAX);
			if (!text.bytes)
				return false;
			text.n = strlen(text.bytes);
		} else if (columns[i].content == DW_LNCT_path) {
			uint64_t value = dwarf_unit_read_form(&unit->shape, form, c);
			if (!dwarf_info_string(info, unit, form, value, &text))
				return false;
		} else if (columns[i].content == DW_LNCT_directory_index) {
			folder = dwarf_unit_read_form(&unit->shape, form, c);
		} else {
			dwarf_unit_skip_form(&unit->shape, form, c);
		}
	}
	return cursor_is_ok(c) && add_name(names, text.bytes, text.n, folder);
}

static bool read_names(struct dwarf_info *info, const struct dwarf_unit *unit, struct cursor *c,
		       struct dwarf_line_names *names)
{
	struct column columns[DWARF_LINE_MAX_FORMATS];
	unsigned n_columns = cursor_u8(c);
	if (n_columns > DWARF_LINE_MAX_FORMATS)
		return false;
	for (unsigned i = 0; i < n_columns; i++) {
		columns[i].content = dwarf_leb_unsigned(c);
		columns[i].form = dwarf_leb_unsigned(c);
		/* Forms of no bytes would make entries of no bytes, without end. */
		if (!dwarf_abbrev_is_form_known(columns[i].form) ||
		    dwarf_abbrev_form_bytes(columns[i].form, &unit->shape) == 0)
			return false;
	}
	uint64_t n = dwarf_leb_unsigned(c);
	if (n && !n_columns)
		return false;
	for (uint64_t i = 0; i < n; i++) {
		if (!read_entry(info, unit, columns, n_columns, c, names))
			return false;
	}
	return cursor_is_ok(c);
}

/* Between the length and the tables of names. */
static bool read_fields(struct dwarf_line_table *table, struct dwarf_unit *shape_unit,
			struct cursor *c)
{
	table->version = cursor_u16(c);
	if (table->version < 2 || table->version > 5)
		return false;
	if (table->version == 5) {
		table->address_bytes = cursor_u8(c);
		cursor_skip(c, 1);
		shape_unit->shape.address_bytes = table->address_bytes;
	}
	uint64_t header_bytes = shape_unit->shape.offset_bytes == 8 ? cursor_u64(c) : cursor_u32(c);
	if (header_bytes > cursor_left(c))
		return false;
	table->program = cursor_position(c) + header_bytes;
	table->min_instruction_bytes = cursor_u8(c);
	table->max_operations = table->version >= 4 ? cursor_u8(c) : 1;
	cursor_skip(c, 1);
	table->line_base = (int8_t)cursor_u8(c);
	table->line_range = cursor_u8(c);
	table->opcode_base = cursor_u8(c);
	for (unsigned i = 1; i < table->opcode_base; i++)
		table->operand_counts[i] = cursor_u8(c);
	return cursor_is_ok(c);
}

static bool read_header(struct dwarf_line_table *table, struct dwarf_info *info,
			const struct dwarf_unit *unit)
{
	const struct debug_section *section = &info->sections.items[DEBUG_SECTION_LINE];
	uint64_t offset = unit->stmt_list;
	if (offset >= section->size)
		return false;
	uint64_t length_end =
		section->size - offset < LENGTH_BYTES ? section->size : offset + LENGTH_BYTES;
	if (!debug_sections_need(&info->sections, DEBUG_SECTION_LINE, offset, length_end))
		return false;
	struct cursor c = debug_sections_cursor(&info->sections, DEBUG_SECTION_LINE);
	cursor_seek(&c, offset);
	struct dwarf_unit shape_unit = *unit;
	uint64_t length = cursor_u32(&c);
	shape_unit.shape.offset_bytes = length == UINT32_MAX ? 8 : 4;
	if (length == UINT32_MAX)
		length = cursor_u64(&c);
	if (!cursor_is_ok(&c) || length > section->size - cursor_position(&c))
		return false;
	table->offset = offset;
	table->end = cursor_position(&c) + length;
	table->address_bytes = unit->shape.address_bytes;
	uint64_t fields = cursor_position(&c);
	if (!debug_sections_need(&info->sections, DEBUG_SECTION_LINE, offset, table->end))
		return false;
	c = debug_sections_cursor(&info->sections, DEBUG_SECTION_LINE);
	cursor_seek(&c, fields);
	c.end = c.begin + table->end;
	if (!read_fields(table, &shape_unit, &c))
		return false;
	if (table->version < 5)
		return read_old_names(table, &c);
	return read_names(info, &shape_unit, &c, &table->folders) &&
	       read_names(info, &shape_unit, &c, &table->files);
}

bool dwarf_line_open(struct dwarf_line_table *table, struct dwarf_info *info,
		     const struct dwarf_unit *unit, const char *comp_dir)
{
	*table = (struct dwarf_line_table){.comp_dir = comp_dir};
	if (unit->has_stmt_list && read_header(table, info, unit))
		return true;
	dwarf_line_close(table);
	return false;
}

void dwarf_line_close(struct dwarf_line_table *table)
{
	mem_free(table->folders.items);
	mem_free(table->files.items);
	*table = (struct dwarf_line_table){0};
}

/* A path put together from its parts. */
struct path {
	size_t n;
	bool is_too_long;
	char bytes[DWARF_LINE_MAX_PATH_BYTES];
};

static void path_append(struct path *path, const char *part, size_t n)
{
	if (!n)
		return;
	size_t slash = path->n && path->bytes[path->n - 1] != '/';
	if (n + slash > sizeof(path->bytes) - path->n) {
		path->is_too_long = true;
		return;
	}
	if (slash)
		path->bytes[path->n++] = '/';
	memcpy(path->bytes + path->n, part, n);
	path->n += n;
}

static bool is_absolute(const char *bytes, size_t n)
{
	return n && bytes[0] == '/';
}

static void path_append_folder(struct path *path, const struct dwarf_line_table *table,
			       uint32_t index)
{
	const struct dwarf_line_names *folders = &table->folders;
	/* Version 5 keeps the unit's own folder as number 0, the others leave it out. */
	uint32_t first = table->version >= 5 ? 0 : 1;
	const char *base = table->comp_dir ? table->comp_dir : "";
	size_t n_base = strlen(base);
	if (table->version >= 5 && folders->n) {
		base = folders->items[0].bytes;
		n_base = folders->items[0].n;
	}
	if (index == 0 || index - first >= folders->n) {
		path_append(path, base, n_base);
		return;
	}
	const struct dwarf_line_name *folder = &folders->items[index - first];
	if (!is_absolute(folder->bytes, folder->n))
		path_append(path, base, n_base);
	path_append(path, folder->bytes, folder->n);
}

static uint32_t make_file(const struct dwarf_line_table *table, struct symbol_model *model,
			  const struct dwarf_line_name *file)
{
	struct path path;
	path.n = 0;
	path.is_too_long = false;
	if (!is_absolute(file->bytes, file->n))
		path_append_folder(&path, table, file->folder);
	path_append(&path, file->bytes, file->n);
	if (path.is_too_long || !path.n)
		return 0;
	const char *slash = memrchr(path.bytes, '/', path.n);
	const char *name = slash ? slash + 1 : path.bytes;
	size_t n_name = path.n - (size_t)(name - path.bytes);
	size_t n_folder = slash ? (size_t)(slash - path.bytes) : 0;
	if (slash == path.bytes)
		n_folder = 1;
	return symbol_model_add_file(
		model, (struct symbol_file_name){
			       .folder = symbol_model_add_string(model, path.bytes, n_folder),
			       .name = symbol_model_add_string(model, name, n_name)});
}

uint32_t dwarf_line_file(struct dwarf_line_table *table, struct symbol_model *model, uint64_t index)
{
	uint64_t first = table->version >= 5 ? 0 : 1;
	if (index < first || index - first >= table->files.n)
		return 0;
	struct dwarf_line_name *file = &table->files.items[index - first];
	if (file->id == UINT32_MAX)
		file->id = make_file(table, model, file);
	return file->id;
}

/* The registers of the state machine, and the sequence that it is writing. */
struct machine {
	struct dwarf_line_table *table;
	struct address_claims *claims;
	struct symbol_model *model;
	uint64_t address, operation;
	uint64_t file, line, column;
	uint64_t known_file; /* its id is known_id */
	uint32_t known_id;
	bool has_rows, is_dead; /* dead: the linker removed this code */
	size_t first_row;
	uint64_t first_address, last_address;
};

static void start_sequence(struct machine *m)
{
	m->address = 0;
	m->operation = 0;
	m->file = 1;
	m->line = 1;
	m->column = 0;
	m->has_rows = false;
	m->is_dead = false;
}

static void advance(struct machine *m, uint64_t operations)
{
	const struct dwarf_line_table *table = m->table;
	if (table->max_operations <= 1) {
		m->address += operations * table->min_instruction_bytes;
		return;
	}
	uint64_t sum = m->operation + operations;
	m->address += sum / table->max_operations * table->min_instruction_bytes;
	m->operation = sum % table->max_operations;
}

/* Rows [first, first + n) as far as they say something about [start, end). */
static void copy_rows(struct symbol_model *model, const struct symbol_line *rows, size_t n,
		      uint64_t start, uint64_t end)
{
	size_t i = 0;
	while (i + 1 < n && rows[i + 1].address <= start)
		i++;
	for (; i < n && rows[i].address < end; i++) {
		struct symbol_line row = rows[i];
		if (row.address < start)
			row.address = start;
		symbol_model_add_line(model, row);
	}
	symbol_model_add_line(model, (struct symbol_line){.address = end, .is_end = 1});
}

/* Keeps the part of the sequence that is code and that nobody claimed. */
static void claim_sequence(struct machine *m, uint64_t end)
{
	struct symbol_model *model = m->model;
	uint64_t position = m->first_address, run_start, run_end;
	bool is_free = address_claims_take(m->claims, &position, end, &run_start, &run_end);
	if (is_free && run_start == m->first_address && run_end == end) {
		symbol_model_add_line(model, (struct symbol_line){.address = end, .is_end = 1});
		return;
	}
	size_t n = model->lines.n - m->first_row;
	struct symbol_line *rows = NULL;
	if (is_free)
		rows = mem_copy(&model->lines.items[m->first_row], n * sizeof(*rows));
	model->lines.n = m->first_row;
	while (is_free) {
		copy_rows(model, rows, n, run_start, run_end);
		is_free = address_claims_take(m->claims, &position, end, &run_start, &run_end);
	}
	mem_free(rows);
}

static void end_sequence(struct machine *m, uint64_t end)
{
	if (m->has_rows && end > m->first_address)
		claim_sequence(m, end);
	else if (m->has_rows)
		m->model->lines.n = m->first_row;
	m->has_rows = false;
}

static void emit(struct machine *m)
{
	if (m->is_dead)
		return;
	/* Rows that go back begin anew. */
	if (m->has_rows && m->address < m->last_address)
		end_sequence(m, m->last_address);
	if (!m->has_rows) {
		if (!address_claims_covers(m->claims, m->address)) {
			m->is_dead = true;
			return;
		}
		m->has_rows = true;
		m->first_row = m->model->lines.n;
		m->first_address = m->address;
	}
	m->last_address = m->address;
	if (m->file != m->known_file) {
		m->known_file = m->file;
		m->known_id = dwarf_line_file(m->table, m->model, m->file);
	}
	symbol_model_add_line(m->model, (struct symbol_line){.address = m->address,
							     .file = m->known_id,
							     .line = (uint32_t)m->line & INT32_MAX,
							     .column = (uint32_t)m->column});
}

static void run_extended(struct machine *m, struct cursor *c)
{
	uint64_t n = dwarf_leb_unsigned(c);
	struct cursor operands = cursor_sub(c, n);
	switch (cursor_u8(&operands)) {
	case DW_LNE_end_sequence:
		end_sequence(m, m->address);
		start_sequence(m);
		break;
	case DW_LNE_set_address:
		if (cursor_left(&operands) >= 8)
			m->address = cursor_u64(&operands);
		else
			m->address = cursor_u32(&operands);
		m->operation = 0;
		/* Another address may follow what is dead. */
		m->is_dead = m->is_dead && !address_claims_covers(m->claims, m->address);
		break;
	case DW_LNE_define_file:
		(void)read_old_file(m->table, &operands);
		break;
	default:
		break;
	}
}

static void run_standard(struct machine *m, uint8_t opcode, struct cursor *c)
{
	const struct dwarf_line_table *table = m->table;
	switch (opcode) {
	case DW_LNS_extended:
		run_extended(m, c);
		break;
	case DW_LNS_copy:
		emit(m);
		break;
	case DW_LNS_advance_pc:
		advance(m, dwarf_leb_unsigned(c));
		break;
	case DW_LNS_advance_line:
		m->line += (uint64_t)dwarf_leb_signed(c);
		break;
	case DW_LNS_set_file:
		m->file = dwarf_leb_unsigned(c);
		break;
	case DW_LNS_set_column:
		m->column = dwarf_leb_unsigned(c);
		break;
	case DW_LNS_negate_stmt:
	case DW_LNS_set_basic_block:
	case DW_LNS_set_prologue_end:
	case DW_LNS_set_epilogue_begin:
		break;
	case DW_LNS_const_add_pc:
		advance(m, (255u - table->opcode_base) / table->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		m->address += cursor_u16(c);
		m->operation = 0;
		break;
	default:
		for (unsigned i = 0; i < table->operand_counts[opcode]; i++)
			(void)dwarf_leb_unsigned(c);
		break;
	}
}

bool dwarf_line_run(struct dwarf_line_table *table, struct dwarf_info *info,
		    struct address_claims *claims, struct symbol_model *model)
{
	if (!table->line_range)
		return false;
	struct cursor c = debug_sections_cursor(&info->sections, DEBUG_SECTION_LINE);
	cursor_seek(&c, table->program);
	c.end = c.begin + table->end;
	struct machine m = {
		.table = table, .claims = claims, .model = model, .known_file = UINT64_MAX};
	start_sequence(&m);
	uint8_t advances[256];
	int16_t lines[256];
	for (unsigned i = table->opcode_base; i < 256; i++) {
		unsigned adjusted = i - table->opcode_base;
		advances[i] = (uint8_t)(adjusted / table->line_range);
		lines[i] = (int16_t)(table->line_base + (int)(adjusted % table->line_range));
	}
	while (cursor_left(&c)) {
		uint8_t opcode = cursor_u8(&c);
		if (opcode < table->opcode_base) {
			run_standard(&m, opcode, &c);
			continue;
		}
		advance(&m, advances[opcode]);
		m.line += (uint64_t)(int64_t)lines[opcode];
		emit(&m);
	}
	/* Without its end, a sequence ends where its last row begins. */
	end_sequence(&m, m.last_address);
	return cursor_is_ok(&c);
}
