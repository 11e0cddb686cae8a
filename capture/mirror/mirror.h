/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a mirror port delivers both directions, each packet once, and the tags of both
 * (--mirror). The reading threads add packets; the main thread judges what came since it last did.
 *
 * A TCP connection is judged a moment after it begins and after each BATCH_PACKETS. It shows one
 * direction only if an end acknowledges the other end's SYN, or sends so many packets, and none of
 * the other end comes before that moment is over. */
#ifndef WIRETALE_CAPTURE_MIRROR_H
#define WIRETALE_CAPTURE_MIRROR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MIRROR_FLOWS  4096u /* connections that are followed at a time */
#define MIRROR_RECENT 64u   /* segments of which another may be a copy */
#define MIRROR_PLACES 1024u /* of them: enough that few share one */

enum mirror_fault {
    MIRROR_UNKNOWN, /* too few connections so far */
    MIRROR_GOOD,
    MIRROR_SILENT,        /* no packet at all */
    MIRROR_OWN,           /* only packets of this host, broadcasts and multicasts */
    MIRROR_ONE_DIRECTION, /* of half of the connections or more */
    MIRROR_COPIES,        /* a fifth of the packets or more came again */
    MIRROR_TAGS,          /* VLAN tags in one direction only */
};

/* All members are uint64_t. */
struct mirror_counts {
    uint64_t packets;
    uint64_t foreign; /* between two other hosts */
    uint64_t segments, copies;
    uint64_t judged, one_sided, split_tags; /* connections, again after each batch */
};

struct mirror_flow {
    uint32_t key;        /* of the addresses and ports; 0: the place is free */
    uint32_t packets[2]; /* of each side */
    uint8_t tags[2];     /* TAG_NONE, TAG_VLAN */
    bool is_beginning;   /* its SYN was seen, and it has not been judged */
    bool is_due;         /* it has shown enough, and is judged a moment later */
    uint8_t misses;      /* packets of others with this place: an idle one leaves it */
    uint32_t round;      /* in which it was due */
};

struct mirror_segment {
    uint64_t hash;
    int64_t time_ns;
    uint32_t number;
};

struct mirror {
    pthread_mutex_t lock; /* of several reading threads */
    struct mirror_counts counts;
    uint64_t seed[2]; /* of all hashes: no sender knows which connections share a place */
    struct mirror_flow flows[MIRROR_FLOWS];
    struct mirror_segment recent[MIRROR_PLACES];
    uint32_t next;
    uint32_t round; /* calls of mirror_settle() */
};

void mirror_open(struct mirror *mirror);
/* Takes an Ethernet frame; `own` is the address of the interface. */
void mirror_take(struct mirror *mirror, const uint8_t *frame, size_t captured, int64_t time_ns,
                 const uint8_t own[6]);
/* Judges connections that have waited long enough; to be called once a second. */
void mirror_settle(struct mirror *mirror);
struct mirror_counts mirror_counts_of(struct mirror *mirror);

/* Judges what came between two readings of the counts; what never came, by the later alone. */
enum mirror_fault mirror_judge(const struct mirror_counts *before, const struct mirror_counts *now);
const char *mirror_fault_word(enum mirror_fault fault);
/* Returns what to change at the switch; NULL if nothing is wrong. */
const char *mirror_advice(enum mirror_fault fault);

#endif
