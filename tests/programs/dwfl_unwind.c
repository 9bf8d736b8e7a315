/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwinds the copied user stacks of a perf.data twice, by ours and by libdwfl (elfutils), from the
 * same registers and the same dump, and compares the frames. A line for each of the first
 * LINES differences and early stops, then totals and what a frame costs on both sides.
 *
 * usage: dwfl_unwind FILE [LINES]
 *
 * A frame counts as equal when both have the same pc at the same depth. Where libdwfl ends first
 * nothing is compared, where ours ends first its remaining frames count as missing.
 */
#include <elfutils/libdwfl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "collector/collector.h"
#include "converter/sample.h"
#include "converter/scene.h"
#include "converter/user_stack.h"

enum { SPACES_MAX = 64, HOT_ROUNDS = 4, FRAMES_MAX = 4096 };

/* libdwfl's view of one state of an address space. */
struct peer {
	uint64_t generation;
	Dwfl *dwfl;
	bool is_attached;
};

struct frame {
	uint64_t pc;
	bool is_activation;
};

struct totals {
	uint64_t n_samples, n_skipped, n_ended, n_peer_ended;
	uint64_t n_frames, n_peer_frames, n_equal, n_missing, n_wrong, n_further;
	uint64_t n_samples_equal;
	uint64_t stops[UNWIND_STOP_N];
};

/* What each sample cost. Medians tell of unwinding; means, of what else the host had to do. */
enum timing { OURS_FIRST, OURS_AGAIN, PEER_FIRST, PEER_AGAIN, TIMING_N };
static const char *const timing_names[TIMING_N] = {"ours_first", "ours_again", "peer_first",
						   "peer_again"};
struct costs {
	double *per_frame[TIMING_N], *per_sample[TIMING_N]; /* ns */
	size_t n[TIMING_N];
};

struct program {
	const struct perf_source_info *info;
	struct symcache *cache;
	struct scene scene;
	struct user_stack stacks;
	struct peer peers[SPACES_MAX];
	size_t n_peers;
	/* Of the sample at hand, for the callbacks. */
	const struct unwind_registers *registers;
	struct unwind_memory stack;
	struct frame frames[FRAMES_MAX];
	size_t n_frames;
	struct totals totals;
	struct costs costs;
	unsigned n_shown, n_stops_shown, max_shown;
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* --- libdwfl --- */

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread)
{
	(void)dwfl, (void)context;
	bool is_first = !*thread;
	*thread = context;
	return is_first ? 1 : 0;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *context, void **thread)
{
	(void)dwfl, (void)tid;
	*thread = context;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr vaddr, Dwarf_Word *out, void *context)
{
	(void)dwfl;
	const struct program *program = context;
	uint64_t value;
	if (!unwind_memory_read(&program->stack, vaddr, sizeof(value), &value))
		return false;
	*out = value;
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
	const struct program *program = context;
	const struct unwind_registers *registers = program->registers;
	bool is_x86 = program->stacks.walk.machine == UNWIND_X86_64;
	for (unsigned i = 0; i < UNWIND_N_REGISTERS; i++) {
		Dwarf_Word value = registers->values[i];
		if (!(registers->known >> i & 1))
			continue;
		if (!is_x86 && i == UNWIND_ARM64_PC)
			dwfl_thread_state_register_pc(thread, value);
		else if (!dwfl_thread_state_registers(thread, (int)i, 1, &value))
			return false;
	}
	return true;
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

static int no_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
		  char **path, Elf **elf)
{
	(void)module, (void)userdata, (void)name, (void)base, (void)path, (void)elf;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = no_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

/* This kernel's vdso as a file: recordings are made on the host that runs this. */
static int open_vdso(void)
{
	const uint8_t *image = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	if (!image)
		return -1;
	const ElfW(Ehdr) *header = (const void *)image;
	size_t size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
	int fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0 || write(fd, image, size) != (ssize_t)size)
		abort();
	return fd;
}

static void report(const struct program *program, Dwfl *dwfl, const struct space_map *map)
{
	struct image *image = image_table_get(&program->scene.images, map->image);
	image_open(image, program->info, program->cache);
	const struct load_segment *segment = image_find_segment(image, map->page_offset);
	if (!segment)
		return;
	uint64_t bias = map->start - map->page_offset + segment->file_offset - segment->svma;
	int fd = image->kind == IMAGE_VDSO ? open_vdso() : -1;
	/* Once more for a second mapping of it: the same module. */
	dwfl_report_elf(dwfl, image->path, module_get_path(image->module), fd, bias, true);
}

static Dwfl *find_peer(struct program *program, const struct address_space *space)
{
	for (size_t i = 0; i < program->n_peers; i++) {
		if (program->peers[i].generation == space->generation)
			return program->peers[i].dwfl;
	}
	if (program->n_peers == SPACES_MAX) {
		for (size_t i = 0; i < program->n_peers; i++)
			dwfl_end(program->peers[i].dwfl);
		program->n_peers = 0;
	}
	Dwfl *dwfl = dwfl_begin(&callbacks);
	dwfl_report_begin(dwfl);
	for (uint32_t i = 0; i < space->n; i++)
		report(program, dwfl, &space->maps[i]);
	dwfl_report_end(dwfl, NULL, NULL);
	(void)dwfl_attach_state(dwfl, NULL, 1, &thread_callbacks, program);
	program->peers[program->n_peers++] = (struct peer){space->generation, dwfl, true};
	return dwfl;
}

static int add_frame(Dwfl_Frame *frame, void *context)
{
	struct program *program = context;
	Dwarf_Addr pc;
	bool is_activation;
	if (program->n_frames == FRAMES_MAX || !dwfl_frame_pc(frame, &pc, &is_activation))
		return DWARF_CB_ABORT;
	/* What lies beyond the thread's start. */
	if (pc)
		program->frames[program->n_frames++] = (struct frame){pc, is_activation};
	return DWARF_CB_OK;
}

/* 0: libdwfl thinks that it reached the end. */
static int unwind_by_peer(struct program *program, Dwfl *dwfl)
{
	program->n_frames = 0;
	return dwfl_getthread_frames(dwfl, 1, add_frame, program);
}

/* --- comparing --- */

static void print_place(const struct program *program, const struct address_space *space,
			uint64_t pc)
{
	const struct space_map *map = address_space_find(space, pc);
	if (!map) {
		printf("%#" PRIx64, pc);
		return;
	}
	const struct image *image = image_table_get(&program->scene.images, map->image);
	printf("%s+%#" PRIx64, image->path, pc - map->start + map->page_offset);
}

static void show(struct program *program, const struct address_space *space, size_t depth,
		 const char *how)
{
	const struct unwind_walk *walk = &program->stacks.walk;
	if (program->n_shown++ >= program->max_shown)
		return;
	printf("difference sample=%" PRIu64 " depth=%zu how=%s stop=\"%s\" callee=",
	       program->totals.n_samples, depth, how, unwind_stop_text(walk->stop));
	print_place(program, space, depth ? program->frames[depth - 1].pc : 0);
	printf(" peer=");
	print_place(program, space, program->frames[depth].pc);
	if (depth < walk->n) {
		printf(" ours=");
		print_place(program, space, walk->frames[depth].pc);
	}
	printf("\n");
}

/* Where ours stopped, and whether libdwfl could go on. */
static void show_stop(struct program *program, const struct address_space *space)
{
	const struct unwind_walk *walk = &program->stacks.walk;
	if (walk->stop == UNWIND_STOP_END || walk->stop == UNWIND_STOP_DUMP_SHORT ||
	    program->n_stops_shown++ >= program->max_shown)
		return;
	printf("stop sample=%" PRIu64 " depth=%" PRIu32 " stop=\"%s\" at=",
	       program->totals.n_samples, walk->n, unwind_stop_text(walk->stop));
	print_place(program, space, walk->frames[walk->n - 1].pc);
	printf("\n");
}

static void compare(struct program *program, const struct address_space *space)
{
	struct totals *totals = &program->totals;
	const struct unwind_walk *walk = &program->stacks.walk;
	size_t n = program->n_frames, depth = 0;
	while (depth < n && depth < walk->n && walk->frames[depth].pc == program->frames[depth].pc)
		depth++;
	totals->n_frames += walk->n;
	totals->n_peer_frames += n;
	totals->n_equal += depth;
	totals->n_samples_equal += depth == n;
	if (depth == n) {
		totals->n_further += walk->n - n;
	} else if (depth == walk->n) {
		totals->n_missing += n - depth;
		show(program, space, depth, "missing");
	} else {
		totals->n_wrong += n - depth;
		show(program, space, depth, "other");
	}
}

static void add_cost(struct costs *costs, enum timing timing, uint64_t ns, size_t n_frames)
{
	size_t n = costs->n[timing];
	if (!n_frames)
		return;
	if ((n & (n - 1)) == 0) {
		size_t capacity = n ? 2 * n : 1;
		costs->per_frame[timing] =
			mem_realloc(costs->per_frame[timing], capacity, sizeof(double));
		costs->per_sample[timing] =
			mem_realloc(costs->per_sample[timing], capacity, sizeof(double));
	}
	costs->per_frame[timing][n] = (double)ns / (double)n_frames;
	costs->per_sample[timing][n] = (double)ns;
	costs->n[timing]++;
}

static void unwind_both(struct program *program, const struct perf_record *record,
			const struct sample *taken, const struct address_space *space)
{
	struct totals *totals = &program->totals;
	struct user_stack *stacks = &program->stacks;
	const struct perf_event_attr *attr = &program->info->events[record->event_index].attr;
	uint64_t n_skipped = stacks->totals.skipped;
	struct sample sample = *taken;
	uint64_t begin = now_ns();
	user_stack_reset(stacks);
	user_stack_unwind(stacks, attr, space, record->misc, &sample);
	uint64_t end = now_ns();
	if (stacks->totals.skipped != n_skipped) {
		totals->n_skipped++;
		return;
	}
	add_cost(&program->costs, OURS_FIRST, end - begin, stacks->walk.n);
	totals->n_samples++;
	totals->n_ended += stacks->walk.stop == UNWIND_STOP_END;
	totals->stops[stacks->walk.stop]++;
	begin = now_ns();
	for (int i = 0; i < HOT_ROUNDS; i++) {
		sample = *taken;
		user_stack_reset(stacks);
		user_stack_unwind(stacks, attr, space, record->misc, &sample);
	}
	add_cost(&program->costs, OURS_AGAIN, (now_ns() - begin) / HOT_ROUNDS, stacks->walk.n);

	struct unwind_registers registers;
	if (!user_stack_read_registers(taken, attr->sample_regs_user, stacks->walk.machine,
				       program->info->is_swapped, &registers))
		abort();
	program->registers = &registers;
	program->stack = stacks->walk.stack;
	Dwfl *dwfl = find_peer(program, space);
	begin = now_ns();
	(void)unwind_by_peer(program, dwfl);
	add_cost(&program->costs, PEER_FIRST, now_ns() - begin, program->n_frames);
	begin = now_ns();
	totals->n_peer_ended += unwind_by_peer(program, dwfl) == 0;
	add_cost(&program->costs, PEER_AGAIN, now_ns() - begin, program->n_frames);
	compare(program, space);
	show_stop(program, space);
}

static struct error *feed(void *context, const struct perf_record *records, size_t n)
{
	struct program *program = context;
	for (size_t i = 0; i < n; i++) {
		struct sample sample;
		if (records[i].type != PERF_RECORD_SAMPLE) {
			const struct record_view view = scene_view(&program->scene, &records[i]);
			(void)scene_feed(&program->scene, &view);
			continue;
		}
		if (records[i].event_index >= program->info->n_events ||
		    !sample_read(&records[i], &program->info->events[records[i].event_index].attr,
				 program->info->is_swapped, &sample) ||
		    !user_stack_is_there(&sample))
			continue;
		const struct thread *thread =
			process_table_recent(&program->scene.processes, sample.pid, sample.tid);
		unwind_both(program, &records[i], &sample, thread->process->space);
	}
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

static double median(double *values, size_t n)
{
	if (!n)
		return 0;
	qsort(values, n, sizeof(*values), by_size);
	return values[n / 2];
}

static void print_costs(struct costs *costs)
{
	for (int i = 0; i < TIMING_N; i++) {
		printf("cost %s median ns: %.1f a frame, %.1f a sample\n", timing_names[i],
		       median(costs->per_frame[i], costs->n[i]),
		       median(costs->per_sample[i], costs->n[i]));
		mem_free(costs->per_frame[i]);
		mem_free(costs->per_sample[i]);
	}
}

static void print_totals(const struct totals *t)
{
	printf("totals samples=%" PRIu64 " skipped=%" PRIu64 " frames=%" PRIu64
	       " peer_frames=%" PRIu64 " equal=%" PRIu64 " missing=%" PRIu64 " other=%" PRIu64
	       " further=%" PRIu64 " equal_samples=%" PRIu64 " ended=%" PRIu64
	       " peer_ended=%" PRIu64 "\n",
	       t->n_samples, t->n_skipped, t->n_frames, t->n_peer_frames, t->n_equal, t->n_missing,
	       t->n_wrong, t->n_further, t->n_samples_equal, t->n_ended, t->n_peer_ended);
	for (int stop = 0; stop < UNWIND_STOP_N; stop++) {
		if (t->stops[stop])
			printf("stop %" PRIu64 " %s\n", t->stops[stop],
			       unwind_stop_text((enum unwind_stop)stop));
	}
}

static void die(struct error *err)
{
	fprintf(stderr, "dwfl_unwind: %s\n", error_text(err));
	exit(1);
}

int main(int argc, char **argv)
{
	struct record_source *source;
	if (argc < 2) {
		fprintf(stderr, "usage: dwfl_unwind FILE [LINES]\n");
		return 2;
	}
	/* Before anything is open: it starts a process. */
	const struct symcache_config config = {.trust_paths = true, .wants_unwind = true};
	struct program *program = mem_zalloc(1, sizeof(*program));
	program->cache = symcache_new(&config);
	const struct collector_file_options options = {0};
	struct error *err = collector_open_file(argv[1], &options, &source);
	if (err)
		die(err);
	program->info = record_source_info(source);
	program->max_shown = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	scene_init(&program->scene, program->info, program->cache);
	user_stack_init(&program->stacks, program->info, &program->scene.images, program->cache,
			true);
	err = record_source_drain(source, feed, program);
	if (err && error_get_code(err) != ERROR_NO_ENTRY)
		die(err);
	error_free(err);
	print_totals(&program->totals);
	print_costs(&program->costs);
	for (size_t i = 0; i < program->n_peers; i++)
		dwfl_end(program->peers[i].dwfl);
	user_stack_fini(&program->stacks);
	scene_fini(&program->scene);
	record_source_close(source);
	symcache_free(program->cache);
	mem_free(program);
	return 0;
}
