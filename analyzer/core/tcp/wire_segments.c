/* SPDX-License-Identifier: Apache-2.0 */
/* The payload of a full segment is the lesser MSS of both SYNs (RFC 9293 section 3.7.1), less the
 * timestamp option, which every segment carries if both ends agreed on it (RFC 7323 section 3.2).
 * If a payload exceeds the MSS of its receiver, there are super-segments, and each payload counts
 * as the segments that it needs.
 *
 * If the capture has not both SYNs, super-segments are recognized because they exceed an Ethernet
 * frame. Their sizes must then prove the MSS: most are multiples of it, and so is the largest
 * packet that is no super-segment, if one of full size was captured. The common divisor of most
 * sizes is found with a candidate and a vote (Boyer and Moore's majority algorithm), because the
 * last piece of a write can have any size. */
#include "tcp/wire_segments.h"

#include <string.h>

#define ETHERNET_PAYLOAD  1460u /* of the MTU 1500, less IPv4 and TCP headers */
#define TIMESTAMPS_OPTION 12u   /* bytes with padding, RFC 7323 appendix A */
#define LEAST_MSS         48u   /* the least that Linux accepts */
#define LEAST_PROVEN      500u  /* the default MSS 536 (RFC 9293), less options */

/* --- the size of a segment ------------------------------------------------------------------- */

/* Sets the limits of the first data. If the snap length cut the options, those of earlier segments
 * decide. */
static void set_limits(const struct segment_context *seg, struct tcp_stream *sender) {
    uint32_t own = sender->mss, peer = seg->receiver->mss, least = own < peer ? own : peer;
    bool cut = seg->tcp->options & TCP_OPTION_CUT;
    bool timestamps = has_timestamps(seg) || (cut && sender->timestamps);
    sender->single_max = ETHERNET_PAYLOAD;
    if (least < LEAST_MSS)
        return;
    sender->single_max = least;
    sender->agreed_mss = (uint16_t)(timestamps ? least - TIMESTAMPS_OPTION : least);
}

static uint32_t common_divisor(uint32_t a, uint32_t b) {
    while (b) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void weigh(struct super_segments *super, uint32_t payload) {
    uint32_t common = common_divisor(payload, super->common);
    if (common >= LEAST_PROVEN) {
        super->common = common;
        super->fits++;
    } else if (super->misses < super->fits) {
        super->misses++;
    } else {
        super->common = payload;
        super->fits = 1;
        super->misses = 0;
    }
}

static uint32_t proven_mss(const struct super_segments *super) {
    uint32_t common = super->common, single = super->link_max;
    if (super->fits <= super->misses)
        return 0;
    if (single >= LEAST_PROVEN && common % single == 0)
        return single;
    return common <= ETHERNET_PAYLOAD && common >= single ? common : 0;
}

/* A sender whose own MSS is small may still send as much as the receiver announced. Some senders
 * exceed that by a few bytes, so a longer payload is a proof only if no Ethernet frame holds it, or
 * if it is two segments. */
static bool has_super_segments(const struct tcp_stream *stream) {
    uint32_t most = stream->segment_max;
    return stream->super_segments && most > stream->super_segments->allowed &&
           (most > ETHERNET_PAYLOAD || most >= 2u * stream->agreed_mss);
}

uint32_t wire_mss(const struct tcp_stream *stream) {
    bool super = has_super_segments(stream);
    if (stream->agreed_mss && (super || !stream->super_segments))
        return stream->agreed_mss;
    return super ? proven_mss(stream->super_segments) : stream->segment_max;
}

/* --- sums ------------------------------------------------------------------------------------ */

static bool make_sums(struct segment_context *seg) {
    struct tcp_stream *sender = seg->sender;
    if (sender->super_segments)
        return true;
    struct super_segments *super = pool_alloc(seg->pool, sizeof *super);
    sender->counts_missing |= !super;
    if (!super)
        return false;
    memset(super, 0, sizeof *super);
    super->allowed = sender->agreed_mss ? seg->receiver->mss : 0;
    super->link_max = sender->segment_max;
    if (super->link_max >= LEAST_PROVEN)
        super->common = super->link_max;
    sender->super_segments = super;
    return true;
}

/* A SYN may carry data before the MSS is known (RFC 7413). */
NOINLINE void note_long_payload(struct segment_context *seg) {
    struct tcp_stream *sender = seg->sender;
    uint32_t payload = seg->packet->payload_bytes;
    if (seg->tcp->flags & TCP_SYN)
        return;
    if (!sender->single_max)
        set_limits(seg, sender);
    if (payload <= sender->single_max || !make_sums(seg))
        return;
    if (!sender->agreed_mss)
        weigh(sender->super_segments, payload);
    count_long(sender, WIRE_DATA, long_bytes(sender, payload), 1);
}

uint64_t long_bytes(const struct tcp_stream *stream, int64_t bytes) {
    if (!stream->super_segments || bytes <= 0)
        return 0;
    uint64_t whole = (uint64_t)bytes, mss = stream->agreed_mss;
    if (whole <= stream->single_max) {
        if (whole > stream->super_segments->link_max)
            stream->super_segments->link_max = (uint32_t)whole;
        return 0;
    }
    return mss ? (whole + mss - 1) / mss * mss : whole;
}

void count_long(struct tcp_stream *stream, enum wire_counter counter, uint64_t bytes,
                uint64_t sign) {
    if (!bytes)
        return;
    stream->super_segments->sums[counter].packets += sign;
    stream->super_segments->sums[counter].bytes += sign * bytes;
}

uint32_t segments_of(const struct tcp_stream *stream, uint64_t bytes) {
    bool several = bytes && stream->agreed_mss && has_super_segments(stream);
    return several ? (uint32_t)(bytes / stream->agreed_mss) : 1;
}

int64_t wire_count(const struct tcp_stream *stream, enum wire_counter counter, uint64_t packets) {
    uint64_t mss = wire_mss(stream);
    if (!has_super_segments(stream))
        return (int64_t)packets;
    if (!mss)
        return -1;
    uint64_t bytes = stream->super_segments->sums[counter].bytes;
    return (int64_t)(packets - stream->super_segments->sums[counter].packets +
                     (bytes + mss - 1) / mss);
}
