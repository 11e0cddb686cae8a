/* SPDX-License-Identifier: Apache-2.0 */
/* How much the files of a receiver may take of its folder and of its disk. All transfers of a
 * process share it. */
#ifndef WIRETALE_FOLDER_ROOM_H
#define WIRETALE_FOLDER_ROOM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct folder_room {
    uint64_t most_bytes;   /* of the files of the folder; 0: no limit */
    uint64_t min_free;     /* bytes of its file system */
    double min_free_share; /* the same as a part of it, up to 1 */
    pthread_mutex_t lock;  /* of the members that follow */
    uint64_t used;         /* bytes of the folder, known while a file is being written */
    uint64_t unchecked;    /* bytes since the free space was read */
    uint32_t writers;
};

/* Begins a file in the folder `fd`. Returns false with `error` set if it has no room. */
bool folder_room_begin(struct folder_room *room, int fd, char *error, size_t error_size);
/* Returns 0, or an errno if `bytes` more have no room. */
int folder_room_take(struct folder_room *room, int fd, uint64_t bytes);
/* Ends a file; `removed`: the bytes of one that was removed. */
void folder_room_end(struct folder_room *room, uint64_t removed);

#endif
