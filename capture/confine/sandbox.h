/* SPDX-License-Identifier: Apache-2.0 */
/* Limits on the kernel interface of a process that captures. Each is applied if the kernel has it.
 */
#ifndef WIRETALE_CAPTURE_SANDBOX_H
#define WIRETALE_CAPTURE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "directory/directory.h"

/* Landlock: leaves the output directory and what is below it, /sys/class/net and /sys/devices. No
 * other files, no TCP (Linux 6.7), no abstract Unix sockets and no signals to other processes
 * (6.12). Returns false if the kernel has no Landlock. To be called before threads start. */
bool sandbox_files(const struct directory *directory);

/* seccomp: leaves the system calls that capturing needs. Threads started later inherit it. Returns
 * false if the kernel has no seccomp. */
bool sandbox_calls(void);

/* Closes all descriptors above 2, except `kept`. */
void close_other_descriptors(const int *kept, size_t count);

#endif
