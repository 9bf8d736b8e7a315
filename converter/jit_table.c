/* SPDX-License-Identifier: Apache-2.0 */
#include "converter/jit_table.h"

#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/hash_seed.h"
#include "base/mem.h"
#include "converter/jit_map.h"

enum {
	SCRATCH_BYTES = JIT_DUMP_MAX_RECORD_BYTES,
	TAIL_BYTES = 64,
	/* Read at one look, so that a file that grows without end delays nothing. */
	LOOK_MAX_BYTES = 8 << 20,
	/* Read when a process ends, which may be often. */
	END_MAX_BYTES = 64 << 20,
};

struct map_reader {
	struct jit_file file;
	enum jit_file_state state;
	uint64_t offset;
	uint64_t news_ns; /* of the last look that brought something */
	struct jit_map map;
	struct jit_code_list codes;
	uint8_t tail[TAIL_BYTES]; /* what stands before offset */
	uint32_t n_tail;
};

struct dump_reader {
	struct jit_file file;
	enum jit_file_state state;
	uint32_t number; /* of its name */
	uint64_t offset;
	struct jit_dump dump;
	struct jit_code_list codes;
};

struct jit_scope {
	struct jit_table *table;
	struct jit_scope *previous, *next;
	struct jit_scope *parent;
	uint64_t forked_ns;
	uint64_t seen_ns; /* when it was made */
	uint32_t n_parents;
	uint32_t n_refs; /* of address spaces and children */
	uint32_t pid;
	uint32_t first_spot; /* + 1 */
	bool has_place, has_ended, has_samples;
	struct jit_place place;
	uint64_t next_look_ns, moment_ns;
	uint64_t n_cut;
	struct map_reader map;
	struct dump_reader *dumps[JIT_SCOPE_MAX_DUMPS];
	uint32_t n_dumps;
	/* Of children and own spots, while names are found. */
	struct jit_query *queries;
	uint32_t n_queries, query_capacity;
};

static bool is_same_host(const struct perf_source_info *source)
{
	struct utsname here;
	return source->is_live || (source->hostname && uname(&here) == 0 &&
				   strcmp(source->hostname, here.nodename) == 0);
}

void jit_table_init(struct jit_table *table, const struct perf_source_info *source,
		    struct symcache *cache)
{
	*table = (struct jit_table){
		.source = source,
		.cache = cache,
		.is_on = cache && symcache_gives_names(cache),
		.seed = hash_seed_make(),
	};
	hash_map_init(&table->by_key);
}

static void close_files(struct jit_scope *scope)
{
	jit_file_close(&scope->map.file);
	for (uint32_t i = 0; i < scope->n_dumps; i++)
		jit_file_close(&scope->dumps[i]->file);
	if (scope->has_place)
		jit_place_leave(&scope->place);
}

static void free_scope(struct jit_scope *scope)
{
	struct jit_table *table = scope->table;
	close_files(scope);
	if (scope->has_place)
		jit_place_close(&scope->place);
	jit_code_list_fini(&scope->map.codes);
	for (uint32_t i = 0; i < scope->n_dumps; i++) {
		jit_dump_fini(&scope->dumps[i]->dump);
		jit_code_list_fini(&scope->dumps[i]->codes);
		mem_free(scope->dumps[i]);
	}
	*(scope->previous ? &scope->previous->next : &table->first) = scope->next;
	*(scope->next ? &scope->next->previous : &table->last) = scope->previous;
	table->n_scopes--;
	mem_free(scope->queries);
	mem_free(scope);
}

void jit_table_fini(struct jit_table *table)
{
	while (table->last)
		free_scope(table->last);
	hash_map_fini(&table->by_key);
	mem_free(table->spots);
	mem_free(table->scratch);
	*table = (struct jit_table){0};
}

static struct jit_scope *make_scope(struct jit_table *table, uint32_t pid, uint64_t now_ns)
{
	if (table->n_scopes >= JIT_TABLE_MAX_SCOPES) {
		table->n_refused++;
		return NULL;
	}
	struct jit_scope *scope = mem_zalloc(1, sizeof(*scope));
	scope->table = table;
	scope->pid = pid;
	scope->n_refs = 1;
	scope->seen_ns = now_ns;
	scope->map.file = JIT_FILE_CLOSED;
	scope->map.state = JIT_FILE_ABSENT;
	jit_code_list_init(&scope->map.codes, &table->code_bytes);
	scope->previous = table->last;
	*(table->last ? &table->last->next : &table->first) = scope;
	table->last = scope;
	table->n_scopes++;
	return scope;
}

static void open_place(struct jit_scope *scope)
{
	const struct perf_source_info *source = scope->table->source;
	const struct jit_process process = {
		.pid = (int32_t)scope->pid,
		.seen_ns = source->is_live ? scope->seen_ns : 0,
		.recorded_at_ns = source->recorded_at_ns,
		.is_same_host = is_same_host(source),
	};
	if (!scope->has_place)
		symcache_open_jit_place(scope->table->cache, &process, &scope->place);
	scope->has_place = true;
}

struct jit_scope *jit_table_open(struct jit_table *table, uint32_t pid, uint64_t now_ns)
{
	struct jit_scope *scope = table->is_on ? make_scope(table, pid, now_ns) : NULL;
	if (scope && table->source->is_live)
		open_place(scope);
	return scope;
}

struct jit_scope *jit_scope_ref(struct jit_scope *scope)
{
	scope->n_refs++;
	return scope;
}

struct jit_scope *jit_scope_fork(struct jit_scope *parent, uint32_t pid, uint64_t now_ns)
{
	bool is_deep = parent->n_parents >= JIT_SCOPE_MAX_PARENTS;
	struct jit_scope *scope = is_deep ? NULL : make_scope(parent->table, pid, now_ns);
	if (!scope)
		return jit_scope_ref(parent);
	scope->parent = jit_scope_ref(parent);
	scope->forked_ns = now_ns;
	scope->n_parents = parent->n_parents + 1;
	return scope;
}

/* --- reading --- */

static uint8_t *scratch_of(struct jit_table *table)
{
	if (!table->scratch)
		table->scratch = mem_alloc(SCRATCH_BYTES);
	return table->scratch;
}

static void keep_tail(struct map_reader *reader, const uint8_t *bytes, size_t n)
{
	reader->n_tail = n < TAIL_BYTES ? (uint32_t)n : TAIL_BYTES;
	memcpy(reader->tail, bytes + n - reader->n_tail, reader->n_tail);
}

/* A file that was written anew, in place or beside, is read from its beginning. */
static bool is_rewritten(const struct map_reader *reader, uint64_t size)
{
	uint8_t now[TAIL_BYTES];
	if (size < reader->offset)
		return true;
	return jit_file_read(&reader->file, reader->offset - reader->n_tail, now, reader->n_tail) !=
		       reader->n_tail ||
	       memcmp(now, reader->tail, reader->n_tail) != 0;
}

static void start_over(struct map_reader *reader)
{
	reader->offset = 0;
	reader->n_tail = 0;
	reader->map.is_in_long_line = false;
}

static void open_map(struct jit_scope *scope)
{
	struct map_reader *reader = &scope->map;
	if (reader->file.fd >= 0) {
		if (!jit_place_has_other_map(&scope->place, &reader->file))
			return;
		struct jit_file other = JIT_FILE_CLOSED;
		if (jit_place_open_map(&scope->place, &other) != JIT_FILE_OK)
			return;
		jit_file_close(&reader->file);
		reader->file = other;
		start_over(reader);
		return;
	}
	reader->state = jit_place_open_map(&scope->place, &reader->file);
}

static void read_map(struct jit_scope *scope, uint64_t seen_ns, uint64_t max_bytes, bool is_last)
{
	struct map_reader *reader = &scope->map;
	open_map(scope);
	if (reader->file.fd < 0)
		return;
	uint64_t size = jit_file_size(&reader->file);
	if (reader->offset && is_rewritten(reader, size)) {
		start_over(reader);
		size = jit_file_size(&reader->file);
	}
	if (size > JIT_FILE_MAX_MAP_BYTES) {
		reader->state = JIT_FILE_TOO_LARGE;
		size = JIT_FILE_MAX_MAP_BYTES;
	}
	char *bytes = (char *)scratch_of(scope->table);
	uint32_t n_before = reader->codes.n;
	for (uint64_t n_done = 0; reader->offset < size && n_done < max_bytes;) {
		size_t want = size - reader->offset < SCRATCH_BYTES
				      ? (size_t)(size - reader->offset)
				      : SCRATCH_BYTES;
		size_t n = jit_file_read(&reader->file, reader->offset, bytes, want);
		bool is_end = is_last && reader->offset + n >= size;
		size_t taken =
			jit_map_parse(&reader->map, bytes, n, is_end, seen_ns, &reader->codes);
		if (!taken)
			break;
		keep_tail(reader, (const uint8_t *)bytes, taken);
		reader->offset += taken;
		n_done += taken;
	}
	if (reader->codes.n != n_before)
		reader->news_ns = seen_ns;
}

static void read_dump(struct jit_scope *scope, struct dump_reader *reader, uint64_t max_bytes)
{
	if (reader->file.fd < 0)
		return;
	uint64_t size = jit_file_size(&reader->file);
	uint8_t *bytes = scratch_of(scope->table);
	size_t at = 0, n = 0; /* what is at hand, and what of it was read */
	for (uint64_t n_done = 0; n_done < max_bytes && reader->offset < size;) {
		uint64_t left = size - reader->offset;
		uint64_t taken = jit_dump_read(&reader->dump, bytes + at, n - at, left);
		if (!taken) {
			size_t want = left < SCRATCH_BYTES ? (size_t)left : SCRATCH_BYTES;
			if (n - at == want) /* it was all at hand */
				break;
			n = jit_file_read(&reader->file, reader->offset, bytes, want);
			at = 0;
			taken = jit_dump_read(&reader->dump, bytes, n, left);
			if (!taken)
				break;
		}
		reader->offset += taken;
		n_done += taken;
		at = taken < n - at ? at + (size_t)taken : n;
	}
	if (reader->dump.has_header && reader->dump.state == JIT_DUMP_OK &&
	    reader->dump.pid != reader->number)
		reader->dump.state = JIT_DUMP_OTHER_PROCESS;
}

static void look(struct jit_scope *scope, uint64_t now_ns, uint64_t max_bytes, bool is_last)
{
	if (scope->has_ended)
		return;
	open_place(scope);
	read_map(scope, now_ns, max_bytes, is_last);
	for (uint32_t i = 0; i < scope->n_dumps; i++)
		read_dump(scope, scope->dumps[i], max_bytes);
}

void jit_scope_end(struct jit_scope *scope)
{
	/* Of a recording the map is read at the end; whether the process ended is no matter. */
	if (!scope->table->source->is_live)
		return;
	look(scope, scope->table->latest_ns + 1, END_MAX_BYTES, false);
	/* What is left, but for half a line, will not be read any more. */
	if (scope->map.file.fd >= 0 &&
	    jit_file_size(&scope->map.file) > scope->map.offset + JIT_MAP_MAX_LINE_BYTES)
		scope->n_cut++;
	scope->has_ended = true;
	close_files(scope);
}

void jit_scope_unref(struct jit_scope *scope)
{
	while (scope && --scope->n_refs == 0) {
		struct jit_scope *parent = scope->parent;
		if (scope->first_spot) {
			jit_scope_end(scope); /* and is freed at the window's end */
			return;
		}
		free_scope(scope);
		scope = parent;
	}
}

bool jit_table_is_dump(const char *path, uint32_t *number_out)
{
	static const char prefix[] = "jit-", suffix[] = ".dump";
	const char *name = strrchr(path, '/');
	name = name ? name + 1 : path;
	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return false;
	name += strlen(prefix);
	size_t n = strspn(name, "0123456789");
	if (!n || n > 9 || strncmp(name + n, suffix, strlen(suffix)) != 0)
		return false;
	const char *rest = name + n + strlen(suffix);
	if (*rest && strcmp(rest, " (deleted)") != 0)
		return false;
	uint32_t number = 0;
	for (size_t i = 0; i < n; i++)
		number = number * 10 + (uint32_t)(name[i] - '0');
	if (number_out)
		*number_out = number;
	return true;
}

void jit_scope_add_dump(struct jit_scope *scope, const struct jit_mapping *mapping)
{
	const struct perf_source_info *source = scope->table->source;
	uint32_t number = 0;
	if (!jit_table_is_dump(mapping->path, &number))
		return;
	for (uint32_t i = 0; i < scope->n_dumps; i++) {
		if (scope->dumps[i]->number == number)
			return;
	}
	if (scope->n_dumps == JIT_SCOPE_MAX_DUMPS) {
		scope->table->n_refused++;
		return;
	}
	open_place(scope);
	struct dump_reader *reader = mem_zalloc(1, sizeof(*reader));
	scope->dumps[scope->n_dumps++] = reader;
	reader->number = number;
	reader->file = JIT_FILE_CLOSED;
	jit_code_list_init(&reader->codes, &scope->table->code_bytes);
	jit_dump_init(&reader->dump, &reader->codes);
	reader->state = jit_place_open_dump(&scope->place, mapping, &reader->file);
	if (reader->state == JIT_FILE_OK && source->clockid != CLOCK_MONOTONIC)
		reader->dump.state = JIT_DUMP_OTHER_CLOCK;
	if (source->is_live)
		return;
	read_dump(scope, reader, UINT64_MAX);
	jit_code_sort(&reader->codes);
	jit_file_close(&reader->file);
}

/* --- from samples to spots --- */

/* Of a recording: where its dumps changed last; what they hold is known. */
static uint64_t recorded_moment(const struct jit_scope *scope, uint64_t time_ns)
{
	uint64_t moment = 0;
	for (uint32_t i = 0; i < scope->n_dumps; i++) {
		uint64_t change = jit_code_moment(&scope->dumps[i]->codes, time_ns);
		moment = change > moment ? change : moment;
	}
	return moment;
}

static uint64_t moment_length(const struct jit_table *table)
{
	return (uint64_t)JIT_MOMENT_NS << (table->n_spots / JIT_MOMENT_DOUBLING);
}

uint64_t jit_scope_look(struct jit_scope *scope, uint64_t time_ns)
{
	struct jit_table *table = scope->table;
	scope->has_samples = true;
	/* A sample without time sees what came last. */
	if (!table->source->is_live)
		return recorded_moment(scope, time_ns ? time_ns : UINT64_MAX);
	if (!time_ns)
		time_ns = table->latest_ns;
	if (time_ns > table->latest_ns)
		table->latest_ns = time_ns;
	if (time_ns >= scope->next_look_ns) {
		look(scope, time_ns, LOOK_MAX_BYTES, false);
		scope->next_look_ns = time_ns + JIT_LOOK_NS;
	}
	if (!scope->n_dumps)
		return scope->map.news_ns;
	uint64_t length = moment_length(table);
	if (length > table->late_ns)
		table->late_ns = length;
	if (time_ns < scope->moment_ns || time_ns - scope->moment_ns >= length)
		scope->moment_ns = time_ns;
	return scope->moment_ns;
}

static uint64_t hash_spot(const struct jit_table *table, const struct jit_spot *spot)
{
	uint64_t odd = table->seed | 1;
	uint64_t place = hash_mix(spot->vaddr ^ (uint64_t)(uintptr_t)spot->scope * odd);
	uint64_t rest = hash_mix(spot->moment_ns ^ spot->address * odd);
	return hash_mix(place + rest * odd + spot->image);
}

static bool is_alike(const struct jit_spot *a, const struct jit_spot *b)
{
	return a->scope == b->scope && a->vaddr == b->vaddr && a->moment_ns == b->moment_ns &&
	       a->address == b->address && a->image == b->image;
}

uint32_t jit_scope_spot(struct jit_scope *scope, uint64_t moment_ns, uint64_t vaddr, uint32_t image,
			uint64_t address)
{
	struct jit_table *table = scope->table;
	struct jit_spot spot = {.scope = scope,
				.vaddr = vaddr,
				.moment_ns = moment_ns,
				.address = address,
				.image = image};
	if (table->n_spots >= JIT_TABLE_MAX_SPOTS) {
		table->n_refused++;
		return JIT_SPOT_NONE;
	}
	uint64_t *first = hash_map_put(&table->by_key, hash_spot(table, &spot), NULL);
	for (uint32_t i = (uint32_t)*first; i; i = table->spots[i - 1].next_alike) {
		if (is_alike(&table->spots[i - 1], &spot))
			return i - 1;
	}
	if (table->n_spots == table->spot_capacity) {
		table->spot_capacity = table->spot_capacity ? 2 * table->spot_capacity : 256;
		table->spots =
			mem_realloc(table->spots, table->spot_capacity, sizeof(*table->spots));
	}
	uint32_t index = table->n_spots++;
	spot.next_alike = (uint32_t)*first;
	spot.next_in_scope = scope->first_spot;
	table->spots[index] = spot;
	*first = scope->first_spot = index + 1;
	return index;
}

/* --- names --- */

static void ask(struct jit_scope *scope, uint32_t spot, uint64_t moment_ns)
{
	if (scope->n_queries == scope->query_capacity) {
		scope->query_capacity = scope->query_capacity ? 2 * scope->query_capacity : 64;
		scope->queries =
			mem_realloc(scope->queries, scope->query_capacity, sizeof(*scope->queries));
	}
	scope->queries[scope->n_queries++] = (struct jit_query){
		.vaddr = scope->table->spots[spot].vaddr, .moment_ns = moment_ns, .tag = spot};
}

/* Takes out of the queries those that the list answers. */
static void answer_from(struct jit_scope *scope, struct jit_code_list *codes, uint64_t late_ns)
{
	uint32_t n_open = 0;
	if (!codes->n)
		return;
	jit_code_find(codes, scope->queries, scope->n_queries, late_ns);
	for (uint32_t i = 0; i < scope->n_queries; i++) {
		const struct jit_query query = scope->queries[i];
		if (query.code == JIT_CODE_NONE) {
			scope->queries[n_open++] = query;
			continue;
		}
		struct jit_spot *spot = &scope->table->spots[query.tag];
		spot->codes = codes;
		spot->code = query.code;
	}
	scope->n_queries = n_open;
}

static void answer(struct jit_scope *scope)
{
	struct jit_table *table = scope->table;
	for (uint32_t i = scope->first_spot; i; i = table->spots[i - 1].next_in_scope)
		ask(scope, i - 1, table->spots[i - 1].moment_ns);
	/* A jitdump knows times, a map does not. */
	for (uint32_t i = scope->n_dumps; i-- > 0;) {
		struct dump_reader *reader = scope->dumps[i];
		if (reader->dump.state == JIT_DUMP_OK || reader->dump.state == JIT_DUMP_DAMAGED)
			answer_from(scope, &reader->codes, table->late_ns);
	}
	answer_from(scope, &scope->map.codes, UINT64_MAX);
	for (uint32_t i = 0; scope->parent && i < scope->n_queries; i++)
		ask(scope->parent, scope->queries[i].tag, scope->forked_ns);
	scope->n_queries = 0;
}

static void count_one(uint64_t *count, int32_t *pid, const struct jit_scope *scope)
{
	if (!(*count)++)
		*pid = (int32_t)scope->pid;
}

static void count(struct jit_table *table)
{
	struct jit_totals *totals = &table->totals;
	*totals = (struct jit_totals){.n_left_out = table->n_refused};
	for (const struct jit_scope *scope = table->first; scope; scope = scope->next) {
		if (!scope->has_place)
			continue;
		count_one(&totals->maps[scope->map.state], &totals->map_pids[scope->map.state],
			  scope);
		if (scope->has_samples && !scope->first_spot && scope->map.codes.n)
			count_one(&totals->n_unmet, &totals->unmet_pid, scope);
		totals->n_malformed += scope->map.map.n_malformed;
		totals->n_left_out += scope->map.codes.n_left_out + scope->n_cut;
		for (uint32_t i = 0; i < scope->n_dumps; i++) {
			const struct dump_reader *reader = scope->dumps[i];
			count_one(&totals->dumps[reader->state], &totals->dump_pids[reader->state],
				  scope);
			if (reader->state == JIT_FILE_OK)
				count_one(&totals->dump_states[reader->dump.state],
					  &totals->dump_state_pids[reader->dump.state], scope);
			totals->n_malformed += reader->dump.n_skipped;
			totals->n_left_out += reader->codes.n_left_out;
		}
	}
}

void jit_table_resolve(struct jit_table *table)
{
	bool is_recorded = !table->source->is_live;
	for (struct jit_scope *scope = table->last; scope; scope = scope->previous) {
		/* Of a process without samples only what its children ask for is wanted. */
		if (!scope->has_samples && !scope->n_queries)
			continue;
		look(scope, table->latest_ns + 1, UINT64_MAX, is_recorded);
		answer(scope);
	}
	count(table);
}

bool jit_table_name(const struct jit_table *table, uint32_t index, struct jit_frame *out)
{
	const struct jit_spot *spot = &table->spots[index];
	if (!spot->codes || spot->codes->codes[spot->code].name == JIT_CODE_NONE)
		return false;
	const struct jit_code *code = &spot->codes->codes[spot->code];
	const struct jit_line *line = jit_code_line(spot->codes, code, spot->vaddr);
	*out = (struct jit_frame){.raw = jit_code_text(spot->codes, code->name)};
	if (line) {
		out->file = jit_code_text(spot->codes, line->file);
		out->line = line->line;
	}
	return true;
}

void jit_table_end_window(struct jit_table *table)
{
	struct jit_scope *previous;
	hash_map_clear(&table->by_key);
	table->n_spots = 0;
	table->n_refused = 0;
	table->late_ns = 0;
	/* Children before parents, which they hold. */
	for (struct jit_scope *scope = table->last; scope; scope = previous) {
		previous = scope->previous;
		scope->first_spot = 0;
		scope->has_samples = false;
		if (scope->n_refs)
			continue;
		if (scope->parent)
			scope->parent->n_refs--;
		free_scope(scope);
	}
}
