/* SPDX-License-Identifier: Apache-2.0 */
/* The lock is held for copies of memory alone, so no thread waits for the disk at it. */
#include "output/notes.h"

#include <stdio.h>
#include <string.h>

void notes_open(struct notes *notes) {
    *notes = (struct notes){.count = 0};
    pthread_mutex_init(&notes->lock, NULL);
}

bool notes_add(struct notes *notes, const struct note *note) {
    pthread_mutex_lock(&notes->lock);
    bool has_room = notes->count < NOTES_WAITING;
    if (has_room)
        notes->waiting[notes->count++] = *note;
    pthread_mutex_unlock(&notes->lock);
    return has_room;
}

unsigned notes_take(struct notes *notes, struct note taken[NOTES_WAITING]) {
    pthread_mutex_lock(&notes->lock);
    unsigned count = notes->count;
    memcpy(taken, notes->waiting, count * sizeof *taken);
    notes->count = 0;
    pthread_mutex_unlock(&notes->lock);
    return count;
}

/* An unknown error is worse than any. */
static void make_worse(struct clock_state *worst, const struct clock_state *clock) {
    worst->is_known &= clock->is_known;
    worst->is_synchronized &= clock->is_synchronized;
    if (worst->error_ns >= 0 && (clock->error_ns < 0 || clock->error_ns > worst->error_ns))
        worst->error_ns = clock->error_ns;
    worst->offset_ns = clock->offset_ns;
}

void notes_set_clock(struct notes *notes, const struct clock_state *clock) {
    pthread_mutex_lock(&notes->lock);
    if (notes->clock.is_known)
        make_worse(&notes->worst, clock);
    else
        notes->worst = *clock;
    notes->clock = *clock;
    pthread_mutex_unlock(&notes->lock);
}

/* The text is empty if the kernel does not answer. */
static void put_clock(const struct clock_state *clock, char *text, size_t size) {
    char error[48] = "";
    if (clock->error_ns >= 0)
        snprintf(error, sizeof error, " error_ns=%lld", (long long)clock->error_ns);
    *text = '\0';
    if (clock->is_known)
        snprintf(text, size, "wiretale.clock/1 synchronized=%s%s offset_ns=%lld",
                 clock->is_synchronized ? "yes" : "no", error, (long long)clock->offset_ns);
}

void notes_begin_clock(struct notes *notes, char *text, size_t size) {
    pthread_mutex_lock(&notes->lock);
    put_clock(&notes->clock, text, size);
    notes->worst = notes->clock;
    pthread_mutex_unlock(&notes->lock);
}

void notes_worst_clock(struct notes *notes, char *text, size_t size) {
    pthread_mutex_lock(&notes->lock);
    put_clock(&notes->worst, text, size);
    pthread_mutex_unlock(&notes->lock);
}
