/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the truth file. Blocks go from producers to the writing thread and back as spares, under
 * one lock that is held for a few instructions. The path is checked before the link starts, because
 * a typing error must not overwrite a capture.
 *
 * A pen belongs to one thread and fills its block without the lock, which it takes once in
 * TRUTH_BLOCK_RECORDS records. At most MAX_TRUTH_BLOCKS exist; if all of them wait for the disk,
 * records are counted as lost, because waiting would delay packets. */
#include "truth/truth_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_named_as_capture(const char *path) {
    char real[PATH_MAX];
    const char *name = realpath(path, real) ? real : path, *slash = strrchr(name, '/');
    name = slash ? slash + 1 : name;
    return strcasestr(name, ".pcap") || strcasestr(name, ".cap");
}

/* pcap in both byte orders, with microseconds or nanoseconds, of Kuznetzov's and Navtel's variants;
 * pcapng; gzip, zstd and lz4, which are captures only if the name contains ".pcap" or ".cap". */
static const struct {
    char bytes[5];
    uint8_t length;
    bool is_compressed;
} magics[] = {
    {"\xa1\xb2\xc3\xd4", 4, false}, {"\xd4\xc3\xb2\xa1", 4, false}, {"\xa1\xb2\x3c\x4d", 4, false},
    {"\x4d\x3c\xb2\xa1", 4, false}, {"\xa1\xb2\xcd\x34", 4, false}, {"\x34\xcd\xb2\xa1", 4, false},
    {"\xa1\xb2\x34\xcd", 4, false}, {"\xcd\x34\xb2\xa1", 4, false}, {"\x0a\x0d\x0d\x0a", 4, false},
    {"\x1f\x8b", 2, true},          {"\x28\xb5\x2f\xfd", 4, true},  {"\x04\x22\x4d\x18", 4, true},
};

/* Decides by the first four bytes. O_NONBLOCK, because opening a FIFO must not wait for a writer.
 */
static bool is_capture(const char *path) {
    uint8_t bytes[4];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool has_magic = read(fd, bytes, sizeof bytes) == sizeof bytes;
    close(fd);
    for (size_t i = 0; has_magic && i < sizeof magics / sizeof *magics; i++)
        if (!memcmp(bytes, magics[i].bytes, magics[i].length))
            return !magics[i].is_compressed || is_named_as_capture(path);
    return false;
}

const char *truth_path_error(const char *path, const char *const *inputs, size_t count,
                             bool overwrite) {
    struct stat there, input;
    if (stat(path, &there))
        return NULL; /* a new file: if it cannot be created, opening fails */
    for (size_t i = 0; i < count; i++)
        if (inputs[i] && !stat(inputs[i], &input) && input.st_dev == there.st_dev &&
            input.st_ino == there.st_ino)
            return "expected another file than the input of trace=";
    if (!overwrite && S_ISREG(there.st_mode) && is_capture(path))
        return "this is a capture file: expected another file, or --overwrite to replace it";
    return NULL;
}

/* Creates a file beside the one at `path` with its mode and owner, and renames it. Returns its
 * descriptor, or -1. */
static int replace_file(const char *path, const struct stat *before) {
    char real[PATH_MAX], partial[PATH_MAX + 16];
    if (!realpath(path, real))
        return -1;
    snprintf(partial, sizeof partial, "%s.XXXXXX", real);
    int fd = mkostemp(partial, O_CLOEXEC);
    if (fd < 0)
        return -1;
    bool is_same = !fchown(fd, before->st_uid, before->st_gid) &&
                   !fchmod(fd, before->st_mode & 07777) && !rename(partial, real);
    if (is_same)
        return fd;
    unlink(partial);
    close(fd);
    return -1;
}

/* Devices and FIFOs are opened as they are. A file whose directory is not writable, or that is a
 * mount point, is truncated. */
static FILE *open_file(const char *path) {
    struct stat before;
    if (stat(path, &before) || !S_ISREG(before.st_mode))
        return fopen(path, "wbe");
    if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
        return NULL;
    int fd = replace_file(path, &before);
    return fd < 0 ? fopen(path, "wbe") : fdopen(fd, "wb");
}

/* Returns the oldest filled block; NULL if all are written and the log ends. */
static struct truth_block *wait_for_block(struct truth_log *log) {
    pthread_mutex_lock(&log->lock);
    while (!log->first && !log->ending)
        pthread_cond_wait(&log->filled, &log->lock);
    struct truth_block *block = log->first;
    if (block && !(log->first = block->next))
        log->last = NULL;
    pthread_mutex_unlock(&log->lock);
    return block;
}

static void give_back(struct truth_log *log, struct truth_block *block) {
    pthread_mutex_lock(&log->lock);
    block->next = log->spare;
    log->spare = block;
    pthread_mutex_unlock(&log->lock);
}

/* Writes blocks until the log ends. An error is kept, and writing goes on, so that producers never
 * block. */
static void *write_blocks(void *context) {
    struct truth_log *log = context;
    struct truth_block *block;
    while ((block = wait_for_block(log))) {
        if (fwrite(block->records, sizeof *block->records, block->count, log->file) !=
                block->count ||
            fflush(log->file))
            log->failed = errno;
        give_back(log, block);
    }
    return NULL;
}

bool truth_log_open(struct truth_log *log, const char *path, uint64_t seed, int64_t start_ns) {
    struct truth_header header = {.header_bytes = sizeof header,
                                  .record_bytes = sizeof(struct truth_record),
                                  .seed = seed,
                                  .start_ns = start_ns};
    memcpy(header.magic, TRUTH_MAGIC, sizeof header.magic);
    *log = (struct truth_log){.file = open_file(path)};
    if (!log->file)
        return false;
    pthread_mutex_init(&log->lock, NULL);
    pthread_cond_init(&log->filled, NULL);
    if (fwrite(&header, sizeof header, 1, log->file) != 1 || fflush(log->file))
        return false;
    return !pthread_create(&log->thread, NULL, write_blocks, log);
}

/* Returns a spare or new block; NULL if MAX_TRUTH_BLOCKS wait for the disk. */
static struct truth_block *new_block(struct truth_log *log) {
    pthread_mutex_lock(&log->lock);
    struct truth_block *block = log->spare;
    if (block)
        log->spare = block->next;
    else if (log->blocks < MAX_TRUTH_BLOCKS && (block = malloc(sizeof *block)))
        log->blocks++;
    pthread_mutex_unlock(&log->lock);
    if (block)
        block->count = 0;
    return block;
}

void truth_pen_flush(struct truth_pen *pen) {
    struct truth_log *log = pen->log;
    struct truth_block *block = pen->block;
    if (!block)
        return;
    pen->block = NULL;
    block->next = NULL;
    pthread_mutex_lock(&log->lock);
    if (log->last)
        log->last->next = block;
    else
        log->first = block;
    log->last = block;
    pthread_cond_signal(&log->filled);
    pthread_mutex_unlock(&log->lock);
}

void truth_pen_write(struct truth_pen *pen, const struct truth_record *record) {
    if (!pen->log)
        return;
    if (!pen->block && !(pen->block = new_block(pen->log))) {
        pen->lost++;
        return;
    }
    pen->block->records[pen->block->count++] = *record;
    if (pen->block->count == TRUTH_BLOCK_RECORDS)
        truth_pen_flush(pen);
}

static void free_blocks(struct truth_block *block) {
    for (struct truth_block *next; block; block = next) {
        next = block->next;
        free(block);
    }
}

/* Pens must have been flushed, and their threads must have ended. */
bool truth_log_close(struct truth_log *log) {
    pthread_mutex_lock(&log->lock);
    log->ending = true;
    pthread_cond_signal(&log->filled);
    pthread_mutex_unlock(&log->lock);
    pthread_join(log->thread, NULL);
    free_blocks(log->spare);
    pthread_cond_destroy(&log->filled);
    pthread_mutex_destroy(&log->lock);
    if (fclose(log->file) && !log->failed)
        log->failed = errno;
    errno = log->failed;
    return !log->failed;
}
