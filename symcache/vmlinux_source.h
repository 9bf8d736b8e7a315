/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A vmlinux with symbols, used only when its build-id is the one asked for. Places, in this order,
 * REL being the kernel's release and R each debug root:
 *
 *   the configured file alone, if there is one; else
 *   R/boot/vmlinux-REL, /boot/vmlinux-REL, R/lib/modules/REL/vmlinux,
 *   /lib/modules/REL/build/vmlinux, by build-id (file_places.h), what was fetched
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/build_id.h"
#include "symcache/elf_image.h"
#include "symcache/file_places.h"

struct vmlinux_query {
	struct build_id build_id;
	const char *os_release; /* NULL = unknown */
	const char *path;	/* configured, or NULL */
	const char *sysroot;	/* goes before all but the configured one; NULL = none */
	const char *const *roots;
	const struct file_places *places; /* caches; NULL = none */
	const char *fetched;		  /* a file that was fetched; NULL = none */
};

struct vmlinux_source {
	struct elf_image image;
	int fd;
	char *path;
	bool is_foreign; /* of neither root nor this user: its build-id proves nothing */
};

/* Whether one was found; only then it is open. */
bool vmlinux_source_open(const struct vmlinux_query *query, struct vmlinux_source *out);
void vmlinux_source_close(struct vmlinux_source *source);
