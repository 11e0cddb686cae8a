/* SPDX-License-Identifier: Apache-2.0 */
/* What the program may still ask of the kernel once it captures. Each part is used where the kernel
 * has it. */
#ifndef WIRETALE_SANDBOX_H
#define WIRETALE_SANDBOX_H

#include <stdbool.h>

#include "folder.h"

/* Landlock: the output folder and what is below it, what /sys shows of interfaces, and no other
 * file; no TCP (Linux 6.7), no abstract Unix socket and no signal to another process (6.12). Before
 * threads. */
bool sandbox_files(const struct folder *folder);
/* seccomp: the system calls that capturing needs. Before threads, which inherit it. */
bool sandbox_calls(void);

#endif
