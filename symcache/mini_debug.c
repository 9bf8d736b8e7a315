/* SPDX-License-Identifier: Apache-2.0 */
#include "symcache/mini_debug.h"

#include <elf.h>
#include <lzma.h>

#include "base/cleanup.h"

enum { STEP_BYTES = 64 << 10 };

const struct elf_section *mini_debug_find(const struct elf_image *binary)
{
	const struct elf_section *section = elf_image_find(binary, ".gnu_debugdata");
	/* Debug files may have its header alone. */
	return section && section->type != SHT_NOBITS ? section : NULL;
}

static struct error *error_of(lzma_ret result)
{
	switch (result) {
	case LZMA_FORMAT_ERROR:
		return error_new(ERROR_BAD_DATA, ".gnu_debugdata: not packed by xz");
	case LZMA_MEM_ERROR:
	case LZMA_MEMLIMIT_ERROR:
		return error_new(ERROR_LIMIT, ".gnu_debugdata: takes too much memory to unpack");
	case LZMA_OK:
	case LZMA_BUF_ERROR:
		return error_new(ERROR_BAD_DATA, ".gnu_debugdata: cut off");
	default:
		return error_new(ERROR_BAD_DATA, ".gnu_debugdata: damaged");
	}
}

static struct error *unpack(struct cursor packed, struct buf *out)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	lzma_ret result = lzma_stream_decoder(&stream, MINI_DEBUG_UNPACK_BYTES, 0);
	stream.next_in = packed.next;
	stream.avail_in = cursor_left(&packed);
	struct error *err = NULL;
	while (result == LZMA_OK && !err) {
		size_t room = out->max_bytes - out->size;
		err = buf_reserve(out, room && room < STEP_BYTES ? room : STEP_BYTES);
		if (err) {
			err = error_wrap(err, ".gnu_debugdata");
			break;
		}
		stream.next_out = out->data + out->size;
		stream.avail_out = room < STEP_BYTES ? room : STEP_BYTES;
		result = lzma_code(&stream, LZMA_FINISH);
		out->size = (size_t)(stream.next_out - out->data);
	}
	if (!err && result != LZMA_STREAM_END)
		err = error_of(result);
	lzma_end(&stream);
	return err;
}

static struct error *check(const struct elf_image *binary, const struct elf_image *mini)
{
	if (mini->machine != binary->machine || mini->is_64 != binary->is_64 ||
	    mini->is_swapped != binary->is_swapped)
		return error_new(ERROR_BAD_DATA, ".gnu_debugdata: of another machine");
	if (build_id_is_set(&mini->build_id) && !build_id_equal(&mini->build_id, &binary->build_id))
		return error_new(ERROR_BAD_DATA, ".gnu_debugdata: of another build-id");
	return NULL;
}

struct error *mini_debug_open(const struct elf_image *binary, struct mini_debug *out)
{
	const struct cursor packed = elf_image_section(binary, mini_debug_find(binary));
	size_t most = cursor_left(&packed) < MINI_DEBUG_MAX_BYTES / MINI_DEBUG_MAX_RATIO
			      ? cursor_left(&packed) * MINI_DEBUG_MAX_RATIO + MINI_DEBUG_MORE_BYTES
			      : MINI_DEBUG_MAX_BYTES;
	*out = (struct mini_debug){0};
	CLEANUP(buf_fini) struct buf bytes;
	buf_init(&bytes, most);
	struct error *err = unpack(packed, &bytes);
	if (!err)
		err = elf_image_init(&out->image, bytes.data, bytes.size);
	if (err)
		return err;
	err = check(binary, &out->image);
	if (err) {
		elf_image_fini(&out->image);
		return err;
	}
	out->bytes = bytes;
	bytes = (struct buf){0};
	return NULL;
}

void mini_debug_close(struct mini_debug *mini)
{
	elf_image_fini(&mini->image);
	buf_fini(&mini->bytes);
}
