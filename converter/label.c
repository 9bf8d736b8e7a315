/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/label.h"

#include <string.h>

#include "base/mem.h"
#include "converter/converter.h"

/* A host has some thousands of cgroups; a file may claim any number. */
enum { CGROUPS_MAX = 1 << 16, LABELS_MAX = CONVERTER_LABEL_N };

const char *converter_label_name(unsigned i)
{
	static const char *const names[CONVERTER_LABEL_N] = {
		"comm", "pid", "tid", "thread", "process", "cpu", "cgroup", "cmdline",
	};
	return names[i];
}

void labeler_init(struct labeler *labeler, uint32_t labels)
{
	*labeler = (struct labeler){.labels = labels};
	hash_map_init(&labeler->cgroups);
}

void labeler_fini(struct labeler *labeler)
{
	size_t iterator = 0;
	uint64_t id, *path;
	while (hash_map_next(&labeler->cgroups, &iterator, &id, &path))
		mem_free((char *)(uintptr_t)*path);
	hash_map_fini(&labeler->cgroups);
	*labeler = (struct labeler){0};
}

void labeler_begin(struct labeler *labeler, struct profile *profile)
{
	labeler->profile = profile;
	labeler->window++;
}

void labeler_add_cgroup(struct labeler *labeler, uint64_t id, const char *path)
{
	if (labeler->cgroups.n >= CGROUPS_MAX && !hash_map_get(&labeler->cgroups, id))
		return;
	uint64_t *value = hash_map_put(&labeler->cgroups, id, NULL);
	mem_free((char *)(uintptr_t)*value);
	*value = (uintptr_t)mem_copy_string(path);
}

static const char *find_cgroup(const struct labeler *labeler, const struct thread *thread,
			       const struct sample *sample)
{
	const uint64_t *path =
		sample->cgroup_id ? hash_map_get(&labeler->cgroups, sample->cgroup_id) : NULL;
	return path ? (const char *)(uintptr_t)*path : thread->process->cgroup;
}

struct label_list {
	struct profile *profile;
	struct profile_label items[LABELS_MAX];
	uint32_t n;
};

static void add_text(struct label_list *list, const char *key, const char *text)
{
	if (!text || !*text)
		return;
	list->items[list->n++] = (struct profile_label){
		.key = profile_string(list->profile, key),
		.str = profile_string(list->profile, text),
	};
}

static void add_number(struct label_list *list, const char *key, int32_t number)
{
	list->items[list->n++] = (struct profile_label){
		.key = profile_string(list->profile, key),
		.num = number,
		.unit = profile_string(list->profile, key),
		.is_number = true,
	};
}

static uint32_t make(const struct labeler *labeler, const struct thread *thread,
		     const struct sample *sample)
{
	struct label_list list = {.profile = labeler->profile};
	uint32_t labels = labeler->labels;
	char text[THREAD_COMM_BYTES];
	const char *comm = thread_comm(thread, text);
	if (labels & CONVERTER_LABEL_COMM)
		add_text(&list, "comm", comm);
	if (labels & CONVERTER_LABEL_PID)
		/* -1 where the kernel no longer knew whose sample it was. */
		add_number(&list, "pid", (int32_t)thread->process->pid);
	if (labels & CONVERTER_LABEL_TID)
		add_number(&list, "tid", (int32_t)thread->tid);
	if (labels & CONVERTER_LABEL_THREAD)
		add_text(&list, "thread", comm);
	if (labels & CONVERTER_LABEL_PROCESS)
		add_text(&list, "process", thread->process->comm ? thread->process->comm : comm);
	if (labels & CONVERTER_LABEL_CPU && sample->cpu != UINT32_MAX)
		add_number(&list, "cpu", (int32_t)sample->cpu);
	if (labels & CONVERTER_LABEL_CGROUP)
		add_text(&list, "cgroup", find_cgroup(labeler, thread, sample));
	if (labels & CONVERTER_LABEL_CMDLINE)
		add_text(&list, "cmdline", thread->process->cmdline);
	return profile_label_set(labeler->profile, list.items, list.n);
}

uint32_t labeler_label(struct labeler *labeler, struct thread *thread, const struct sample *sample)
{
	if (labeler->labels & (CONVERTER_LABEL_CPU | CONVERTER_LABEL_CGROUP))
		return make(labeler, thread, sample); /* differs from sample to sample */
	if (thread->label_window != labeler->window ||
	    thread->label_changes != thread->process->n_changes) {
		thread->label_set = make(labeler, thread, sample);
		thread->label_window = labeler->window;
		thread->label_changes = thread->process->n_changes;
	}
	return thread->label_set;
}
