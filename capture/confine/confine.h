/* SPDX-License-Identifier: Apache-2.0 */
/* Confinement of the processes: which user they are (privilege.c), and which files and system calls
 * they can use (sandbox.c). Of the capabilities only CAP_NET_RAW is kept, without which an
 * interface that disappears could not be opened again. Limits that the kernel does not support are
 * left out, with a message. */
#ifndef WIRETALE_CAPTURE_CONFINE_H
#define WIRETALE_CAPTURE_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "directory/directory.h"

struct identity {
    bool changes; /* from root */
    uid_t user;
    gid_t group;
    char name[64];
};

bool privilege_may_capture(void);

/* Exits with the one command that grants the privilege. */
_Noreturn void privilege_refuse(const char *reason);

/* Chooses the user: `wanted` (-Z), else the owner of the directory, else a system user. If
 * this user may not write to the directory, it gets a directory that this run made, else a
 * subdirectory (directory_enter_subdirectory). Exits with one line if there is no such user. */
void privilege_choose(struct identity *identity, const char *wanted, struct directory *directory);

/* Changes user and groups, drops all capabilities, except CAP_NET_RAW if `net_raw`, and sets
 * no_new_privs. Exits with one line if it cannot. */
void privilege_drop(const struct identity *identity, bool net_raw);

/* A user namespace (user_namespaces(7)) has only the users that its maps list, and its root may be
 * an ordinary user outside. Returns whether a map such as /proc/self/uid_map has `number`; true if
 * the file is missing. */
bool user_map_has(const char *path, unsigned number);

/* Landlock: leaves the output directory and what is below it, /sys/class/net and /sys/devices. No
 * other files, no TCP (Linux 6.7), no abstract Unix sockets and no signals to other processes
 * (6.12). Returns false if the kernel has no Landlock. To be called before threads start. */
bool sandbox_files(const struct directory *directory);

/* seccomp: leaves the system calls that capturing needs. Threads started later inherit it. Returns
 * false if the kernel has no seccomp. */
bool sandbox_calls(void);

/* Forks a process with its name, which ignores signals to the group, because it ends with the
 * capture. Returns its number, 0 in the process itself; `fd` is the own end of a socket between the
 * two. Exits with one line if it cannot. */
pid_t process_start(const char *name, int *fd);

/* Closes all descriptors above 2, except `kept`. */
void close_other_descriptors(const int *kept, size_t count);

#endif
