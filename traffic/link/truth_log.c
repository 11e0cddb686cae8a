/* SPDX-License-Identifier: Apache-2.0 */
#include "truth_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "truth_file.h"

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
    *log = (struct truth_log){.file = truth_file_open(path)};
    if (!log->file)
        return false;
    pthread_mutex_init(&log->lock, NULL);
    pthread_cond_init(&log->filled, NULL);
    if (fwrite(&header, sizeof header, 1, log->file) != 1 || fflush(log->file))
        return false;
    return !pthread_create(&log->thread, NULL, write_blocks, log);
}

static struct truth_block *new_block(struct truth_log *log) {
    pthread_mutex_lock(&log->lock);
    struct truth_block *block = log->spare;
    if (block)
        log->spare = block->next;
    else if (log->blocks < TRUTH_BLOCKS_MOST && (block = malloc(sizeof *block)))
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
