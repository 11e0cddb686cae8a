/* SPDX-License-Identifier: Apache-2.0 */
#include "file_finish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_compress.h"
#include "file_recover.h"
#include "moment.h"
#include "say.h"

#define WAITING_MOST   64u /* files that wait, each with open descriptors */
#define WAITING_SYNCED 8u  /* with more waiting, what is published is left to the kernel to write */
#define NAMES_TRIED    100

static bool is_link_or_new(const struct finisher *finisher, const struct finished *file) {
    struct stat told;
    if (fstatat(file->folder_fd, file->name, &told, AT_SYMLINK_NOFOLLOW))
        return false;
    return !S_ISREG(told.st_mode) ||
           told.st_mtim.tv_sec * SECOND_NS + told.st_mtim.tv_nsec >= finisher->begun_ns;
}

/* "NAME.pcapng" is taken: "NAME-1.pcapng" and so on. */
static void other_name(const char *name, int number, char other[NAME_ROOM]) {
    const char *suffix = strstr(name, ".pcap");
    if (!suffix)
        suffix = name + strlen(name);
    snprintf(other, NAME_ROOM, "%.*s-%d%s", (int)(suffix - name), name, number, suffix);
}

static bool publish(struct finisher *finisher, struct finished *file) {
    if (file->replace && !is_link_or_new(finisher, file))
        return !renameat(file->folder_fd, file->temporary, file->folder_fd, file->name);
    char name[NAME_ROOM];
    snprintf(name, sizeof name, "%s", file->name);
    for (int i = 1; i < NAMES_TRIED; i++) {
        if (!renameat2(file->folder_fd, file->temporary, file->folder_fd, name, RENAME_NOREPLACE)) {
            if (i > 1)
                warn_of("%s was there already: this one is %s", file->name, name);
            strcpy(file->name, name);
            return true;
        }
        if (errno != EEXIST)
            return false;
        other_name(file->name, i, name);
    }
    return false;
}

static void compress(struct finisher *finisher, struct finished *file, bool behind) {
    if (behind) {
        if (!finisher->warned)
            warn_of("compression cannot keep up: some files stay uncompressed");
        finisher->warned = true;
    } else if (!file_compress(file)) {
        warn_of("%s was not compressed: %s", file->name, strerror(errno));
    }
}

static void finish(struct finisher *finisher, struct finished *file, unsigned waiting) {
    if (finisher->compress)
        compress(finisher, file, waiting > WAITING_MOST / 2);
    if (waiting < WAITING_SYNCED && fdatasync(file->fd))
        warn_of("%s may not be on the disk: %s", file->name, strerror(errno));
    if (publish(finisher, file)) {
        finisher->published++;
        if (*file->original)
            unlinkat(file->folder_fd, file->original, 0);
        file_ring_add(finisher->ring, file->folder_fd, file->name, file->bytes);
        if (finisher->command)
            close_command_run(finisher->command, finisher->folder->path, file->name);
    } else {
        warn_of("%s stays as %s: %s", file->name, file->temporary, strerror(errno));
    }
    close(file->fd);
    close(file->folder_fd);
}

static struct finished *take(struct finisher *finisher, unsigned *waiting) {
    pthread_mutex_lock(&finisher->lock);
    while (!finisher->first && !finisher->ending)
        pthread_cond_wait(&finisher->changed, &finisher->lock);
    struct finished *file = finisher->first;
    if (file) {
        finisher->first = file->next;
        if (!finisher->first)
            finisher->last = NULL;
        *waiting = --finisher->waiting;
        pthread_cond_broadcast(&finisher->changed);
    }
    pthread_mutex_unlock(&finisher->lock);
    return file;
}

static void finish_recovered(struct finisher *finisher) {
    while (finisher->recovered) {
        struct finished *file = finisher->recovered;
        finisher->recovered = file->next;
        if (file_recover(file))
            finish(finisher, file, 0);
        free(file);
    }
}

static void *run(void *argument) {
    struct finisher *finisher = argument;
    unsigned waiting;
    setpriority(PRIO_PROCESS, 0, 5); /* a thread's own on Linux */
    finish_recovered(finisher);
    for (struct finished *file; (file = take(finisher, &waiting));) {
        finish(finisher, file, waiting);
        free(file);
    }
    return NULL;
}

bool finisher_start(struct finisher *finisher) {
    pthread_mutex_init(&finisher->lock, NULL);
    pthread_cond_init(&finisher->changed, NULL);
    finisher->begun_ns = wall_ns();
    if (pthread_create(&finisher->thread, NULL, run, finisher))
        return false;
    pthread_setname_np(finisher->thread, "finish");
    return true;
}

bool finisher_push(struct finisher *finisher, const struct finished *finished) {
    struct finished *copy = malloc(sizeof *copy);
    if (!copy)
        return false;
    *copy = *finished;
    copy->next = NULL;
    pthread_mutex_lock(&finisher->lock);
    while (finisher->waiting >= WAITING_MOST)
        pthread_cond_wait(&finisher->changed, &finisher->lock);
    if (finisher->last)
        finisher->last->next = copy;
    else
        finisher->first = copy;
    finisher->last = copy;
    finisher->waiting++;
    pthread_cond_broadcast(&finisher->changed);
    pthread_mutex_unlock(&finisher->lock);
    return true;
}

void finisher_end(struct finisher *finisher) {
    pthread_mutex_lock(&finisher->lock);
    finisher->ending = true;
    pthread_cond_broadcast(&finisher->changed);
    pthread_mutex_unlock(&finisher->lock);
    pthread_join(finisher->thread, NULL);
}
