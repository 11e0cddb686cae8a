/* SPDX-License-Identifier: Apache-2.0 */
/* The lock file of a prefix, by its name in an open directory. */
#ifndef WIRETALE_CAPTURE_LOCK_H
#define WIRETALE_CAPTURE_LOCK_H

#include <stdbool.h>

/* Makes or opens the file and locks it. Returns its descriptor; -1 with EBUSY if another process
 * holds the lock, or with another errno if the file cannot be opened. */
int lock_file_take(int directory_fd, const char *name);

/* Returns whether a process holds the lock. */
bool lock_file_is_held(int directory_fd, const char *name);

/* Removes the file if the name still leads to it, and closes it. */
void lock_file_release(int directory_fd, const char *name, int fd);

#endif
