/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One build: a binary and its debug file in, a symbol file out. DWARF of the binary, or else of the
 * debug file; the symbol tables of both fill what DWARF leaves out. It opens nothing: descriptors
 * come in, and what it learns of while reading is asked for. Runs in the builder's worker process,
 * because what it reads is hostile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/build_id.h"
#include "base/compiler.h"
#include "base/error.h"

#define BUILDER_JOB_MAX_FILE_BYTES ((size_t)16 << 30)

/* A file beside the binary. */
enum builder_wish_kind {
	BUILDER_WISH_ALTERNATE, /* dwz's shared file: name as in .gnu_debugaltlink, and its build-id
				 */
	BUILDER_WISH_DWO,	/* split unit: folder (may be empty) and name */
	BUILDER_WISH_PACKAGE,	/* the .dwp of the binary */
};

struct builder_wish {
	enum builder_wish_kind kind;
	struct build_id id;
	const char *folder, *name; /* "" when there is none */
};

/* Gives a descriptor that the caller closes, or -1. */
typedef int (*builder_find_fn)(void *context, const struct builder_wish *wish);

struct builder_job {
	struct build_id id;
	int binary_fd;
	int debug_fd;  /* -1 = none */
	int out_fd;    /* written from its start */
	bool no_dwarf; /* symbol tables alone */
	builder_find_fn find;
	void *find_context;
};

/* The descriptors stay the caller's. */
struct error *builder_job_run(const struct builder_job *job) MUST_USE;
