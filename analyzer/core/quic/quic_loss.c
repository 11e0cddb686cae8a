/* SPDX-License-Identifier: Apache-2.0 */
/* Losses by the bits Q and L of short headers (RFC 9506;
 * draft-ferrieux-hamchaoui-quic-lossbits for their place).
 *
 * The sender inverts Q after each 64 packets, so that the packets that a block lacks were lost
 * before the capture point, and sets L in one packet for each that it declared lost anywhere.
 * Unless both ends agreed on it, header protection makes both bits random, and the agreement is
 * encrypted: the bits count only if Q is a square wave over many blocks, and L only in packets of
 * such a wave.
 *
 * A block ends once 16 packets of the next one came, because reordering makes short runs. Packets
 * that come later still count for a neighbor, which leaves the sum of all blocks as it is. If a
 * whole block is lost, its neighbors become one run of up to 128 packets, which is three blocks.
 */
#include "quic/quic_loss.h"

#define Q_BIT        0x10
#define L_BIT        0x08
#define BLOCK        64u
#define BLOCK_BEGINS 16u /* packets; half of them would be as many as random bits have in 64 */
#define BLOCKS_LEAST 8u
#define RUN_LEAST    48u /* packets of a run that is near a block; a run of two has more than most */
#define RUN_MOST     (BLOCK + BLOCK_BEGINS - 1)
#define EDGES_MOST   8u   /* of a block, by reordering; random bits have 32 */
#define EXCESS_PART  100u /* of the packets may be duplicates */
#define REPORTS_PART 4u   /* of the packets may have L; the bit R of RFC 9506 is set in half */
#define LATE_REPORTS 2    /* losses at the end of the capture whose L was not captured */
#define LATE_PART    10

/* Notes the packet behind a block that lacks some, unless its neighbor has as many more: those
 * came late. */
static void note_lacking(struct quic_square *square, uint64_t sent, uint64_t run) {
    bool lacked = square->lacking > 0;
    square->lacking += (int64_t)(sent - run);
    if (!lacked)
        square->after_loss = square->edge;
    if (square->lacking <= 0)
        square->after_loss.frame = 0;
}

static void end_block(struct quic_square *square) {
    uint64_t run = square->current.packets;
    if (square->begun) { /* the first block may have begun before the capture */
        uint64_t blocks = 1 + 2 * ((run - BLOCK_BEGINS) / BLOCK);
        note_lacking(square, blocks * BLOCK, run);
        square->sum.packets += run;
        square->sum.reports += square->current.reports;
        square->blocks += blocks;
        square->runs++;
        square->whole_runs += run >= RUN_LEAST && run <= RUN_MOST;
    } else {
        square->edges = 0;
        square->report.frame = 0;
    }
    square->begun = true;
    square->current = square->next;
    square->next = (struct quic_marks){0};
    square->value = !square->value;
}

void quic_square_take(struct quic_square *square, uint8_t first, struct quic_moment seen) {
    bool value = first & Q_BIT;
    if (!square->seen)
        square->value = square->latest = value;
    square->seen = true;
    square->edges += value != square->latest;
    square->latest = value;
    struct quic_marks *block = value == square->value ? &square->current : &square->next;
    if (block == &square->next && !block->packets)
        square->edge = seen;
    if (first & L_BIT && !square->report.frame)
        square->report = seen;
    block->packets++;
    block->reports += !!(first & L_BIT);
    if (square->next.packets >= BLOCK_BEGINS)
        end_block(square);
}

static bool is_square(const struct quic_square *square) {
    uint64_t sent = square->blocks * BLOCK, packets = square->sum.packets;
    return square->runs >= BLOCKS_LEAST && square->whole_runs >= square->runs - square->runs / 4 &&
           square->edges <= square->runs * EDGES_MOST &&
           (packets <= sent || packets - sent <= sent / EXCESS_PART);
}

bool quic_square_loss(const struct quic_square *square, struct quic_loss *loss) {
    *loss = (struct quic_loss){
        .sent = -1, .missing = -1, .upstream = -1, .whole = -1, .downstream = -1};
    if (!is_square(square))
        return false;
    int64_t packets = (int64_t)square->sum.packets, sent = (int64_t)(square->blocks * BLOCK);
    loss->sent = sent;
    loss->missing = loss->upstream = sent > packets ? sent - packets : 0;
    loss->first = square->after_loss;
    if (square->sum.reports > square->sum.packets / REPORTS_PART)
        return true;
    if (!loss->first.frame || (square->report.frame && square->report.frame < loss->first.frame))
        loss->first = square->report;
    /* Packets with L are lost upstream as often as others. */
    loss->whole = (int64_t)((double)square->sum.reports * (double)sent / (double)packets + 0.5);
    if (loss->whole + LATE_REPORTS + loss->missing / LATE_PART >= loss->missing)
        loss->downstream = loss->whole > loss->missing ? loss->whole - loss->missing : 0;
    else
        loss->upstream = -1;
    return true;
}
