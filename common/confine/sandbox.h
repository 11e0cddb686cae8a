/* SPDX-License-Identifier: Apache-2.0 */
/* What a program may still do once it has all that it needs: Landlock for files, seccomp for system
 * calls. Both apply to the calling thread and to threads that it starts later, so they are set
 * before the first one. */
#ifndef WIRETALE_SANDBOX_H
#define WIRETALE_SANDBOX_H

#include <linux/landlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

#define SANDBOX_READING (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define SANDBOX_WRITING                                                                            \
    (SANDBOX_READING | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |               \
     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)

/* A directory and all that is below it, or a file: by its path, else by a descriptor. A place that
 * does not exist is left out. */
struct sandbox_place {
    const char *path;
    int fd;
    uint64_t access;
};

/* Leaves these files. No others, no TCP but for connections that are open or accepted (Linux 6.7),
 * no abstract Unix sockets and no signals to other processes (6.12). Returns false if the kernel
 * has no Landlock. */
bool sandbox_open_files(const struct sandbox_place *places, size_t count);

struct sandbox_socket {
    int family, type; /* 0: of any type */
};
struct sandbox_request {
    uint32_t mask, value; /* of an ioctl */
};
struct sandbox_needs {
    const int *calls;
    const struct sandbox_socket *sockets;
    const struct sandbox_request *requests;
    size_t call_count, socket_count, request_count;
};

/* Leaves the system calls of files, threads, time and open sockets, and those of `needs`. Calls
 * that only an intruder makes end the process. Returns false if the kernel has no seccomp. */
bool sandbox_open_calls(const struct sandbox_needs *needs);

#endif
