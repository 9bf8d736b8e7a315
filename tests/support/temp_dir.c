/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/temp_dir.h"

#include <assert.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void temp_dir_init(struct temp_dir *dir)
{
	*dir = (struct temp_dir){.path = "/tmp/perfpipe-test-XXXXXX"};
	const char *made = mkdtemp(dir->path);
	assert(made);
	(void)made;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void temp_dir_fini(struct temp_dir *dir)
{
	nftw(dir->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *temp_dir_path(struct temp_dir *dir, const char *relative)
{
	char *out = dir->joined[dir->n_joined++ % 8];
	size_t n = strlen(dir->path);
	memcpy(out, dir->path, n);
	snprintf(out + n, PATH_MAX - n, "/%s", relative);
	for (char *slash = out + n + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		mkdir(out, 0755);
		*slash = '/';
	}
	return out;
}
