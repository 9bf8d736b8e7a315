/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over every file of the folders and files named on the command line. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	if (!file) {
		perror(path);
		return 1;
	}
	struct stat st;
	if (fstat(fileno(file), &st) < 0) {
		perror(path);
		fclose(file);
		return 1;
	}
	/* Exactly the input's size, so that a sanitizer sees a read one byte past it. */
	size_t size = (size_t)st.st_size;
	uint8_t *data = malloc(size ? size : 1);
	size = fread(data, 1, size, file);
	fclose(file);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned n = 0;
	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		if (!dir) {
			if (replay_file(argv[i]))
				return 1;
			n++;
			continue;
		}
		struct dirent *entry;
		while ((entry = readdir(dir))) {
			if (entry->d_name[0] == '.')
				continue;
			char path[4096];
			snprintf(path, sizeof(path), "%s/%s", argv[i], entry->d_name);
			if (replay_file(path)) {
				closedir(dir);
				return 1;
			}
			n++;
		}
		closedir(dir);
	}
	printf("%u inputs replayed\n", n);
	return n ? 0 : 1;
}
