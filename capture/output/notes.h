/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to the clock and to links while packets are captured, on its way into the file. The
 * main thread adds it, the writing thread writes it.
 *
 * A comment of the file that programs read is one line: "wiretale.clock/1" or "wiretale.link/1",
 * then words of the form key=value. */
#ifndef WIRETALE_CAPTURE_NOTES_H
#define WIRETALE_CAPTURE_NOTES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOTES_WAITING 32u  /* further ones are dropped */
#define NOTES_OF_FILE 256u /* so that a flapping link cannot fill a file */

/* What the kernel says of CLOCK_REALTIME (adjtimex(2)). */
struct clock_state {
    bool is_known, is_synchronized;
    int64_t error_ns;  /* greatest error that the program which sets the clock states; -1: none */
    int64_t offset_ns; /* that is being corrected */
};

struct note {
    uint32_t device;
    int64_t time_ns;
    char sentence[96]; /* for people */
    char facts[256];   /* for programs */
};

struct notes {
    pthread_mutex_t lock;
    struct note waiting[NOTES_WAITING];
    unsigned count;
    struct clock_state clock, worst; /* now; and since the file began */
};

void notes_open(struct notes *notes);

/* May be called by any thread. Returns false if too many are waiting. */
bool notes_add(struct notes *notes, const struct note *note);
/* Moves all notes into `taken`. Returns their number. */
unsigned notes_take(struct notes *notes, struct note taken[NOTES_WAITING]);

void notes_set_clock(struct notes *notes, const struct clock_state *clock);
/* Writes the facts of the clock at this moment and begins a new time for notes_worst_clock(). */
void notes_begin_clock(struct notes *notes, char *text, size_t size);
/* Writes the worst since notes_begin_clock(). */
void notes_worst_clock(struct notes *notes, char *text, size_t size);

#endif
