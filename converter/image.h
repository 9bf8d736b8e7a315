/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: what mapping records name, a file or something that stands where a file would. An image
 * is interned by what the record says of it, so that all processes share it; which file on this
 * host it is, and whether that one may be believed, is symcache's answer (image.module).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/build_id.h"
#include "base/hash_map.h"
#include "base/perf_record.h"
#include "symcache/symcache.h"

enum image_kind {
	IMAGE_FILE,    /* address in a location = file offset, until its module is known */
	IMAGE_VDSO,    /* offset from the mapping's start */
	IMAGE_ANON,    /* //anon, JIT code: run-time address */
	IMAGE_JIT,     /* stands for code that may have a name: address = index of its jit_spot */
	IMAGE_SPECIAL, /* [vsyscall], [stack], [heap], [uprobes] …: run-time address */
	IMAGE_KERNEL,  /* run-time address */
	IMAGE_MODULE,  /* of the kernel; its canonical image is the kernel */
	IMAGE_KSYMBOL, /* one BPF program or trampoline: run-time address, the name is the path */
	IMAGE_GUEST_KERNEL,
	IMAGE_GUEST_USER,
	IMAGE_HYPERVISOR,
	IMAGE_UNMAPPED, /* no mapping covers the address */
	IMAGE_BROKEN, /* stands for caller addresses that lie in no mapping: the chain is not to be
			 trusted there */
};

struct image {
	uint8_t kind;	    /* enum image_kind */
	uint32_t canonical; /* first image with the same build-id; own index when alone */
	char *path;	    /* as in the record */
	struct build_id build_id;
	uint32_t device_major, device_minor;
	uint64_t inode, inode_generation;
	bool has_inode;
	bool may_hold_jit;     /* anonymous memory, or what runtimes map for the like of it */
	struct module *module; /* NULL until image_open */
	int32_t first_pid; /* who mapped it first, and where: to find the file of a running process
			    */
	uint64_t first_start, first_end;
	uint64_t offset_low, offset_high; /* hull of the file offsets mapped, of canonical images */
};

/* The images that always exist, by index. */
enum {
	IMAGE_INDEX_KERNEL,
	IMAGE_INDEX_GUEST_KERNEL,
	IMAGE_INDEX_GUEST_USER,
	IMAGE_INDEX_HYPERVISOR,
	IMAGE_INDEX_UNMAPPED,
	IMAGE_INDEX_BROKEN,
	IMAGE_INDEX_JIT,
	IMAGE_INDEX_OVERFLOW, /* all that came after IMAGE_MAX others */
	IMAGE_N_FIXED,
};

/* Far above what a host runs; bounds what a hostile file can make us keep. */
enum { IMAGE_MAX = 1 << 16 };

struct image_table {
	struct image *items;
	uint32_t n, capacity;
	struct hash_map by_key;	     /* hash of all that identifies → newest index + 1 */
	struct hash_map by_build_id; /* hash → index */
	uint64_t seed;
	uint32_t *next_in_bucket; /* older image with the same key hash + 1, 0 = none */
};

/* What a mapping record says. */
struct image_key {
	const char *path;
	struct build_id build_id;
	uint32_t device_major, device_minor;
	uint64_t inode, inode_generation;
	bool has_inode;
	bool is_module; /* mapped into the kernel */
};

void image_table_init(struct image_table *table);
void image_table_fini(struct image_table *table);
/* Index of the image; *is_new_out says whether this was its first time. */
uint32_t image_table_intern(struct image_table *table, const struct image_key *key,
			    bool *is_new_out);
/* The image of BPF programs of one name (which has the program's tag in it). */
uint32_t image_table_add_ksymbol(struct image_table *table, const char *name);
static inline struct image *image_table_get(const struct image_table *table, uint32_t index)
{
	return &table->items[index];
}
/*
 * Gives the build-ids of the source's table to images that have none and were not opened yet. The
 * table may come behind the records (pipe mode), so this belongs to a window's end.
 */
void image_table_adopt_build_ids(struct image_table *table, const struct perf_source_info *source);
/*
 * Finds the module behind an image; source tells when it was recorded. Does nothing for images
 * that are not files, and nothing twice.
 */
void image_open(struct image *image, const struct perf_source_info *source, struct symcache *cache);
/* Whether the file was asked for and could not be reached; another process may still show it. */
bool image_is_missed(const struct image *image);
/* Whether code there may be a JIT compiler's: no file that is known to be a binary. */
static inline bool image_is_jit_memory(const struct image *image)
{
	if (!image->may_hold_jit || !image->module)
		return image->may_hold_jit;
	enum module_state state = module_get_state(image->module);
	return state != MODULE_OK && state != MODULE_OK_TRUSTED;
}
/* Whether it is one of the binaries that perf inject --jit makes of a jitdump's pieces. */
bool image_is_injected(const struct image *image);
/* Whether the path stands for anonymous memory that huge-page tools put where a file was. */
bool image_is_anonymous(const struct image *image);
