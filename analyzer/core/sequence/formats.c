/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of the sequenced formats. All fields are big-endian; a block's header is in
 * common/block.h.
 *
 *   iperf2 (UDP)                    iperf3 (UDP)                 RTP (RFC 3550 section 5.1)
 *   OFFSET SIZE                     OFFSET SIZE                  OFFSET SIZE
 *   0      4    id, signed          0      4    seconds          0      1    version 2, P, X, CC
 *   4      4    seconds             4      4    microseconds     1      1    marker, payload type
 *   8      4    microseconds        8      4    number; 8 with   2      2    sequence number
 *   12     4    id, high half,                  64-bit counters  4      4    timestamp
 *               since 2.0.10                                     8      4    SSRC
 *                                                                12     ..   CSRCs, extension
 *
 * A reader must not read above `captured`. It checks only the fields that its format fixes; for
 * iperf these are only seconds that must not be 0 and the range of the microseconds. */
#include "sequence/formats.h"

#include "base/bytes.h"
#include "common/block.h"

#define BILLION 1000000000

/* A 64-bit value above this is not a counter; the bound also keeps differences from overflow. */
#define SEQUENCE_MOST ((uint64_t)1 << 62)

#define AHEAD_MOST  ((int64_t)1 << 24) /* one minute of minimum-size packets at 100 Mbit/s */
#define FOLLOW_MOST 64
#define STEP_MOST   UINT16_MAX

/* RFC 3550 A.1 */
#define MAX_DROPOUT  3000
#define MAX_MISORDER 100

/* A block's key is run and stream: each stream of a run has its own numbers. It is corrupt if its
 * length or its pattern is wrong; a header without the magic number is not a block. */
static bool read_block(const struct sequence_layout *layout, struct sequence_item *item,
                       const struct sequence_payload *payload) {
    struct block_header header;
    (void)layout;
    if (!block_read_header(&header, payload->bytes, payload->captured) ||
        header.sequence >= SEQUENCE_MOST)
        return false;
    item->key = (uint64_t)header.run << 16 | header.stream;
    item->sequence = header.sequence;
    item->sent = (int64_t)header.sent_ns;
    item->first = header.flags & BLOCK_FIRST;
    item->corrupt = payload->corrupt || header.length != payload->length;
    return true;
}

/* Both tools send seconds and microseconds. Newer versions of iperf3 count from the start of the
 * system (CLOCK_MONOTONIC), so only differences have a meaning. */
static bool read_time(struct sequence_item *item, const uint8_t *at) {
    uint32_t seconds = load_be32(at), microseconds = load_be32(at + 4);
    item->sent = (int64_t)seconds * BILLION + (int64_t)microseconds * 1000;
    return seconds && microseconds < 1000000;
}

/* The number is read as 64 bits first. If the sender counts in 32 bits, payload bytes follow, and
 * each step would be 2^32, which is over believed_step. */
static bool read_iperf3(const struct sequence_layout *layout, struct sequence_item *item,
                        const struct sequence_payload *payload) {
    const uint8_t *number = payload->bytes + 8;
    if (payload->captured < 8 + layout->bits / 8 || !read_time(item, payload->bytes))
        return false;
    item->sequence = layout->bits == 64 ? load_be64(number) : load_be32(number);
    return item->sequence < SEQUENCE_MOST;
}

/* iperf 2.0.10 and later: id, seconds, microseconds, high half of the id. Earlier versions have
 * other data in the high half. The counter is signed; an end marker is the negated id or, in some
 * versions, the id with its highest bit set. Earlier versions negate only the low half: if the high
 * half is 0 and the highest bit of the low half is set, it is an end marker unless it continues the
 * other numbers. */
static bool read_iperf2(const struct sequence_layout *layout, struct sequence_item *item,
                        const struct sequence_payload *payload) {
    bool wide = layout->bits == 64;
    if (payload->captured < (wide ? 16 : 12) || !read_time(item, payload->bytes + 4))
        return false;
    uint32_t low = load_be32(payload->bytes), high = wide ? load_be32(payload->bytes + 12) : 0;
    item->sequence = (uint64_t)high << 32 | low;
    item->is_end = (wide ? high : low) >> 31;
    item->may_be_end = wide && !high && low >> 31;
    return item->is_end || high <= UINT16_MAX; /* a larger value is not an id */
}

/* Clock rates of RFC 3551 tables 4 and 5; signaling negotiates all others. */
static const uint32_t tick_rates[35] = {
    [0] = 8000,   [3] = 8000,   [4] = 8000,   [5] = 8000,   [6] = 16000,  [7] = 8000,
    [8] = 8000,   [9] = 8000,   [10] = 44100, [11] = 44100, [12] = 8000,  [13] = 8000,
    [14] = 90000, [15] = 8000,  [16] = 11025, [17] = 22050, [18] = 8000,  [25] = 90000,
    [26] = 90000, [28] = 90000, [31] = 90000, [32] = 90000, [33] = 90000, [34] = 90000,
};

#define COMFORT_NOISE     13 /* RFC 3389 section 4 */
#define OLD_COMFORT_NOISE 19 /* of early implementations (RFC 3551 table 4 reserves it) */

/* RFC 3550 section 5.1 and the checks of A.1. */
static bool read_rtp(const struct sequence_layout *layout, struct sequence_item *item,
                     const struct sequence_payload *payload) {
    const uint8_t *bytes = payload->bytes;
    (void)layout;
    if (payload->captured < 12 || bytes[0] >> 6 != 2)
        return false;
    uint8_t kind = bytes[1] & 0x7f;
    /* With the marker bit these types are RTCP, so RTP does not use them (RFC 5761 section 4; RFC
     * 3551 reserves 72 to 76). */
    if (kind >= 64 && kind <= 95)
        return false;
    uint32_t header = 12 + 4u * (bytes[0] & 0x0f);
    if (bytes[0] & 0x10) { /* section 5.3.1: an extension has a header of 4 bytes */
        if (payload->captured >= header + 4)
            header += 4u * load_be16(bytes + header + 2);
        header += 4;
    }
    item->key = load_be32(bytes + 8);
    item->sequence = load_be16(bytes + 2);
    item->sent = load_be32(bytes + 4);
    item->payload_kind = kind;
    item->is_noise = kind == COMFORT_NOISE || kind == OLD_COMFORT_NOISE;
    item->tick_rate = kind < 35 ? tick_rates[kind] : 0;
    item->resumes = bytes[1] & 0x80 && kind < 24; /* RFC 3551 section 4.1; types of audio */
    return payload->length >= header;
}

/* Formats with a magic number come first, and 64-bit counters before 32-bit ones, because the first
 * layout that is believed wins. wiretale chose the bounds of iperf; those of RTP are those of RFC
 * 3550 A.1. */
const struct sequence_layout sequence_layouts[SEQUENCE_LAYOUTS] = {
    {WORD_BLOCKS, 64, false, AHEAD_MOST, 0, FOLLOW_MOST, STEP_MOST, read_block},
    {WORD_IPERF3, 64, false, AHEAD_MOST, 0, FOLLOW_MOST, STEP_MOST, read_iperf3},
    {WORD_IPERF3, 32, false, AHEAD_MOST, 0, FOLLOW_MOST, STEP_MOST, read_iperf3},
    {WORD_IPERF2, 64, false, AHEAD_MOST, 0, FOLLOW_MOST, STEP_MOST, read_iperf2},
    {WORD_IPERF2, 31, false, AHEAD_MOST, 0, FOLLOW_MOST, STEP_MOST, read_iperf2},
    {WORD_RTP, 16, true, MAX_DROPOUT, MAX_MISORDER, 1, MAX_MISORDER, read_rtp},
};

/* FNV-1a of the beginning. Extensions of RTP, and blocks that may be damaged, are left out: a
 * sender that answers a NACK in the same SSRC writes other extensions. */
static uint32_t print_of(const struct sequence_layout *layout,
                         const struct sequence_payload *payload) {
    bool extended = layout->ticks && payload->bytes[0] & 0x10;
    unsigned count = layout->application == WORD_BLOCKS ? 0 : extended ? 12 : payload->captured;
    uint32_t print = 2166136261u ^ payload->length;
    for (unsigned i = extended ? 1 : 0; i < count; i++)
        print = (print ^ payload->bytes[i]) * 16777619u;
    return layout->application == WORD_BLOCKS ? 0 : print;
}

bool sequence_read(const struct sequence_layout *layout, struct sequence_item *item,
                   const struct sequence_packet *packet) {
    *item = (struct sequence_item){.time_known = packet->time_known,
                                   .time_ns = packet->time_ns,
                                   .frame = packet->frame,
                                   .capture = packet->capture};
    item->length = packet->payload.length;
    item->print = print_of(layout, &packet->payload);
    return layout->read(layout, item, &packet->payload);
}

bool sequence_is_beside_rtp(const struct sequence_payload *payload) {
    const uint8_t *bytes = payload->bytes;
    if (payload->captured < 8)
        return false;
    if (bytes[0] < 4) /* RFC 8489 section 5: the magic cookie */
        return load_be32(bytes + 4) == 0x2112a442;
    /* RFC 7983: the first byte distinguishes the protocols. */
    if (bytes[0] >= 20 && bytes[0] < 64) /* DTLS 1.0 and 1.2 */
        return bytes[1] == 0xfe;
    return bytes[0] >> 6 == 2 && bytes[1] >= 192 && bytes[1] <= 223; /* RFC 5761 */
}
