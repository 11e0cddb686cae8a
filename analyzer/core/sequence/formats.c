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
 * A reader must fill the whole reading and must not read above `captured`. It checks only the
 * fields that its format fixes; for iperf these are only seconds that must not be 0 and the range
 * of the microseconds. */
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
static bool read_block(struct sequence_reading *reading, const uint8_t *payload, uint32_t captured,
                       uint32_t length) {
    struct block_header header;
    if (!block_read_header(&header, payload, captured) || header.sequence >= SEQUENCE_MOST)
        return false;
    *reading = (struct sequence_reading){
        .key = (uint64_t)header.run << 16 | header.stream,
        .sequence = header.sequence,
        .sent = (int64_t)header.sent_ns,
        .first = header.flags & BLOCK_FIRST,
        .last = header.flags & BLOCK_LAST,
        .corrupt = header.length != length ||
                   block_check_pattern(payload, &header, 0, captured) != BLOCK_ALL_RIGHT,
    };
    return true;
}

/* Both tools send seconds and microseconds. Newer versions of iperf3 count from the start of the
 * system (CLOCK_MONOTONIC), so only differences have a meaning. */
static bool read_time(struct sequence_reading *reading, const uint8_t *at) {
    uint32_t seconds = load_be32(at), microseconds = load_be32(at + 4);
    reading->sent = (int64_t)seconds * BILLION + (int64_t)microseconds * 1000;
    return seconds && microseconds < 1000000;
}

/* The number is read as 64 bits first. If the sender counts in 32 bits, payload bytes follow, and
 * each step would be 2^32, which is over believed_step. */
static bool read_iperf3_64(struct sequence_reading *reading, const uint8_t *payload,
                           uint32_t captured, uint32_t length) {
    (void)length;
    *reading = (struct sequence_reading){0};
    if (captured < 16 || !read_time(reading, payload))
        return false;
    reading->sequence = load_be64(payload + 8);
    return reading->sequence < SEQUENCE_MOST;
}

static bool read_iperf3_32(struct sequence_reading *reading, const uint8_t *payload,
                           uint32_t captured, uint32_t length) {
    (void)length;
    *reading = (struct sequence_reading){0};
    if (captured < 12 || !read_time(reading, payload))
        return false;
    reading->sequence = load_be32(payload + 8);
    return true;
}

/* An end marker is the negated id or, in some versions, the id with its highest bit set. `ends`
 * receives the number for both readings; note_end() takes the one nearer to the highest number. */
static void set_ends(struct sequence_reading *reading, uint64_t id, uint64_t highest_bit) {
    reading->ends[0] = (0 - id) & (highest_bit - 1);
    reading->ends[1] = id & (highest_bit - 1);
}

/* iperf 2.0.10 and later: id, seconds, microseconds, high half of the id. Earlier versions have
 * other data in the high half and negate only the low half: if the high half is 0 and the highest
 * bit of the low half is set, it is an end marker unless it continues the other numbers. */
static bool read_iperf2_64(struct sequence_reading *reading, const uint8_t *payload,
                           uint32_t captured, uint32_t length) {
    (void)length;
    *reading = (struct sequence_reading){0};
    if (captured < 16 || !read_time(reading, payload + 4))
        return false;
    uint32_t low = load_be32(payload), high = load_be32(payload + 12);
    reading->sequence = (uint64_t)high << 32 | low;
    reading->is_end = high >> 31;
    reading->may_be_end = !high && low >> 31;
    if (reading->is_end)
        set_ends(reading, reading->sequence, (uint64_t)1 << 63);
    else if (reading->may_be_end)
        set_ends(reading, low, (uint64_t)1 << 31);
    return reading->is_end || high <= UINT16_MAX; /* a larger value is not an id */
}

/* The counter is signed, so it has 31 bits; a negative value is an end marker. */
static bool read_iperf2_32(struct sequence_reading *reading, const uint8_t *payload,
                           uint32_t captured, uint32_t length) {
    (void)length;
    *reading = (struct sequence_reading){0};
    if (captured < 12 || !read_time(reading, payload + 4))
        return false;
    reading->sequence = load_be32(payload);
    reading->is_end = reading->sequence >> 31;
    set_ends(reading, reading->sequence, (uint64_t)1 << 31);
    return true;
}

/* Clock rates of RFC 3551 tables 4 and 5; signaling negotiates all others. */
static const uint32_t tick_rates[35] = {
    [0] = 8000,   [3] = 8000,   [4] = 8000,   [5] = 8000,   [6] = 16000,  [7] = 8000,
    [8] = 8000,   [9] = 8000,   [10] = 44100, [11] = 44100, [12] = 8000,  [13] = 8000,
    [14] = 90000, [15] = 8000,  [16] = 11025, [17] = 22050, [18] = 8000,  [25] = 90000,
    [26] = 90000, [28] = 90000, [31] = 90000, [32] = 90000, [33] = 90000, [34] = 90000,
};

/* RFC 3550 section 5.1 and the checks of A.1. */
static bool read_rtp(struct sequence_reading *reading, const uint8_t *payload, uint32_t captured,
                     uint32_t length) {
    if (captured < 12 || payload[0] >> 6 != 2)
        return false;
    uint8_t kind = payload[1] & 0x7f;
    /* With the marker bit these types are RTCP, so RTP does not use them (RFC 5761 section 4; RFC
     * 3551 reserves 72 to 76). */
    if (kind >= 64 && kind <= 95)
        return false;
    uint32_t header = 12 + 4u * (payload[0] & 0x0f);
    if (payload[0] & 0x10) { /* section 5.3.1: an extension has a header of 4 bytes */
        if (captured >= header + 4)
            header += 4u * load_be16(payload + header + 2);
        header += 4;
    }
    if (length < header)
        return false;
    *reading = (struct sequence_reading){
        .key = load_be32(payload + 8),
        .sequence = load_be16(payload + 2),
        .sent = load_be32(payload + 4),
        .payload_kind = kind,
        .tick_rate = kind < 35 ? tick_rates[kind] : 0,
    };
    return true;
}

/* Formats with a magic number come first, and 64-bit counters before 32-bit ones, because the first
 * layout that is believed wins. wiretale chose the bounds of iperf; those of RTP are those of RFC
 * 3550 A.1. */
const struct sequence_layout sequence_layouts[SEQUENCE_LAYOUTS] = {
    {SEQUENCE_BLOCKS, 64, SEQUENCE_CLOCK_NS, AHEAD_MOST, 0, FOLLOW_MOST, STEP_MOST, false, true,
     read_block},
    {SEQUENCE_IPERF3, 64, SEQUENCE_CLOCK_NS, AHEAD_MOST, 0, FOLLOW_MOST, STEP_MOST, false, false,
     read_iperf3_64},
    {SEQUENCE_IPERF3, 32, SEQUENCE_CLOCK_NS, AHEAD_MOST, 0, FOLLOW_MOST, STEP_MOST, false, false,
     read_iperf3_32},
    {SEQUENCE_IPERF2, 64, SEQUENCE_CLOCK_NS, AHEAD_MOST, 0, FOLLOW_MOST, STEP_MOST, false, false,
     read_iperf2_64},
    {SEQUENCE_IPERF2, 31, SEQUENCE_CLOCK_NS, AHEAD_MOST, 0, FOLLOW_MOST, STEP_MOST, false, false,
     read_iperf2_32},
    {SEQUENCE_RTP, 16, SEQUENCE_CLOCK_TICKS, MAX_DROPOUT, MAX_MISORDER, 1, MAX_MISORDER, true,
     false, read_rtp},
};

bool sequence_is_beside_rtp(const uint8_t *payload, uint32_t captured) {
    if (captured < 8)
        return false;
    if (payload[0] < 4) /* RFC 8489 section 5: the magic cookie */
        return load_be32(payload + 4) == 0x2112a442;
    /* RFC 7983: the first byte distinguishes the protocols. */
    if (payload[0] >= 20 && payload[0] < 64) /* DTLS 1.0 and 1.2 */
        return payload[1] == 0xfe;
    return payload[0] >> 6 == 2 && payload[1] >= 192 && payload[1] <= 223; /* RFC 5761 */
}
