/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/record.h"

/* A file name longer than a path can be is damage, not a name (PATH_MAX and the kernel's padding).
 */
enum { NAME_MAX_BYTES = 4096 + 16 };

/* Behind the header, without the trailer. */
static struct cursor open_body(const struct record_view *view)
{
	const struct perf_record *r = view->record;
	struct cursor c = cursor_make(r->bytes, r->size, view->is_swapped);
	cursor_skip(&c, sizeof(struct perf_event_header));
	if (view->trailer_bytes > cursor_left(&c))
		c.is_bad = true;
	else
		c.end -= view->trailer_bytes;
	return c;
}

/*
 * Linux (6.18 still) sets the flag for every listener once one of them has asked for build-ids,
 * also where the 24 bytes are device, inode and generation. A build-id has its size, three zeros,
 * and zeros behind its end; a device's number is no such size, or a generation stands in the zeros.
 */
static bool read_build_id(struct cursor c, struct build_id *out)
{
	enum { FIELD_BYTES = 24, HEAD_BYTES = 4, MAX_BYTES = 20 };
	const uint8_t *field = cursor_bytes(&c, FIELD_BYTES);
	if (!field || field[0] == 0 || field[0] > MAX_BYTES)
		return false;
	for (int i = 1; i < FIELD_BYTES; i++) {
		if ((i < HEAD_BYTES || i >= HEAD_BYTES + field[0]) && field[i] != 0)
			return false;
	}
	*out = build_id_make(field + HEAD_BYTES, field[0]);
	return true;
}

bool record_read_mmap(const struct record_view *view, struct record_mmap *out)
{
	struct cursor c = open_body(view);
	bool is_mmap2 = view->record->type == PERF_RECORD_MMAP2;
	*out = (struct record_mmap){.is_data = view->record->misc & PERF_RECORD_MISC_MMAP_DATA};
	out->pid = cursor_u32(&c);
	out->tid = cursor_u32(&c);
	out->start = cursor_u64(&c);
	out->length = cursor_u64(&c);
	out->page_offset = cursor_u64(&c);
	if (is_mmap2 && view->record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID &&
	    read_build_id(c, &out->build_id)) {
		cursor_skip(&c, 24);
	} else if (is_mmap2) {
		out->device_major = cursor_u32(&c);
		out->device_minor = cursor_u32(&c);
		out->inode = cursor_u64(&c);
		out->inode_generation = cursor_u64(&c);
		out->has_inode = out->inode != 0;
	}
	if (is_mmap2) {
		out->protection = cursor_u32(&c);
		out->flags = cursor_u32(&c);
		out->has_protection = true;
	}
	out->filename = cursor_string(&c, NAME_MAX_BYTES);
	return cursor_is_ok(&c);
}

bool record_read_comm(const struct record_view *view, struct record_comm *out)
{
	struct cursor c = open_body(view);
	out->pid = cursor_u32(&c);
	out->tid = cursor_u32(&c);
	out->name = cursor_string(&c, NAME_MAX_BYTES);
	out->is_exec = view->record->misc & PERF_RECORD_MISC_COMM_EXEC;
	return cursor_is_ok(&c);
}

bool record_read_task(const struct record_view *view, struct record_task *out)
{
	struct cursor c = open_body(view);
	out->pid = cursor_u32(&c);
	out->parent_pid = cursor_u32(&c);
	out->tid = cursor_u32(&c);
	out->parent_tid = cursor_u32(&c);
	out->time_ns = cursor_u64(&c);
	return cursor_is_ok(&c);
}

bool record_read_lost(const struct record_view *view, struct record_lost *out)
{
	struct cursor c = open_body(view);
	out->id = cursor_u64(&c);
	out->n = cursor_u64(&c);
	return cursor_is_ok(&c);
}

bool record_read_lost_samples(const struct record_view *view, struct record_lost *out)
{
	struct cursor c = open_body(view);
	out->id = 0;
	out->n = cursor_u64(&c);
	return cursor_is_ok(&c);
}

bool record_read_throttle(const struct record_view *view, struct record_throttle *out)
{
	struct cursor c = open_body(view);
	out->time_ns = cursor_u64(&c);
	out->id = cursor_u64(&c);
	out->stream_id = cursor_u64(&c);
	return cursor_is_ok(&c);
}

bool record_read_ksymbol(const struct record_view *view, struct record_ksymbol *out)
{
	struct cursor c = open_body(view);
	out->start = cursor_u64(&c);
	out->length = cursor_u32(&c);
	out->type = cursor_u16(&c);
	out->flags = cursor_u16(&c);
	out->name = cursor_string(&c, NAME_MAX_BYTES);
	return cursor_is_ok(&c);
}

bool record_read_bpf_event(const struct record_view *view, struct record_bpf_event *out)
{
	struct cursor c = open_body(view);
	out->type = cursor_u16(&c);
	out->flags = cursor_u16(&c);
	out->id = cursor_u32(&c);
	const uint8_t *tag = cursor_bytes(&c, sizeof(out->tag));
	if (tag)
		memcpy(out->tag, tag, sizeof(out->tag));
	return cursor_is_ok(&c);
}

bool record_read_cgroup(const struct record_view *view, struct record_cgroup *out)
{
	struct cursor c = open_body(view);
	out->id = cursor_u64(&c);
	out->path = cursor_string(&c, NAME_MAX_BYTES);
	return cursor_is_ok(&c);
}

bool record_read_namespaces(const struct record_view *view, struct record_namespaces *out)
{
	struct cursor c = open_body(view);
	out->pid = cursor_u32(&c);
	out->tid = cursor_u32(&c);
	uint64_t n = cursor_u64(&c);
	if (n > cursor_left(&c) / sizeof(out->entries[0]))
		return false;
	out->n = n < RECORD_NAMESPACES_MAX ? (uint32_t)n : RECORD_NAMESPACES_MAX;
	for (uint32_t i = 0; i < out->n; i++) {
		out->entries[i].device = cursor_u64(&c);
		out->entries[i].inode = cursor_u64(&c);
	}
	return cursor_is_ok(&c);
}

bool record_read_switch(const struct record_view *view, struct record_switch *out)
{
	struct cursor c = open_body(view);
	*out = (struct record_switch){
		.is_out = view->record->misc & PERF_RECORD_MISC_SWITCH_OUT,
		.is_preempted = view->record->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT,
	};
	if (view->record->type == PERF_RECORD_SWITCH_CPU_WIDE) {
		out->other_pid = cursor_u32(&c);
		out->other_tid = cursor_u32(&c);
	}
	return cursor_is_ok(&c);
}

bool record_read_text_poke(const struct record_view *view, struct record_text_poke *out)
{
	struct cursor c = open_body(view);
	out->address = cursor_u64(&c);
	out->n_old = cursor_u16(&c);
	out->n_new = cursor_u16(&c);
	out->bytes = cursor_bytes(&c, (size_t)out->n_old + out->n_new);
	return cursor_is_ok(&c);
}

bool record_read_aux(const struct record_view *view, struct record_aux *out)
{
	struct cursor c = open_body(view);
	out->offset = cursor_u64(&c);
	out->size = cursor_u64(&c);
	out->flags = cursor_u64(&c);
	return cursor_is_ok(&c);
}

bool record_read_read(const struct record_view *view, struct record_read *out)
{
	struct cursor c = open_body(view);
	out->pid = cursor_u32(&c);
	out->tid = cursor_u32(&c);
	out->value = cursor_u64(&c);
	return cursor_is_ok(&c);
}

bool record_read_trailer_tid(const struct record_view *view, const struct sample_layout *layout,
			     uint32_t *pid_out, uint32_t *tid_out)
{
	const struct perf_record *r = view->record;
	if (layout->tid_from_end == SAMPLE_LAYOUT_NONE || r->size < 8u + layout->trailer_bytes)
		return false;
	struct cursor c = cursor_make(r->bytes, r->size, view->is_swapped);
	cursor_seek(&c, r->size - layout->tid_from_end);
	*pid_out = cursor_u32(&c);
	*tid_out = cursor_u32(&c);
	return cursor_is_ok(&c);
}

bool record_read_deferred_chain(const struct record_view *view, const struct sample_layout *layout,
				struct record_deferred_chain *out)
{
	struct cursor c = open_body(view);
	uint32_t pid = 0;
	out->cookie = cursor_u64(&c);
	out->n = cursor_u64(&c);
	if (!cursor_is_ok(&c) || out->n > cursor_left(&c) / sizeof(uint64_t))
		return false;
	out->entries = cursor_bytes(&c, (size_t)out->n * sizeof(uint64_t));
	return record_read_trailer_tid(view, layout, &pid, &out->tid);
}

bool record_read_build_id(const struct record_view *view, struct record_build_id *out)
{
	/* struct perf_record_header_build_id: no sample_id trailer, 24 bytes of which 20 are the
	 * id. */
	struct record_view whole = *view;
	whole.trailer_bytes = 0;
	struct cursor c = open_body(&whole);
	out->pid = (int32_t)cursor_u32(&c);
	const uint8_t *bytes = cursor_bytes(&c, 24);
	out->filename = cursor_string(&c, NAME_MAX_BYTES);
	if (!cursor_is_ok(&c))
		return false;
	uint8_t size = view->record->misc & PERF_RECORD_MISC_BUILD_ID_SIZE ? bytes[20] : 20;
	out->id = build_id_make(bytes, size <= 20 ? size : 20);
	return true;
}

bool record_read_thread_map(const struct record_view *view, struct record_thread_map *out)
{
	struct record_view whole = *view;
	whole.trailer_bytes = 0;
	out->cursor = open_body(&whole);
	out->n = cursor_u64(&out->cursor);
	out->next = 0;
	return cursor_is_ok(&out->cursor) && out->n <= cursor_left(&out->cursor) / 24;
}

bool record_thread_map_next(struct record_thread_map *map, uint64_t *tid_out, const char **comm_out)
{
	if (map->next >= map->n)
		return false;
	map->next++;
	*tid_out = cursor_u64(&map->cursor);
	struct cursor name = cursor_sub(&map->cursor, 16);
	*comm_out = cursor_string(&name, 16);
	return cursor_is_ok(&map->cursor) && *comm_out;
}

bool record_read_time_conv(const struct record_view *view, struct record_time_conv *out)
{
	struct record_view whole = *view;
	whole.trailer_bytes = 0;
	struct cursor c = open_body(&whole);
	*out = (struct record_time_conv){0};
	out->shift = cursor_u64(&c);
	out->multiplier = cursor_u64(&c);
	out->zero = cursor_u64(&c);
	if (!cursor_is_ok(&c))
		return false;
	out->is_zero_valid = true;
	if (cursor_left(&c) >= 18) {
		out->cycles = cursor_u64(&c);
		out->mask = cursor_u64(&c);
		out->is_zero_valid = cursor_u8(&c);
		out->is_short = cursor_u8(&c);
	}
	return true;
}

bool record_read_exec(const struct record_view *view, struct record_exec *out)
{
	const struct perf_record *r = view->record;
	struct perf_record_perfpipe_exec head;
	struct cursor c = cursor_make(r->bytes, r->size, false);
	const uint8_t *bytes = cursor_bytes(&c, sizeof(head));
	if (!bytes)
		return false;
	memcpy(&head, bytes, sizeof(head));
	*out = (struct record_exec){
		.pid = head.pid,
		.tid = head.tid,
		.source = head.source,
		.argv_bytes = head.argv_bytes,
		.is_argv_cut = head.is_argv_cut,
	};
	out->argv = (const char *)cursor_bytes(&c, head.argv_bytes);
	out->cgroup = cursor_string(&c, NAME_MAX_BYTES);
	out->exe = cursor_string(&c, NAME_MAX_BYTES);
	return cursor_is_ok(&c) && (!head.argv_bytes || out->argv[head.argv_bytes - 1] == 0);
}
