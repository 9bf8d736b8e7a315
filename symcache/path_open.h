/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening of files that others name. Only regular files are ever opened: what stands at the path is
 * looked at before it is opened for reading, so devices and FIFOs see nothing of it.
 */
#pragma once

/*
 * root NULL or "": the path as it is. Else symbolic links and ".." stay below root, as for a
 * process whose root folder it is; root itself may be a link (/proc/PID/root). Gives 0 and a
 * descriptor, or an errno value; ENODEV for what is not a regular file.
 */
int path_open(const char *root, const char *path, int *fd_out);
