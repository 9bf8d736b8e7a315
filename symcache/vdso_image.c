/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/vdso_image.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"

enum { MAPS_MAX_BYTES = 16 << 20 };

uint8_t *vdso_image_copy(size_t *n_out)
{
	uint8_t *copy = NULL;
	struct buf maps;
	buf_init(&maps, MAPS_MAX_BYTES);
	struct error *err = file_read_all("/proc/self/maps", &maps);
	const char *text = err ? "" : buf_string(&maps);
	const char *name = strstr(text, "[vdso]\n");
	const char *line = name;
	while (line && line > text && line[-1] != '\n')
		line--;
	uintptr_t start, end;
	if (line && sscanf(line, "%" SCNxPTR "-%" SCNxPTR " r", &start, &end) == 2 && end > start &&
	    end - start <= VDSO_IMAGE_MAX_BYTES) {
		*n_out = end - start;
		copy = mem_copy((const void *)start, *n_out);
	}
	error_free(err);
	buf_fini(&maps);
	return copy;
}
