/* SPDX-License-Identifier: Apache-2.0 */
/* The folder is read when a file begins and no other is being written, because others may add and
 * remove files, and the bytes of running transfers are added as they come. A file takes a block at
 * least, so that empty ones are bounded too. */
#include "transfer/folder_room.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/units_text.h"

#define FILE_LEAST 4096u
#define LOOK_BYTES (1u << 20) /* between two looks at the free space */

/* Returns the bytes that the folder's files take on the disk, without those of subfolders. */
static uint64_t read_used(int folder) {
    struct stat status;
    uint64_t used = 0;
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd < 0 ? NULL : fdopendir(fd);
    if (!listing && fd >= 0)
        close(fd);
    for (struct dirent *entry; listing && (entry = readdir(listing));)
        if (!fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) &&
            S_ISREG(status.st_mode))
            used += status.st_blocks * 512u > FILE_LEAST ? (uint64_t)status.st_blocks * 512u
                                                         : FILE_LEAST;
    if (listing)
        closedir(listing);
    return used;
}

/* Returns the bytes of the file system above its floor. */
static uint64_t read_free(const struct folder_room *room, int fd) {
    struct statvfs disk;
    if (fstatvfs(fd, &disk))
        return UINT64_MAX;
    uint64_t size = (uint64_t)disk.f_blocks * disk.f_frsize;
    uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    uint64_t floor = MAX(room->min_free, (uint64_t)((double)size * room->min_free_share));
    return left > floor ? left - floor : 0;
}

bool folder_room_begin(struct folder_room *room, int fd, char *error, size_t error_size) {
    pthread_mutex_lock(&room->lock);
    if (!room->writers)
        room->used = read_used(fd);
    uint64_t above = read_free(room, fd), most = room->most_bytes;
    bool is_full = most && room->used + FILE_LEAST > most, begins = !is_full && above >= FILE_LEAST;
    room->writers += begins;
    room->used += begins ? FILE_LEAST : 0;
    pthread_mutex_unlock(&room->lock);
    if (is_full)
        snprintf(error, error_size, "the receiver's folder has %s, its most (--total-size)",
                 UNITS_SHOW(SHOWN_BYTES, most));
    else if (!begins)
        snprintf(error, error_size, "the receiver's disk is full down to its --min-free");
    return begins;
}

int folder_room_take(struct folder_room *room, int fd, uint64_t bytes) {
    int error = 0;
    pthread_mutex_lock(&room->lock);
    room->used += bytes;
    room->unchecked += bytes;
    if (room->most_bytes && room->used > room->most_bytes)
        error = EDQUOT;
    if (!error && room->unchecked >= LOOK_BYTES) {
        room->unchecked = 0;
        error = read_free(room, fd) ? 0 : ENOSPC;
    }
    pthread_mutex_unlock(&room->lock);
    return error;
}

void folder_room_end(struct folder_room *room, uint64_t removed) {
    pthread_mutex_lock(&room->lock);
    room->used -= removed < room->used ? removed : room->used;
    room->writers--;
    pthread_mutex_unlock(&room->lock);
}
