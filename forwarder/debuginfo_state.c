/* SPDX-License-Identifier: Apache-2.0 */
#include "forwarder/debuginfo_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"

enum { LINE_BYTES = BUILD_ID_HEX_BYTES + 64, FILE_MAX_BYTES = DEBUGINFO_STATE_MAX * LINE_BYTES };

static const char *const kinds[] = {
	[BUILD_ID_GNU] = "gnu",
	[BUILD_ID_GO] = "go",
	[BUILD_ID_HASH] = "hash",
};

void debuginfo_facts_init(struct debuginfo_facts *facts)
{
	facts->items = mem_zalloc(DEBUGINFO_STATE_MAX, sizeof(*facts->items));
	facts->n = 0;
}

void debuginfo_facts_fini(struct debuginfo_facts *facts)
{
	mem_free(facts->items);
	*facts = (struct debuginfo_facts){0};
}

const struct debuginfo_fact *debuginfo_facts_find(const struct debuginfo_facts *facts,
						  const struct build_id *id)
{
	for (size_t i = 0; i < facts->n; i++) {
		if (facts->items[i].id.kind == id->kind && build_id_equal(&facts->items[i].id, id))
			return &facts->items[i];
	}
	return NULL;
}

void debuginfo_facts_forget(struct debuginfo_facts *facts, const struct build_id *id)
{
	const struct debuginfo_fact *fact = debuginfo_facts_find(facts, id);
	if (!fact)
		return;
	size_t i = (size_t)(fact - facts->items);
	memmove(facts->items + i, facts->items + i + 1, (--facts->n - i) * sizeof(*facts->items));
}

void debuginfo_facts_set(struct debuginfo_facts *facts, const struct debuginfo_fact *fact)
{
	debuginfo_facts_forget(facts, &fact->id);
	if (facts->n == DEBUGINFO_STATE_MAX)
		memmove(facts->items, facts->items + 1, --facts->n * sizeof(*facts->items));
	facts->items[facts->n++] = *fact;
}

/* The next word of the line; NULL at its end. */
static char *next_word(char **line)
{
	char *word = strsep(line, " ");
	return word && *word ? word : NULL;
}

static void read_line(struct debuginfo_facts *facts, char *line)
{
	struct debuginfo_fact fact = {0};
	const char *hex = next_word(&line), *kind = next_word(&line), *what = next_word(&line);
	const char *seconds = next_word(&line);
	if (!seconds || line || !build_id_parse(hex, &fact.id))
		return;
	fact.id.kind = BUILD_ID_NONE;
	for (size_t i = BUILD_ID_GNU; i < ARRAY_LEN(kinds); i++) {
		if (!strcmp(kind, kinds[i]))
			fact.id.kind = (uint8_t)i;
	}
	char *end;
	fact.seconds = strtoull(seconds, &end, 10);
	fact.is_done = !strcmp(what, "done");
	if (fact.id.kind == BUILD_ID_NONE || *end ||
	    (!fact.is_done && strcmp(what, "refused") != 0))
		return;
	debuginfo_facts_set(facts, &fact);
}

struct error *debuginfo_facts_load(struct debuginfo_facts *facts, const char *path)
{
	CLEANUP(buf_fini) struct buf text;
	buf_init(&text, FILE_MAX_BYTES + 1);
	struct error *err = file_read_all(path, &text);
	if (err && error_get_code(err) == ERROR_NO_ENTRY) {
		error_free(err);
		return NULL;
	}
	if (!err)
		err = buf_append(&text, "", 1);
	if (err)
		return err;
	char *rest = (char *)text.data;
	for (char *line; (line = strsep(&rest, "\n"));)
		read_line(facts, line);
	return NULL;
}

struct error *debuginfo_facts_save(const struct debuginfo_facts *facts, const char *path)
{
	CLEANUP(buf_fini) struct buf text;
	buf_init(&text, FILE_MAX_BYTES);
	for (size_t i = 0; i < facts->n; i++) {
		const struct debuginfo_fact *fact = &facts->items[i];
		char hex[BUILD_ID_HEX_BYTES];
		build_id_format(&fact->id, hex);
		struct error *err = buf_printf(&text, "%s %s %s %llu\n", hex, kinds[fact->id.kind],
					       fact->is_done ? "done" : "refused",
					       (unsigned long long)fact->seconds);
		if (err)
			return err;
	}
	CLEANUP(file_writer_close) struct file_writer writer = {.fd = -1};
	struct error *err = file_writer_open(path, &writer);
	if (!err)
		err = file_write(writer.fd, text.data, text.size);
	return err ? err : file_writer_commit(&writer);
}
