/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as regex, replacement, target and values of a rule: six lines of input. Whatever is
 * taken has to keep the label set in order, with valid names and without empty values.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "pipeline/relabel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_INPUT = 2048, LINES = 6 };

static void check(const struct label_set *set)
{
	for (uint32_t i = 0; i < set->n; i++) {
		const struct label *label = &set->labels[i];
		if (strlen(label->name) != label->name_size || label->value_size == 0 ||
		    !label_name_is_valid(label->name, label->name_size))
			abort();
		if (i && strcmp(set->labels[i - 1].name, label->name) >= 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0 || size > MAX_INPUT)
		return 0;
	char *copy = mem_alloc(size);
	memcpy(copy, data + 1, size - 1);
	copy[size - 1] = '\0';
	char *lines[LINES];
	char *rest = copy;
	for (size_t i = 0; i < LINES; i++) {
		lines[i] = rest;
		rest += strcspn(rest, "\n");
		if (*rest)
			*rest++ = '\0';
	}
	static const char *const sources[] = {"a", "b"};
	struct relabel_rule rule = {
		.action = (enum relabel_action)(data[0] % RELABEL_ACTION_N),
		.source_labels = sources,
		.n_source_labels = data[0] / RELABEL_ACTION_N % 3,
		.regex = lines[0],
		.replacement = lines[1],
		.target_label = lines[2],
		.separator = lines[5],
		.modulus = data[0] & 0x80 ? 7 : 0,
	};
	if (rule.action == RELABEL_LABELDROP || rule.action == RELABEL_LABELKEEP)
		rule = (struct relabel_rule){.action = rule.action, .regex = lines[0]};
	if (rule.action == RELABEL_LOWERCASE || rule.action == RELABEL_UPPERCASE)
		rule.replacement = NULL;
	if (rule.action == RELABEL_KEEPEQUAL || rule.action == RELABEL_DROPEQUAL)
		rule = (struct relabel_rule){.action = rule.action, .target_label = lines[2]};
	struct relabel *relabel = relabel_new();
	enum relabel_field field;
	struct error *err = relabel_add(relabel, &rule, &field);
	if (err && error_get_code(err) != ERROR_USAGE)
		abort();
	error_free(err);
	struct label_set set;
	label_set_init(&set);
	label_set_put(&set, "a", 1, lines[3], strlen(lines[3]));
	label_set_put(&set, "b", 1, lines[4], strlen(lines[4]));
	label_set_put(&set, "__meta_x", 8, "1", 1);
	relabel_apply(relabel, &set);
	check(&set);
	label_set_fini(&set);
	relabel_free(relabel);
	mem_free(copy);
	return 0;
}
