/* SPDX-License-Identifier: Apache-2.0 */
/* What macOS has under another name, or not at all, so that the analyzer compiles there: the only
 * place that asks for the system. */
#ifndef WIRETALE_COMMON_PORTABLE_H
#define WIRETALE_COMMON_PORTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/types.h>

#ifdef __APPLE__
#include <libkern/OSByteOrder.h>
#include <stdlib.h>
#include <unistd.h>

#define htobe16 OSSwapHostToBigInt16
#define htobe32 OSSwapHostToBigInt32
#define htobe64 OSSwapHostToBigInt64
#define be16toh OSSwapBigToHostInt16
#define be32toh OSSwapBigToHostInt32
#define be64toh OSSwapBigToHostInt64

#define GRND_NONBLOCK 0
static inline ssize_t getrandom(void *bytes, size_t size, unsigned flags) {
    (void)flags;
    arc4random_buf(bytes, size);
    return (ssize_t)size;
}

/* Advice only: without it, reading is slower. */
#define POSIX_FADV_SEQUENTIAL 2
static inline int posix_fadvise(int file, off_t offset, off_t size, int advice) {
    (void)file, (void)offset, (void)size, (void)advice;
    return 0;
}
#define MADV_HUGEPAGE MADV_NORMAL

typedef struct {
    long count;
} cpu_set_t;
#define CPU_COUNT(set) ((set)->count)
static inline int sched_getaffinity(int process, size_t size, cpu_set_t *set) {
    (void)process, (void)size;
    set->count = sysconf(_SC_NPROCESSORS_ONLN);
    return set->count < 1;
}

static inline bool is_in_memory(int file) {
    (void)file;
    return false;
}
#else
#include <endian.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <malloc.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/vfs.h>

/* Returns whether a file's bytes are in memory, as those of most /tmp are. */
static inline bool is_in_memory(int file) {
    struct statfs system;
    return fstatfs(file, &system) || system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC;
}
#endif

/* Returns freed memory to the kernel, where the library would keep it. */
static inline void give_back_memory(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

#endif
