/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/module.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mem.h"
#include "symcache/content_id.h"
#include "symcache/file_places.h"
#include "symcache/host_file.h"
#include "symcache/mini_debug.h"
#include "symcache/path_open.h"
#include "symcache/vdso_image.h"

#define LOG_AREA "symcache"
#include "base/log.h"

#define DELETED_SUFFIX " (deleted)"

/* A place where the file may be. */
struct candidate {
	const char *root; /* as for path_open */
	const char *path;
	bool is_process_link; /* map_files or exe: what the process has, whatever its path */
	bool is_of_process;   /* found through the process */
	const struct file_place *place; /* where it was looked for by build-id; NULL = by path */
};

struct opening {
	const struct symcache_config *config;
	const struct module_query *query;
	struct module *module;
};

size_t module_path_length(const char *path)
{
	size_t n = strlen(path);
	size_t suffix = strlen(DELETED_SUFFIX);
	if (n > suffix && strcmp(path + n - suffix, DELETED_SUFFIX) == 0)
		n -= suffix;
	return n;
}

static enum module_state state_of_errno(int errno_value)
{
	switch (errno_value) {
	case EACCES:
	case EPERM:
	case ELOOP:
	case EXDEV:
		return MODULE_DENIED;
	case ENODEV:
	case ENXIO:
		return MODULE_NO_FILE;
	case EMFILE:
	case ENFILE:
		return MODULE_NO_DESCRIPTOR;
	default:
		return MODULE_NOT_FOUND;
	}
}

/* Of several failures the one that says most is reported. */
static int weight_of(enum module_state state)
{
	switch (state) {
	case MODULE_NOT_FOUND:
		return 0;
	case MODULE_NO_FILE:
		return 1;
	case MODULE_DENIED:
		return 2;
	case MODULE_NOT_ELF:
		return 3;
	case MODULE_NOT_CONFIRMED:
		return 4;
	default:
		return 5;
	}
}

/* Not all file systems tell: then the inode number has to do. */
static bool has_other_generation(int fd, uint64_t wanted)
{
	long generation = 0;
	if (!wanted || ioctl(fd, FS_IOC_GETVERSION, &generation) < 0 || !generation)
		return false;
	return (uint32_t)generation != (uint32_t)wanted;
}

/* Overwritten in place, a file keeps its inode. */
static bool is_younger(const struct stat *st, uint64_t recorded_at_ns)
{
	uint64_t modified_ns =
		(uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;
	return recorded_at_ns && modified_ns > recorded_at_ns;
}

static enum module_state judge_inode(int fd, const struct module_query *query)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return MODULE_NOT_CONFIRMED;
	bool is_same = st.st_ino == query->inode && major(st.st_dev) == query->device_major &&
		       minor(st.st_dev) == query->device_minor &&
		       !has_other_generation(fd, query->inode_generation) &&
		       !is_younger(&st, query->recorded_at_ns);
	return is_same ? MODULE_OK : MODULE_OTHER_FILE;
}

static bool link_reads(const char *link, const char *path)
{
	char target[PATH_MAX + 1];
	ssize_t n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = 0;
	size_t path_bytes = module_path_length(path);
	return module_path_length(target) == path_bytes && memcmp(target, path, path_bytes) == 0;
}

/* The file's own build-id counts, not the content's hash: records have none of those. */
static enum module_state judge(const struct opening *opening, const struct candidate *candidate,
			       int fd, const struct build_id *found)
{
	const struct module_query *query = opening->query;
	if (build_id_is_set(&query->build_id))
		return build_id_equal(&query->build_id, found) ? MODULE_OK : MODULE_OTHER_FILE;
	if (query->has_inode) {
		enum module_state state = judge_inode(fd, query);
		if (state != MODULE_OK && opening->config->trust_paths)
			return MODULE_OK_TRUSTED;
		return state;
	}
	if (candidate->is_process_link && link_reads(candidate->path, query->path))
		return MODULE_OK;
	return opening->config->trust_paths ? MODULE_OK_TRUSTED : MODULE_NOT_CONFIRMED;
}

static struct file_stamp stamp_of(const struct stat *st)
{
	return (struct file_stamp){
		.device = st->st_dev,
		.inode = st->st_ino,
		.size = (uint64_t)st->st_size,
		.modified_s = st->st_mtim.tv_sec,
		.modified_ns = st->st_mtim.tv_nsec,
	};
}

/* A file that is at neither path any more was unlinked or renamed, which leaves its bytes alone. */
static bool is_unchanged(const struct module *module)
{
	struct stat open_file;
	if (module->fd >= 0 && fstat(module->fd, &open_file) == 0) {
		struct file_stamp now = stamp_of(&open_file);
		return memcmp(&now, &module->stamp, sizeof(now)) == 0;
	}
	const char *const paths[] = {module->opened_path, module->path};
	for (size_t i = 0; module->opened_path && i < ARRAY_LEN(paths); i++) {
		struct stat st;
		if (stat(paths[i], &st) < 0)
			continue;
		struct file_stamp now = stamp_of(&st);
		if (now.device == module->stamp.device && now.inode == module->stamp.inode)
			return memcmp(&now, &module->stamp, sizeof(now)) == 0;
	}
	return true;
}

/* A file that its process sees, and this host does not. */
static bool is_elsewhere(const struct module *module, int fd)
{
	return !host_file_process_shares_root(module->pid) && !host_file_is_at(fd, module->path);
}

/* Takes fd, of the file at the candidate's place. */
static enum module_state take_file(struct opening *opening, const struct candidate *candidate,
				   int taken)
{
	struct module *module = opening->module;
	CLEANUP(cleanup_fd) int fd = taken;
	struct stat st;
	if (fstat(fd, &st) < 0)
		return MODULE_NOT_FOUND;
	struct file_stamp stamp = stamp_of(&st);
	struct elf_image image;
	struct error *err = elf_image_open(&image, fd);
	enum module_state state = MODULE_NOT_ELF;
	if (!err)
		state = judge(opening, candidate, fd, &image.build_id);
	if (state == MODULE_OK || state == MODULE_OK_TRUSTED) {
		module->fd = fd;
		module->image = image;
		module->has_image = true;
		module->opened_path =
			mem_format("%s%s", candidate->root ? candidate->root : "", candidate->path);
		module->stamp = stamp;
		module->owner = st.st_uid;
		module->is_elsewhere = candidate->is_of_process && is_elsewhere(module, fd);
		module->is_foreign = module->is_elsewhere || !host_file_is_trusted_owner(st.st_uid);
		module->changed_s = st.st_ctim.tv_sec;
		module->changed_ns = st.st_ctim.tv_nsec;
		fd = -1;
		return state;
	}
	if (!err)
		elf_image_fini(&image);
	error_free(err);
	return state;
}

static enum module_state try_candidate(struct opening *opening, const struct candidate *candidate)
{
	CLEANUP(cleanup_fd) int fd = -1;
	int errno_value = path_open(candidate->root, candidate->path, &fd);
	if (errno_value)
		return state_of_errno(errno_value);
	if (candidate->place && !file_places_may_use(candidate->place, fd))
		return MODULE_DENIED;
	int taken = fd;
	fd = -1;
	return take_file(opening, candidate, taken);
}

/* Keeps the best state so far; true when the search is over. */
static bool try_next(struct opening *opening, const struct candidate *candidate)
{
	struct module *module = opening->module;
	enum module_state state = try_candidate(opening, candidate);
	if (module->has_image || weight_of(state) > weight_of(module->state))
		module->state = state;
	return module->has_image;
}

static bool open_through_process(struct opening *opening)
{
	const struct module_query *query = opening->query;
	if (query->pid <= 0)
		return false;
	char path[128];
	struct candidate link = {.path = path, .is_process_link = true, .is_of_process = true};
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, query->pid,
		 query->map_start, query->map_end);
	if (query->map_end > query->map_start && try_next(opening, &link))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/exe", query->pid);
	if (link_reads(path, query->path) && try_next(opening, &link))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/root", query->pid);
	struct candidate below = {
		.root = path, .path = opening->module->path, .is_of_process = true};
	return *opening->module->path == '/' && try_next(opening, &below);
}

/* What the kernel names in mappings that no file stands behind. */
static bool is_file_path(const char *path)
{
	static const char *const not_files[] = {"//", "/memfd:", "/anon_hugepage", "/SYSV",
						"/[aio]"};
	if (*path != '/')
		return false;
	for (size_t i = 0; i < ARRAY_LEN(not_files); i++) {
		if (strncmp(path, not_files[i], strlen(not_files[i])) == 0)
			return false;
	}
	return true;
}

/* What was found on the way stands, unless one of these is the file. */
static void open_by_build_id(struct opening *opening)
{
	struct module *module = opening->module;
	const struct symcache_config *config = opening->config;
	enum module_state state = module->state;
	struct file_place_list list;
	file_places_list(config->places, config->debug_roots, &module->build_id, true, &list);
	for (size_t i = 0; i < list.n && !module->has_image; i++) {
		const struct file_place *place = &list.items[i];
		const struct candidate candidate = {.path = place->path, .place = place};
		module->state = MODULE_NOT_FOUND;
		(void)try_next(opening, &candidate);
	}
	file_place_list_fini(&list);
	if (!module->has_image)
		module->state = state;
}

static void open_file(struct opening *opening)
{
	struct module *module = opening->module;
	const struct symcache_config *config = opening->config;
	bool is_file = is_file_path(module->path);
	bool may_be_mapped = is_file || strncmp(module->path, "/memfd:", 7) == 0;
	module->state = MODULE_NOT_FOUND;
	if (config->is_live && may_be_mapped && open_through_process(opening))
		return;
	bool has_id = build_id_is_set(&module->build_id);
	if (!is_file && (*module->path || !has_id)) {
		module->state = MODULE_NO_FILE;
		return;
	}
	const struct candidate here = {.root = config->sysroot, .path = module->path};
	if (is_file && try_next(opening, &here))
		return;
	if (has_id)
		open_by_build_id(opening);
}

static void open_vdso(struct opening *opening)
{
	struct module *module = opening->module;
	const struct build_id *wanted = &opening->query->build_id;
	module->state = MODULE_NO_FILE;
	/* That of a 32-bit process is another one. */
	bool is_32 = opening->query->map_end && opening->query->map_end <= UINT32_MAX;
	if (!build_id_is_set(wanted) && (!opening->config->is_live || is_32))
		return;
	size_t n = 0;
	module->copy = vdso_image_copy(&n);
	if (!module->copy)
		return;
	struct error *err = elf_image_init(&module->image, module->copy, n);
	if (!err && (!build_id_is_set(wanted) || build_id_equal(wanted, &module->image.build_id))) {
		module->has_image = true;
		module->state = MODULE_OK;
		return;
	}
	error_free(err);
	elf_image_fini(&module->image);
	mem_free(TAKE(module->copy));
}

/* The same file, found once more; -1 when it has no path any more. */
static int reopen_file(const struct module *module)
{
	const char *const paths[] = {module->opened_path, module->path};
	for (size_t i = 0; module->opened_path && i < ARRAY_LEN(paths); i++) {
		CLEANUP(cleanup_fd) int fd = -1;
		struct stat st;
		if (path_open(NULL, paths[i], &fd) || fstat(fd, &st) < 0)
			continue;
		struct file_stamp found = stamp_of(&st);
		if (memcmp(&found, &module->stamp, sizeof(found)) == 0) {
			int out = fd;
			fd = -1;
			return out;
		}
	}
	return -1;
}

void module_close_file(struct module *module)
{
	if (module->fd >= 0)
		close(module->fd);
	module->fd = module->image.fd = -1;
}

/* Whether the file can be read, once more where its descriptor was closed. */
static bool open_again(struct module *module)
{
	if (module->fd < 0 && !module->copy)
		module->fd = module->image.fd = reopen_file(module);
	return module->fd >= 0 || module->copy;
}

/* Reads the file; once is enough, for what was written to since is not asked again. */
static bool find_content_id(struct module *module)
{
	if (build_id_is_set(&module->content_id))
		return true;
	if (module->copy) {
		module->content_id = content_id_of_file(module->copy, module->image.size);
		return true;
	}
	if (!open_again(module))
		return false;
	struct error *err =
		content_id_of_fd(module->fd, 0, module->image.size, &module->content_id);
	if (err)
		log_debug("file not hashed path=%s reason=\"%s\"", module->path, error_text(err));
	error_free(err);
	return !err;
}

struct module *module_new(const struct symcache_config *config, const struct module_query *query)
{
	struct module *module = mem_zalloc(1, sizeof(*module));
	module->path = mem_format("%.*s", (int)module_path_length(query->path), query->path);
	module->build_id = query->build_id;
	module->unwind_state = UNWIND_NOT_ASKED;
	module->pid = query->pid;
	module->fd = -1;
	struct opening opening = {.config = config, .query = query, .module = module};
	if (strcmp(module->path, "[vdso]") == 0)
		open_vdso(&opening);
	else
		open_file(&opening);
	if (module->has_image && !build_id_is_set(&module->build_id)) {
		if (build_id_is_set(&module->image.build_id))
			module->build_id = module->image.build_id;
		else if (find_content_id(module))
			module->build_id = module->content_id;
	}
	return module;
}

/* Segments and build-id stay. */
static void let_go(struct module *module)
{
	module_close_file(module);
	elf_image_trim(&module->image);
	mem_free(TAKE(module->copy));
	module->image.data = NULL;
	mem_free(TAKE(module->image.sections));
	module->image.n_sections = 0;
	module->image.name_section = 0;
}

bool module_is_foreign(const struct module *module)
{
	return module->is_foreign;
}

bool module_is_same_binary(struct module *a, struct module *b)
{
	if (!b->is_foreign)
		return !a->is_foreign;
	if (a->stamp.inode == b->stamp.inode && a->stamp.device == b->stamp.device)
		return true;
	bool may_differ_beside =
		a->is_foreign && (a->is_elsewhere || b->is_elsewhere || a->owner != b->owner);
	return !may_differ_beside && a->image.size == b->image.size && find_content_id(a) &&
	       find_content_id(b) && build_id_equal(&a->content_id, &b->content_id);
}

void module_free(struct module *module)
{
	if (!module)
		return;
	let_go(module);
	unwind_table_close(&module->unwind);
	symbol_outcome_fini(&module->symbols);
	if (module->debug)
		debug_file_close(module->debug);
	mem_free(module->debug);
	elf_image_fini(&module->image);
	mem_free(module->fetch);
	mem_free(module->opened_path);
	mem_free(module->path);
	mem_free(module);
}

static bool check_lost(struct module *module)
{
	if (!module->is_lost && (!is_unchanged(module) || !open_again(module))) {
		module->is_lost = true;
		log_debug("file written to since it was opened path=%s", module->path);
		let_go(module);
	}
	return module->is_lost;
}

/* For the builder, which takes descriptors alone. */
static int copy_vdso(const struct module *module)
{
	CLEANUP(cleanup_fd) int fd = memfd_create("perfpipe-module", MFD_CLOEXEC);
	if (fd < 0)
		return -1;
	struct error *err = file_write(fd, module->copy, module->image.size);
	if (err) {
		log_debug("file not copied path=%s reason=\"%s\"", module->path, error_text(err));
		error_free(err);
		return -1;
	}
	int out = fd;
	fd = -1;
	return out;
}

static int open_binary(const struct module *module)
{
	return module->copy ? copy_vdso(module) : fcntl(module->fd, F_DUPFD_CLOEXEC, 0);
}

/* The separate debug file, unless the binary has all that there can be. */
static void find_debug_file(struct module *module, const struct symcache_config *config,
			    const char *target_root)
{
	const struct debug_file_query query = {
		.image = &module->image,
		.path = module->path,
		.target_root = target_root,
		.roots = config->debug_roots,
		.places = config->places,
		.is_target_elsewhere = module->is_elsewhere,
	};
	module->debug = mem_zalloc(1, sizeof(*module->debug));
	if (!module->copy && symbol_supply_quality_of(&module->image) < SYMBOL_QUALITY_DWARF)
		(void)debug_file_open(&query, module->debug);
}

/* Versions of a file that is not hashed whole are told apart by what changes with it. */
static void add_version(const struct module *module, struct build_id *id)
{
	if (module->image.size <= CONTENT_ID_WHOLE_BYTES)
		return;
	const struct {
		struct file_stamp stamp;
		int64_t changed_s, changed_ns;
	} of_file = {module->stamp, module->changed_s, module->changed_ns};
	const struct build_id version = content_id_of_file(&of_file, sizeof(of_file));
	content_id_extend(id, &version);
}

/* Two users' files of one content may have other files beside them. */
static void add_content(const struct module *module, struct build_id *id)
{
	uint8_t parts[BUILD_ID_MAX_BYTES + sizeof(module->owner)];
	size_t n = module->content_id.size;
	memcpy(parts, module->content_id.bytes, n);
	memcpy(parts + n, &module->owner, sizeof(module->owner));
	const struct build_id hash = content_id_of_file(parts, n + sizeof(module->owner));
	content_id_extend(id, &hash);
}

/*
 * The file's own id where it has one, not what the record says. Anybody can write any build-id into
 * a file of his own: foreign ones are known by their content too, so that they never stand for a
 * program of the system. False when the content cannot be read.
 */
static bool make_file_id(struct module *module, struct build_id *out)
{
	const struct elf_image *image = &module->image;
	bool has_id = build_id_is_set(&image->build_id);
	*out = has_id ? image->build_id : module->build_id;
	if (module_is_foreign(module)) {
		if (!find_content_id(module))
			return false;
		add_content(module, out);
		add_version(module, out);
	} else if (!has_id) {
		add_version(module, out);
	}
	return true;
}

static struct error *hash_section(const struct elf_image *image, const struct elf_section *section,
				  struct build_id *out)
{
	if (!image->spans) {
		struct cursor c = elf_image_section(image, section);
		*out = content_id_of_file(c.next, cursor_left(&c));
		return NULL;
	}
	uint64_t n = section->type == SHT_NOBITS ? 0 : section->size;
	return content_id_of_fd(image->fd, section->file_offset, n, out);
}

/*
 * A linker's build-id covers code, data, dynamic names and debug sections, but not .symtab: two
 * binaries that differ in the names of static functions alone share it. So symbols that come from
 * there are known by the build-id with a hash of their names behind; likewise .gnu_debugdata, which
 * is put in after the link. False when these cannot be read.
 */
static bool add_names_hash(const struct module *module, struct build_id *id)
{
	const struct elf_image *image = &module->image;
	const struct elf_section *table = elf_image_find_type(image, SHT_SYMTAB);
	if (!table && module->debug->is_open) {
		image = &module->debug->image;
		table = elf_image_find_type(image, SHT_SYMTAB);
	}
	const struct elf_section *hashed =
		table && table->link < image->n_sections ? &image->sections[table->link] : NULL;
	if (!table) {
		image = &module->image;
		hashed = mini_debug_find(image);
	}
	if (id->kind != BUILD_ID_GNU || !hashed)
		return true;
	struct build_id hash;
	struct error *err = hash_section(image, hashed, &hash);
	if (err)
		log_debug("names not hashed path=%s reason=\"%s\"", module->path, error_text(err));
	else
		content_id_extend(id, &hash);
	error_free(err);
	return !err;
}

/* What a debug file says that anybody may have put there holds for that very file alone. */
static bool add_debug_content(const struct module *module, struct build_id *id)
{
	const struct debug_file *debug = module->debug;
	if (!debug->is_open || !debug->is_foreign)
		return true;
	struct build_id hash;
	struct error *err = content_id_of_fd(debug->fd, 0, debug->image.size, &hash);
	if (err)
		log_debug("debug file not hashed path=%s reason=\"%s\"", debug->path,
			  error_text(err));
	else
		content_id_extend(id, &hash);
	error_free(err);
	return !err;
}

enum { PROCESS_ROOT_BYTES = 64 };

/* Where the target's own paths begin; NULL = where ours do. What is ours has its files here. */
static const char *target_root_of(const struct module *module, const struct symcache_config *config,
				  char process_root[PROCESS_ROOT_BYTES])
{
	if (!module->is_elsewhere)
		return config->sysroot;
	snprintf(process_root, PROCESS_ROOT_BYTES, "/proc/%d/root", module->pid);
	return process_root;
}

static struct side_file_places side_places(const struct module *module,
					   const struct symcache_config *config,
					   const char *target_root)
{
	return (struct side_file_places){
		.binary_path = module->path,
		.debug_path = module->debug->is_open ? module->debug->path : NULL,
		.target_root = target_root,
		.roots = config->debug_roots,
		.caches = config->places,
		.owner = module->owner,
		.is_target_elsewhere = module->is_elsewhere,
	};
}

static void build_symbols(struct module *module, const struct symcache_config *config,
			  struct symbol_supply *supply, enum symbol_quality quality)
{
	char process_root[PROCESS_ROOT_BYTES];
	struct symbol_order order = {
		.id = module->symbols_id,
		.quality = quality,
		.binary_fd = open_binary(module),
		.debug_fd = -1,
		.places = side_places(module, config, target_root_of(module, config, process_root)),
	};
	if (order.binary_fd < 0) {
		module->symbols.failure = mem_copy_string("the file cannot be opened again");
		return;
	}
	if (module->debug->is_open)
		order.debug_fd = fcntl(module->debug->fd, F_DUPFD_CLOEXEC, 0);
	symbol_supply_build(supply, &order, &module->symbols);
}

bool module_seek(struct module *module, const struct symcache_config *config,
		 struct symbol_supply *supply)
{
	if (module->is_asked || !module->has_image || (config->no_symbols && !config->wants_unwind))
		return false;
	module->is_asked = true;
	if (check_lost(module))
		return false;
	if (!make_file_id(module, &module->symbols_id)) {
		module->symbols.failure = mem_copy_string("the file is damaged");
		return false;
	}
	if (symbol_supply_find(supply, &module->symbols_id, SYMBOL_QUALITY_DWARF, &module->symbols))
		return false;
	char process_root[PROCESS_ROOT_BYTES];
	find_debug_file(module, config, target_root_of(module, config, process_root));
	return true;
}

enum symbol_quality module_quality(const struct module *module)
{
	enum symbol_quality quality = symbol_supply_quality_of(&module->image);
	if (!module->debug->is_open)
		return quality;
	enum symbol_quality of_debug = symbol_supply_quality_of(&module->debug->image);
	return of_debug > quality ? of_debug : quality;
}

void module_offer_debug_file(struct module *module, int fd, const char *path)
{
	(void)debug_file_offer(module->debug, &module->image, fd, path);
}

bool module_lacks_alternate(struct module *module, const struct symcache_config *config,
			    struct build_id *id_out)
{
	if (check_lost(module))
		return false;
	char process_root[PROCESS_ROOT_BYTES];
	struct debug_alternate alternate;
	const struct elf_image *image =
		module->debug->is_open ? &module->debug->image : &module->image;
	if (!debug_file_alternate(image, &alternate))
		return false;
	const struct side_file_places places =
		side_places(module, config, target_root_of(module, config, process_root));
	const struct builder_wish wish = {.kind = BUILDER_WISH_ALTERNATE,
					  .id = alternate.id,
					  .folder = "",
					  .name = alternate.path};
	bool is_foreign;
	CLEANUP(cleanup_fd) int fd = side_file_open(&places, &wish, &is_foreign);
	*id_out = alternate.id;
	return fd < 0;
}

void module_build(struct module *module, const struct symcache_config *config,
		  struct symbol_supply *supply)
{
	/* Time may have passed since it was looked for, and the file may have been cut. */
	if (!check_lost(module)) {
		enum symbol_quality quality = module_quality(module);
		bool is_known = add_debug_content(module, &module->symbols_id);
		if (quality == SYMBOL_QUALITY_SYMTAB && is_known)
			is_known = add_names_hash(module, &module->symbols_id);
		if (!is_known)
			module->symbols.failure = mem_copy_string("the file is damaged");
		else if (!symbol_supply_find(supply, &module->symbols_id, quality,
					     &module->symbols))
			build_symbols(module, config, supply, quality);
	}
	debug_file_release(module->debug);
}

void module_ask(struct module *module, const struct symcache_config *config,
		struct symbol_supply *supply)
{
	if (module_seek(module, config, supply))
		module_build(module, config, supply);
}

bool module_adopt_file(struct module *module, int fd, const char *path)
{
	const struct symcache_config config = {0};
	const struct module_query query = {.path = path, .build_id = module->build_id};
	struct opening opening = {.config = &config, .query = &query, .module = module};
	const struct candidate candidate = {.path = path};
	enum module_state state = take_file(&opening, &candidate, fd);
	if (!module->has_image)
		return false;
	module->state = state;
	return true;
}

void module_resolve(struct module *module, const struct symcache_config *config,
		    struct symbol_supply *supply, uint64_t svma, struct symbol_result *out)
{
	out->n_frames = 0;
	out->is_folded = false;
	out->reason = SYMBOL_DISABLED;
	if (config->no_symbols)
		return;
	out->reason = SYMBOL_NO_FILE;
	if (!module->has_image)
		return;
	module_ask(module, config, supply);
	if (module->symbols.is_pending)
		symbol_supply_wait(supply);
	if (module->symbols.failure)
		out->reason = SYMBOL_FAILED;
	if (!module->symbols.file)
		return;
	out->reason = SYMBOL_NO_TABLE;
	if (symbol_file_get_info(module->symbols.file).quality != SYMBOL_QUALITY_NONE)
		(void)symbol_file_lookup(module->symbols.file, svma, out);
}

/* What came of the module's symbol file as far as unwinding goes; called until that is settled. */
static enum unwind_state settle_unwind(struct module *module)
{
	if (!module->has_image)
		return UNWIND_NO_FILE;
	if (!module->is_asked)
		return UNWIND_NOT_ASKED;
	if (module->symbols.is_pending)
		return UNWIND_PENDING;
	if (!module->symbols.file)
		return module->symbols.failure ? UNWIND_FAILED : UNWIND_NO_FILE;
	size_t n;
	const uint8_t *bytes = symbol_file_unwind(module->symbols.file, &n);
	if (!bytes)
		return UNWIND_NO_TABLE;
	struct error *err = unwind_table_open(bytes, n, &module->unwind);
	if (!err)
		return UNWIND_READY;
	log_debug("unwind table not used path=%s reason=\"%s\"", module->path, error_text(err));
	error_free(err);
	return UNWIND_FAILED;
}

const struct unwind_table *module_unwind(struct module *module, enum unwind_state *state_out)
{
	if (module->unwind_state == UNWIND_NOT_ASKED || module->unwind_state == UNWIND_PENDING)
		module->unwind_state = settle_unwind(module);
	if (state_out)
		*state_out = module->unwind_state;
	return module->unwind_state == UNWIND_READY ? &module->unwind : NULL;
}

/* "mov $15, %rax; syscall" (glibc and musl) and "mov x8, #139; svc #0" (Linux's vdso). */
static const uint8_t x86_64_sigreturn[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
static const uint8_t aarch64_sigreturn[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
enum { MACHINE_X86_64 = 62, MACHINE_AARCH64 = 183 };

static bool read_code(const struct module *module, uint64_t offset, uint8_t *out, size_t n)
{
	if (module->copy) {
		struct cursor c = cursor_make(module->copy, module->image.size, false);
		cursor_seek(&c, offset);
		const uint8_t *bytes = cursor_bytes(&c, n);
		if (bytes)
			memcpy(out, bytes, n);
		return bytes;
	}
	size_t got = 0;
	struct error *err = file_read_at(module->fd, offset, out, n, &got);
	error_free(err); /* code that cannot be read is none that is known */
	return got == n;
}

bool module_is_signal_return(struct module *module, uint64_t svma)
{
	if (!module->has_image || check_lost(module))
		return false;
	const struct elf_image *image = &module->image;
	bool is_x86 = image->machine == MACHINE_X86_64;
	if (!is_x86 && image->machine != MACHINE_AARCH64)
		return false;
	const uint8_t *code = is_x86 ? x86_64_sigreturn : aarch64_sigreturn;
	size_t n = is_x86 ? sizeof(x86_64_sigreturn) : sizeof(aarch64_sigreturn);
	uint8_t bytes[sizeof(x86_64_sigreturn)];
	for (uint32_t i = 0; i < image->n_segments; i++) {
		const struct load_segment *segment = &image->segments[i];
		if (svma < segment->svma || svma - segment->svma >= segment->file_bytes)
			continue;
		uint64_t offset = svma - segment->svma + segment->file_offset;
		return read_code(module, offset, bytes, n) && memcmp(bytes, code, n) == 0;
	}
	return false;
}
