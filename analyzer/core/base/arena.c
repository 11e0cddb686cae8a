/* SPDX-License-Identifier: Apache-2.0 */
/* Memory comes from the kernel by mmap() instead of malloc(), so that freed memory leaves the
 * process at once and huge pages are aligned. Chunks are mapped one by one and never move, because
 * offsets and pointers into them stay valid until arena_free(). */
#define _GNU_SOURCE /* unnamed_file */
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/portable.h"
#include "common/unnamed_file.h"

#define LIST_FIRST   ((size_t)16) /* elements of a list that is no longer empty */
#define SMALL_CHUNKS 1            /* the first chunks: a small table must not take a huge page */
#define DISK_SPARE   (UINT64_C(1) << 30) /* bytes that are left to others */
#define WRITTEN      ((size_t)64 << 10) /* at once: the kernel maps no more of them when one is read */
#define DISK_FOLDER  "/var/tmp"         /* without TMPDIR; /tmp is often in memory */

/* Maps more than needed if the result must be aligned, and unmaps the rest on both sides. */
void *huge_pages_map(size_t size, bool huge) {
    size_t asked = huge ? size + HUGE_PAGE : size;
    uint8_t *mapped = mmap(NULL, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    if (!huge)
        return mapped;
    size_t before = (HUGE_PAGE - (uintptr_t)mapped % HUGE_PAGE) % HUGE_PAGE;
    if (before)
        munmap(mapped, before);
    if (HUGE_PAGE - before)
        munmap(mapped + before + size, HUGE_PAGE - before);
    huge_pages_ask(mapped + before, size);
    return mapped + before;
}

void huge_pages_ask(void *memory, size_t size) {
    madvise(memory, size, MADV_HUGEPAGE);
}

/* The pointer is copied as bytes, because its type is unknown. */
bool list_grow(void *list, size_t *room, size_t needed, size_t element) {
    size_t wanted = *room ? *room : LIST_FIRST;
    void *grown;
    if (needed <= *room)
        return true;
    while (wanted < needed)
        wanted *= 2;
    memcpy(&grown, list, sizeof grown);
    if (!(grown = realloc(grown, wanted * element)))
        return false;
    memcpy(list, &grown, sizeof grown);
    *room = wanted;
    return true;
}

/* Opens a file for rows. Returns -1 if it would take memory, or space that others need. */
static int open_file(void) {
    struct statvfs disk;
    int file = unnamed_file(DISK_FOLDER);
    if (file >= 0 && !is_in_memory(file) && !fstatvfs(file, &disk) &&
        (uint64_t)disk.f_bavail * disk.f_frsize >= DISK_SPARE)
        return file;
    if (file >= 0)
        close(file);
    return -1;
}

/* Returns whether all bytes were written. */
static bool write_whole(int file, const uint8_t *bytes, size_t size) {
    while (size) {
        ssize_t written = write(file, bytes, size < WRITTEN ? size : WRITTEN);
        if (written <= 0)
            return false;
        bytes += written;
        size -= (size_t)written;
    }
    return true;
}

/* Makes a file of a chunk, at the same address. Returns false if it stays in memory. */
static bool chunk_to_disk(uint8_t *chunk) {
    int file = open_file();
    if (file < 0)
        return false;
    bool written =
        write_whole(file, chunk, ARENA_CHUNK) &&
        mmap(chunk, ARENA_CHUNK, PROT_READ, MAP_SHARED | MAP_FIXED, file, 0) != MAP_FAILED;
    close(file);
    return written;
}

/* Maps the next chunk, which becomes the last one. Returns false without memory; the arena is
 * unchanged then. */
static bool arena_grow(struct arena *arena) {
    if (!list_grow(&arena->chunks, &arena->chunk_room, arena->chunk_count + 1,
                   sizeof *arena->chunks))
        return false;
    void *chunk = huge_pages_map(ARENA_CHUNK, arena->chunk_count >= SMALL_CHUNKS);
    if (!chunk)
        return false;
    while (arena->to_disk && arena->files < arena->chunk_count &&
           chunk_to_disk(arena->chunks[arena->files]))
        arena->files++;
    arena->chunks[arena->chunk_count++] = chunk;
    arena->used = 0;
    return true;
}

uint8_t *arena_reserve(struct arena *arena, size_t size, uint64_t *offset) {
    /* The rest of a chunk that is too small for a reservation stays unused. */
    bool fits = arena->chunk_count && size <= ARENA_CHUNK - arena->used;
    if (size > ARENA_CHUNK || (!fits && !arena_grow(arena)))
        return NULL;
    size_t chunk = arena->chunk_count - 1;
    *offset = (uint64_t)chunk * ARENA_CHUNK + arena->used;
    uint8_t *place = arena->chunks[chunk] + arena->used;
    arena->used += size;
    return place;
}

void arena_trim(struct arena *arena, size_t unused) {
    arena->used -= unused;
}

void arena_release(const struct arena *arena) {
    for (size_t i = 0; i < arena->files; i++)
        madvise(arena->chunks[i], ARENA_CHUNK, MADV_DONTNEED);
}

void arena_free(struct arena *arena) {
    for (size_t i = 0; i < arena->chunk_count; i++)
        munmap(arena->chunks[i], ARENA_CHUNK);
    free(arena->chunks);
    *arena = (struct arena){0};
}
