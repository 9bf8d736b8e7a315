/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/scene.h"

#include "base/cleanup.h"
#include "base/mem.h"

void scene_init(struct scene *scene, const struct perf_source_info *source, struct symcache *cache)
{
	scene->source = source;
	scene->cache = cache;
	image_table_init(&scene->images);
	jit_table_init(&scene->jit, source, cache);
	process_table_init(&scene->processes, &scene->images);
	kernel_space_init(&scene->kernel, &scene->images, &scene->processes.pool);
}

void scene_fini(struct scene *scene)
{
	kernel_space_fini(&scene->kernel);
	process_table_fini(&scene->processes);
	jit_table_fini(&scene->jit);
	image_table_fini(&scene->images);
}

struct sample_layout scene_layout(const struct scene *scene, const struct perf_record *record)
{
	const struct perf_source_info *source = scene->source;
	if (!source->n_events)
		return (struct sample_layout){0};
	return source->events[record->event_index < source->n_events ? record->event_index : 0]
		.layout;
}

struct record_view scene_view(const struct scene *scene, const struct perf_record *record)
{
	bool is_of_kernel = record->type < PERF_RECORD_USER_TYPE_START;
	return (struct record_view){
		.record = record,
		.is_swapped = scene->source->is_swapped,
		.trailer_bytes = is_of_kernel ? scene_layout(scene, record).trailer_bytes : 0,
	};
}

/*
 * A running program's file is opened while it is there, it may be gone at the window's end; each
 * further process that maps it is another chance. symcache bounds the tries.
 */
static void capture(struct scene *scene, uint32_t pid, const struct space_map *map, bool is_new)
{
	struct image *image = image_table_get(&scene->images, map->image);
	if (!is_new && !(scene->source->is_live && image_is_missed(image)))
		return;
	image->first_pid = (int32_t)pid;
	image->first_start = map->start;
	image->first_end = map->end;
	image->module = NULL;
	if (scene->source->is_live)
		image_open(image, scene->source, scene->cache);
}

static void widen_hull(struct scene *scene, const struct space_map *map)
{
	struct image *image = image_table_get(&scene->images, map->image);
	struct image *canonical = image_table_get(&scene->images, image->canonical);
	uint64_t high = map->page_offset + (map->end - map->start);
	if (map->page_offset < canonical->offset_low)
		canonical->offset_low = map->page_offset;
	if (high > canonical->offset_high)
		canonical->offset_high = high;
}

/* A process with code that belongs to no file: its names are looked for from now on. */
static void meet_jit(struct scene *scene, const struct record_mmap *mmap,
		     const struct space_map *map)
{
	struct process_table *processes = &scene->processes;
	if (!scene->jit.is_on || mmap->pid == 0 ||
	    !image_table_get(&scene->images, map->image)->may_hold_jit)
		return;
	struct process *process = process_table_thread(processes, mmap->pid, mmap->pid)->process;
	struct address_space *space = process->space;
	if (!space->jit)
		space->jit = jit_table_open(&scene->jit, mmap->pid, processes->now_ns);
	const struct jit_mapping mapping = {.path = mmap->filename,
					    .start = mmap->start,
					    .end = mmap->start + mmap->length,
					    .inode = mmap->inode,
					    .has_inode = mmap->has_inode};
	if (space->jit)
		jit_scope_add_dump(space->jit, &mapping);
}

static void end_jit(struct scene *scene, uint32_t pid, uint32_t tid)
{
	const struct thread *thread = process_table_find(&scene->processes, pid, tid);
	if (pid == tid && thread && thread->process->space->jit)
		jit_scope_end(thread->process->space->jit);
}

enum { PROT_EXEC_BIT = 4 }; /* PROT_EXEC of mman.h, the same on every architecture */

static bool feed_mmap(struct scene *scene, const struct record_view *view)
{
	struct record_mmap mmap;
	if (!record_read_mmap(view, &mmap))
		return false;
	if (mmap.pid == UINT32_MAX ||
	    (view->record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL) {
		kernel_space_map(&scene->kernel, mmap.start, mmap.length, mmap.page_offset,
				 mmap.filename);
		kernel_space_identify(&scene->kernel, mmap.filename, &mmap.build_id);
		return true;
	}
	if (mmap.length > UINT64_MAX - mmap.start || mmap.length > UINT64_MAX - mmap.page_offset)
		return false;
	if (mmap.is_data && !(mmap.has_protection && mmap.protection & PROT_EXEC_BIT))
		return true; /* recorded with --data: no code */
	const struct image_key key = {
		.path = mmap.filename,
		.build_id = mmap.build_id,
		.device_major = mmap.device_major,
		.device_minor = mmap.device_minor,
		.inode = mmap.inode,
		.inode_generation = mmap.inode_generation,
		.has_inode = mmap.has_inode,
	};
	bool is_new;
	const struct space_map map = {
		.start = mmap.start,
		.end = mmap.start + mmap.length,
		.page_offset = mmap.page_offset,
		.image = image_table_intern(&scene->images, &key, &is_new),
	};
	capture(scene, mmap.pid, &map, is_new);
	widen_hull(scene, &map);
	process_table_map(&scene->processes, mmap.pid, &map, view->record->is_synthetic);
	meet_jit(scene, &mmap, &map);
	return true;
}

static bool feed_comm(struct scene *scene, const struct record_view *view)
{
	struct record_comm comm;
	if (!record_read_comm(view, &comm))
		return false;
	process_table_comm(&scene->processes, comm.pid, comm.tid, comm.name, comm.is_exec,
			   view->record->is_synthetic);
	return true;
}

static bool feed_task(struct scene *scene, const struct record_view *view)
{
	struct record_task task;
	if (!record_read_task(view, &task))
		return false;
	if (view->record->type == PERF_RECORD_EXIT) {
		end_jit(scene, task.pid, task.tid);
		process_table_exit(&scene->processes, task.pid, task.tid);
	} else {
		process_table_fork(&scene->processes, task.pid, task.parent_pid, task.tid,
				   task.parent_tid,
				   view->record->misc & PERF_RECORD_MISC_FORK_EXEC);
	}
	return true;
}

static bool feed_ksymbol(struct scene *scene, const struct record_view *view)
{
	struct record_ksymbol ksymbol;
	if (!record_read_ksymbol(view, &ksymbol))
		return false;
	kernel_space_ksymbol(&scene->kernel, ksymbol.start, ksymbol.length, ksymbol.name,
			     ksymbol.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER);
	return true;
}

static bool feed_exec(struct scene *scene, const struct record_view *view)
{
	struct record_exec exec;
	if (!record_read_exec(view, &exec))
		return false;
	char *cmdline CLEANUP(cleanup_mem) = NULL;
	if (exec.argv_bytes) {
		cmdline = mem_copy(exec.argv, exec.argv_bytes);
		for (uint32_t i = 0; i + 1 < exec.argv_bytes; i++) {
			if (!cmdline[i])
				cmdline[i] = ' ';
		}
	}
	process_table_exec(&scene->processes, exec.pid, exec.tid, cmdline,
			   exec.cgroup[0] ? exec.cgroup : NULL);
	return true;
}

enum scene_outcome scene_feed(struct scene *scene, const struct record_view *view)
{
	bool is_sound = false;
	scene->processes.now_ns = view->record->time_ns;
	switch (view->record->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		is_sound = feed_mmap(scene, view);
		break;
	case PERF_RECORD_COMM:
		is_sound = feed_comm(scene, view);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		is_sound = feed_task(scene, view);
		break;
	case PERF_RECORD_KSYMBOL:
		is_sound = feed_ksymbol(scene, view);
		break;
	case PERF_RECORD_PERFPIPE_EXEC:
		is_sound = feed_exec(scene, view);
		break;
	default:
		return SCENE_UNMOVED;
	}
	return is_sound ? SCENE_CHANGED : SCENE_MALFORMED;
}
