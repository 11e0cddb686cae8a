/* SPDX-License-Identifier: Apache-2.0 */
/* What the program may still ask of the kernel once it captures. Each part is used where the kernel
 * has it. */
#ifndef WIRETALE_SANDBOX_H
#define WIRETALE_SANDBOX_H

#include <stdbool.h>

#include "folder.h"

/* Landlock: files in the output folder, what /sys tells of interfaces, the removal of the
 * status socket, and nothing else. Before
 * threads. */
bool sandbox_files(const struct folder *folder, const char *status);
/* seccomp: the system calls that capturing needs. Before threads, which inherit it. */
bool sandbox_calls(void);

#endif
