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

/* Returns a copy of the packet's start. The pattern of a block is checked now, because the rest of
 * its payload is not kept. */
struct sequence_kept sequence_keep(const struct sequence_packet *packet) {
    struct sequence_reading block;
    struct sequence_kept kept = {
        .time_ns = packet->time_ns,
        .frame = packet->frame,
        .length = (uint16_t)(packet->length < UINT16_MAX ? packet->length : UINT16_MAX),
        .captured = (uint8_t)(packet->captured < SEQUENCE_BYTES_MOST ? packet->captured
                                                                     : SEQUENCE_BYTES_MOST),
        .time_known = packet->time_known,
        .present = true,
    };
    if (kept.captured) /* the payload pointer may be NULL if nothing was captured */
        memcpy(kept.payload, packet->payload, kept.captured);
    kept.corrupt = packet->corrupt || (sequence_layouts[0].read(&block, packet->payload,
                                                                packet->captured, packet->length) &&
                                       block.corrupt);
    return kept;
}

bool sequence_read_kept(struct sequence_reading *reading, const struct sequence_layout *layout,
                        const struct sequence_kept *kept) {
    if (!layout->read(reading, kept->payload, kept->captured, kept->length))
        return false;
    reading->corrupt = layout->format == SEQUENCE_BLOCKS && kept->corrupt;
    return true;
}

bool sequence_is_any(const struct sequence_kept *kept) {
    struct sequence_reading reading;
    for (unsigned i = 0; i < SEQUENCE_LAYOUTS; i++)
        if (sequence_read_kept(&reading, &sequence_layouts[i], kept))
            return true;
    return false;
}

/* Two packets of one source, as one layout reads them. */
struct pair {
    const struct sequence_kept *earlier, *later;
    const struct sequence_reading *from, *to;
};

/* Computes the time between the two at the capture point, 0 if unknown; false on overflow. */
static bool arrival_difference(const struct pair *pair, int64_t *difference) {
    *difference = 0;
    return !pair->earlier->time_known || !pair->later->time_known ||
           !__builtin_sub_overflow(pair->later->time_ns, pair->earlier->time_ns, difference);
}

/* The sender's clock must not run against its numbers, and may differ from the capture's clock by
 * CLOCKS_APART_MOST between two packets: queues and bursts delay them. */
static bool clocks_agree(const struct pair *pair, int64_t step) {
    int64_t arrived, sent = pair->to->sent - pair->from->sent, apart;
    if ((step > 0 && sent < 0) || (step < 0 && sent > 0))
        return false;
    return arrival_difference(pair, &arrived) && !__builtin_sub_overflow(sent, arrived, &apart) &&
           apart >= -CLOCKS_APART_MOST && apart <= CLOCKS_APART_MOST;
}

static int64_t tick_difference(const struct pair *pair) {
    return (int32_t)((uint32_t)pair->to->sent - (uint32_t)pair->from->sent);
}

/* The payload type must stay the same, because each has its own clock rate. */
static bool ticks_agree(const struct pair *pair) {
    int64_t arrived, ticks = tick_difference(pair);
    if (!arrival_difference(pair, &arrived))
        return false;
    int64_t seconds = arrived / SECOND;
    int64_t most = TICKS_STEP_MOST + (seconds > 0 ? seconds : 0) * TICKS_A_SECOND;
    return pair->from->payload_kind == pair->to->payload_kind && ticks >= -most && ticks <= most;
}

static bool pair_agrees(const struct sequence_layout *layout, const struct pair *pair) {
    int64_t step = sequence_step(layout, pair->from->sequence, pair->to->sequence);
    if (step < -layout->believed_step || step > layout->believed_step)
        return false;
    return layout->clock == SEQUENCE_CLOCK_NS ? clocks_agree(pair, step) : ticks_agree(pair);
}

/* Evidence of the stored packets for one layout. */
struct agreement {
    unsigned agreeing, rising, others;
    int64_t rise;      /* from the oldest number to */
    bool has_next;     /* two numbers are consecutive */
    bool has_moved;    /* the sent times differ */
    bool is_time;      /* and are not a counter of microseconds or seconds */
    bool keeps_pace;   /* sent times advance with the capture's clock */
    bool is_plausible; /* a time of day near the capture's, or a time since boot */
};

/* Returns whether a sent time is a time of day near the capture's, or a time since boot. Newer
 * versions of iperf3 send the latter. If the capture has no times, any value is plausible. */
static bool is_plausible_time(const struct sequence_kept *kept, int64_t sent) {
    int64_t apart;
    return sent < UPTIME_MOST || !kept->time_known ||
           (!__builtin_sub_overflow(kept->time_ns, sent, &apart) && apart > -CLOCK_WRONG_MOST &&
            apart < CLOCK_WRONG_MOST);
}

/* Compares the oldest agreeing packet with the newest: the sender's clock must advance more than a
 * counter would, and by a minimum share of the capture's time, because packets sent in a burst may
 * arrive over a longer time. */
static bool keeps_pace(const struct pair *ends, unsigned agreeing) {
    int64_t arrived, sent = ends->to->sent - ends->from->sent;
    return arrival_difference(ends, &arrived) && sent >= PACE_LEAST * (int64_t)agreeing &&
           sent >= arrived / PACE_PART;
}

/* Adds the evidence of one pair. Differences of whole seconds, of 1 µs, or of 1 µs for each number
 * are those of a counter, not of a clock. */
static void add_agreeing(struct agreement *found, const struct sequence_layout *layout,
                         const struct pair *pair) {
    bool has_ns = layout->clock == SEQUENCE_CLOCK_NS;
    int64_t step = sequence_step(layout, pair->from->sequence, pair->to->sequence);
    int64_t sent = pair->to->sent - pair->from->sent;
    found->agreeing++;
    found->rise += step;
    found->rising += step > 0 && (has_ns || tick_difference(pair) >= 0);
    found->has_next |= step == 1;
    found->has_moved |= sent != 0;
    found->is_time |=
        has_ns && sent % SECOND && sent != step * 1000 && sent != 1000 && sent != -1000;
}

/* The same packet again, as a mirror port stores it: neither evidence for nor against. */
static bool is_again(const struct pair *pair) {
    return pair->from->sequence == pair->to->sequence && pair->from->sent == pair->to->sent;
}

/* Goes back from the newest packet, as long as packets of its source agree. */
static struct agreement agreement_on(const struct sequence_layout *layout,
                                     const struct sequence_trial *trial, uint64_t *key) {
    struct agreement found = {0};
    struct sequence_reading readings[2], newest;
    struct pair pair = {.later = &trial->kept[trial->count - 1], .to = &readings[0]};
    if (!sequence_read_kept(&readings[0], layout, pair.later) || readings[0].is_end)
        return found;
    newest = readings[0];
    *key = newest.key;
    found.agreeing = 1;
    found.is_plausible = is_plausible_time(pair.later, newest.sent);
    for (unsigned i = trial->count - 1, next = 1; i-- > 0;) {
        pair.earlier = &trial->kept[i];
        pair.from = &readings[next];
        if (!sequence_read_kept(&readings[next], layout, pair.earlier)) {
            found.others++;
            continue;
        }
        if (readings[next].key != *key || readings[next].is_end || is_again(&pair))
            continue;
        if (!pair_agrees(layout, &pair))
            break;
        add_agreeing(&found, layout, &pair);
        pair.later = pair.earlier;
        pair.to = pair.from;
        next = !next;
    }
    pair.from = pair.to; /* the oldest agreeing packet */
    pair.earlier = pair.later;
    pair.to = &newest;
    pair.later = &trial->kept[trial->count - 1];
    found.keeps_pace = keeps_pace(&pair, found.agreeing);
    return found;
}

/* Numbers must rise in two of three steps, so a swap among three packets waits for the fourth. RTP
 * has no time to compare: RFC 3550 A.1 requires two consecutive packets. iperf has only its time:
 * ESP in UDP (RFC 3948) with AES-GCM has a constant and two counters (RFC 4106), which look like
 * iperf3 in a frozen second with one packet per microsecond. */
static bool is_believed(const struct sequence_layout *layout, const struct agreement *found) {
    if (found->agreeing < AGREE_LEAST || found->others * 4 > found->agreeing ||
        found->rising * 3 < (found->agreeing - 1) * 2 || found->rise * 2 < found->agreeing - 1)
        return false;
    if (layout->has_magic)
        return true;
    if (layout->clock == SEQUENCE_CLOCK_TICKS)
        return found->has_next;
    return found->has_moved && found->is_time && (found->is_plausible || found->keeps_pace);
}

bool sequence_look_alike(const struct sequence_kept *earlier, const struct sequence_kept *later) {
    struct sequence_reading from, to;
    for (unsigned i = 0; i < SEQUENCE_LAYOUTS; i++) {
        const struct sequence_layout *layout = &sequence_layouts[i];
        struct pair pair = {earlier, later, &from, &to};
        if (sequence_read_kept(&from, layout, earlier) && sequence_read_kept(&to, layout, later) &&
            from.key == to.key && pair_agrees(layout, &pair))
            return true;
    }
    return false;
}

void sequence_trial_add(struct sequence_trial *trial, const struct sequence_kept *kept) {
    if (trial->count == SEQUENCE_KEPT_MOST) {
        trial->count--;
        memmove(&trial->kept[0], &trial->kept[1], trial->count * sizeof trial->kept[0]);
    }
    trial->kept[trial->count++] = *kept;
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
