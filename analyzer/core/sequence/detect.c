/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the stored packets of a flow pairwise, for each layout in turn, from the newest back.
 *
 * Two packets of one source agree if their numbers are close and their sent times differ by about
 * the time between their arrivals; for RTP, whose clock rate may be unknown, by no more than the
 * fastest clock allows. Packets of other sources and copies are skipped, the first one that
 * disagrees ends the search. is_believed() then decides by the number of agreeing packets and, if
 * the format has no magic number, by their clock. A wrong belief would show losses that never
 * happened, so the bounds are strict; a late one costs little, because the stored packets are
 * counted afterwards.
 *
 * Differences with capture times must be checked for overflow, because a file can hold any time. */
#include "sequence/detect.h"

#include <string.h>

#define SECOND            ((int64_t)1000000000) /* ns */
#define AGREE_LEAST       3u
#define CLOCKS_APART_MOST (2 * SECOND) /* ns, between consecutive packets */
#define PACE_LEAST        4000         /* ns per packet */
#define PACE_PART         256
#define UPTIME_MOST       (365 * 86400 * SECOND) /* ns; also covers a clock that was never set */
#define CLOCK_WRONG_MOST  (86400 * SECOND)       /* ns; covers every time zone */
#define TICKS_STEP_MOST   900000 /* 10 s of the fastest common RTP clock, 90 kHz, and */
#define TICKS_A_SECOND    192000 /* ticks per second between the packets */

bool sequence_is_any(const struct sequence_packet *packet) {
    struct sequence_item item;
    for (unsigned i = 0; i < SEQUENCE_LAYOUTS; i++)
        if (sequence_read(&sequence_layouts[i], &item, packet))
            return true;
    return false;
}

/* Computes the time between two packets at the capture point, 0 if unknown; false on overflow. */
static bool arrival_difference(const struct sequence_item *from, const struct sequence_item *to,
                               int64_t *difference) {
    *difference = 0;
    return !from->time_known || !to->time_known ||
           !__builtin_sub_overflow(to->time_ns, from->time_ns, difference);
}

/* The sender's clock must not run against its numbers, and may differ from the capture's clock by
 * CLOCKS_APART_MOST between two packets: queues and bursts delay them. */
static bool clocks_agree(const struct sequence_item *from, const struct sequence_item *to,
                         int64_t step) {
    int64_t arrived, sent = to->sent - from->sent, apart;
    if ((step > 0 && sent < 0) || (step < 0 && sent > 0))
        return false;
    return arrival_difference(from, to, &arrived) &&
           !__builtin_sub_overflow(sent, arrived, &apart) && apart >= -CLOCKS_APART_MOST &&
           apart <= CLOCKS_APART_MOST;
}

static int64_t tick_difference(const struct sequence_item *from, const struct sequence_item *to) {
    return (int32_t)((uint32_t)to->sent - (uint32_t)from->sent);
}

/* The payload type must stay the same, because each has its own clock rate. */
static bool ticks_agree(const struct sequence_item *from, const struct sequence_item *to) {
    int64_t arrived, ticks = tick_difference(from, to);
    if (!arrival_difference(from, to, &arrived))
        return false;
    int64_t seconds = arrived / SECOND;
    int64_t most = TICKS_STEP_MOST + (seconds > 0 ? seconds : 0) * TICKS_A_SECOND;
    return from->payload_kind == to->payload_kind && ticks >= -most && ticks <= most;
}

/* Returns whether two packets of one key can be of one source. */
static bool is_agreeing(const struct sequence_layout *layout, const struct sequence_item *from,
                        const struct sequence_item *to) {
    int64_t step = sequence_step(layout, from->sequence, to->sequence);
    if (step < -layout->believed_step || step > layout->believed_step)
        return false;
    return layout->ticks ? ticks_agree(from, to) : clocks_agree(from, to, step);
}

/* Evidence of the stored packets for one layout. */
struct agreement {
    unsigned agreeing, rising, others;
    unsigned nexts;    /* pairs of consecutive numbers */
    unsigned lengths;  /* packets whose number is the length of their payload, and */
    unsigned parallel; /* pairs whose numbers differ as their lengths do */
    int64_t rise;      /* from the oldest number to */
    bool has_moved;    /* the sent times differ */
    bool is_time;      /* and are not a counter of microseconds or seconds */
    bool keeps_pace;   /* sent times advance with the capture's clock */
    bool is_plausible; /* a time of day near the capture's, or a time since boot */
};

/* Returns whether a sent time is a time of day near the capture's, or a time since boot. Newer
 * versions of iperf3 send the latter. If the capture has no times, any value is plausible. */
static bool is_plausible_time(const struct sequence_item *item) {
    int64_t apart;
    return item->sent < UPTIME_MOST || !item->time_known ||
           (!__builtin_sub_overflow(item->time_ns, item->sent, &apart) &&
            apart > -CLOCK_WRONG_MOST && apart < CLOCK_WRONG_MOST);
}

/* Compares the oldest agreeing packet with the newest: the sender's clock must advance more than a
 * counter would, and by a minimum share of the capture's time, because packets sent in a burst may
 * arrive over a longer time. */
static bool keeps_pace(const struct sequence_item *oldest, const struct sequence_item *newest,
                       unsigned agreeing) {
    int64_t arrived, sent = newest->sent - oldest->sent;
    return arrival_difference(oldest, newest, &arrived) && sent >= PACE_LEAST * (int64_t)agreeing &&
           sent >= arrived / PACE_PART;
}

/* The number, or its lower half, is a length field of another protocol, such as IPFIX (RFC 7011
 * section 3.1) or BACnet/IP. */
static bool is_length(const struct sequence_item *item) {
    return (uint16_t)item->sequence == item->length;
}

/* Adds the evidence of one pair. Differences of whole seconds, of 1 µs, or of 1 µs for each number
 * are those of a counter, not of a clock. */
static void add_agreeing(struct agreement *found, const struct sequence_layout *layout,
                         const struct sequence_item *from, const struct sequence_item *to) {
    int64_t step = sequence_step(layout, from->sequence, to->sequence);
    int64_t sent = to->sent - from->sent;
    found->agreeing++;
    found->rise += step;
    found->rising += step > 0 && (!layout->ticks || tick_difference(from, to) >= 0);
    found->nexts += step == 1;
    found->lengths += is_length(from);
    found->parallel += (uint16_t)step == (uint16_t)(to->length - from->length);
    found->has_moved |= sent != 0;
    found->is_time |=
        !layout->ticks && sent % SECOND && sent != step * 1000 && sent != 1000 && sent != -1000;
}

/* Goes back from the newest packet, as long as packets of its source agree. The same packet again,
 * as a mirror port stores it, is neither evidence for nor against. */
static struct agreement agreement_on(const struct sequence_layout *layout,
                                     const struct sequence_trial *trial, uint64_t *key) {
    struct agreement found = {0};
    struct sequence_item items[SEQUENCE_KEPT_MOST] = {0}, *newest = &items[trial->count - 1];
    struct sequence_item *to = newest;
    if (!sequence_read(layout, newest, &trial->kept[trial->count - 1]) || newest->is_end)
        return found;
    *key = newest->key;
    found.agreeing = 1;
    found.lengths = is_length(newest);
    found.is_plausible = is_plausible_time(newest);
    for (unsigned i = trial->count - 1; i-- > 0;) {
        struct sequence_item *from = &items[i];
        if (!sequence_read(layout, from, &trial->kept[i])) {
            found.others++;
            continue;
        }
        if (from->key != *key || from->is_end ||
            (from->sequence == to->sequence && from->sent == to->sent))
            continue;
        if (!is_agreeing(layout, from, to))
            break;
        add_agreeing(&found, layout, from, to);
        to = from;
    }
    found.keeps_pace = keeps_pace(to, newest, found.agreeing);
    return found;
}

/* Numbers must rise in two of three steps, so a swap among three packets waits for the fourth. RTP
 * has no time to compare: RFC 3550 A.1 requires two consecutive packets, and its clock must move,
 * or half of the numbers be consecutive, as in a large picture; proof.h looks again. A number that
 * is the payload's length, or differs from it by a constant, is a length field. iperf has only its
 * time: ESP in UDP (RFC 3948) with AES-GCM has a constant and two counters (RFC 4106), which look
 * like iperf3 in a frozen second with one packet per microsecond. */
static bool is_believed(const struct sequence_layout *layout, const struct agreement *found) {
    if (found->agreeing < AGREE_LEAST || found->others * 4 > found->agreeing ||
        found->rising * 3 < (found->agreeing - 1) * 2 || found->rise * 2 < found->agreeing - 1)
        return false;
    if (layout->application == WORD_BLOCKS)
        return true;
    if (found->lengths > 1 || found->parallel == found->agreeing - 1)
        return false;
    if (layout->ticks)
        return found->nexts && (found->has_moved || found->nexts * 2 >= found->agreeing - 1);
    return found->has_moved && found->is_time && (found->is_plausible || found->keeps_pace);
}

bool sequence_look_alike(const struct sequence_packet *earlier,
                         const struct sequence_packet *later) {
    struct sequence_item from, to;
    for (const struct sequence_layout *layout = sequence_layouts;
         layout < sequence_layouts + SEQUENCE_LAYOUTS; layout++)
        if (sequence_read(layout, &from, earlier) && sequence_read(layout, &to, later) &&
            from.key == to.key && is_agreeing(layout, &from, &to))
            return true;
    return false;
}

void sequence_trial_add(struct sequence_trial *trial, const struct sequence_packet *packet) {
    if (trial->count == SEQUENCE_KEPT_MOST) {
        trial->count--;
        memmove(&trial->kept[0], &trial->kept[1], trial->count * sizeof trial->kept[0]);
    }
    trial->kept[trial->count++] = *packet;
}

const struct sequence_layout *sequence_trial_believed(const struct sequence_trial *trial,
                                                      uint64_t *key) {
    for (unsigned i = 0; i < SEQUENCE_LAYOUTS; i++) {
        struct agreement found = agreement_on(&sequence_layouts[i], trial, key);
        if (is_believed(&sequence_layouts[i], &found))
            return &sequence_layouts[i];
    }
    return NULL;
}
