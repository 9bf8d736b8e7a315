/* SPDX-License-Identifier: Apache-2.0 */
/* A folder that lives as long as one test. */
#pragma once

#include <limits.h>

struct temp_dir {
	char path[64];
	char joined[8][PATH_MAX];
	unsigned n_joined;
};

void temp_dir_init(struct temp_dir *dir);
/* Removes it with all that it holds. */
void temp_dir_fini(struct temp_dir *dir);
/* DIR/relative with the folders on the way made; the last 8 results stay valid. */
const char *temp_dir_path(struct temp_dir *dir, const char *relative);
