/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files stand for programs of this host, as its own root shows them. What is kept by build-id
 * alone must be of such a file: a build-id can be written into any file, and whoever has a mount
 * namespace of his own can put files of root's at any path.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Root of this host, or the user who runs this. */
bool host_file_is_trusted_owner(uid_t owner);
/* Whether the open file is the one that our own root shows at path. */
bool host_file_is_at(int fd, const char *path);
/*
 * Whether a process sees our files at our paths: it has our mount and user namespace and our root
 * folder. False also when that cannot be learnt.
 */
bool host_file_process_shares_root(int32_t pid);
