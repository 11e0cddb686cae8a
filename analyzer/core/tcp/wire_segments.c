/* SPDX-License-Identifier: Apache-2.0 */
/* The payload of a full segment is the lesser MSS of both SYNs (RFC 9293 section 3.7.1), less the
 * timestamp option, which every segment carries if both ends agreed on it (RFC 7323 section 3.2).
 * If a payload exceeds the MSS of its receiver, there are super-segments, and each payload counts
 * as the segments that it needs.
 *
 * The path may carry less than both SYNs announce (RFC 1191): an ICMP error has its MTU, or the
 * sizes of the super-segments prove the lesser MSS, if most are multiples of it. Counts of
 * super-segments follow from then on, and those before from their bytes.
 *
 * If the capture has not both SYNs, super-segments are recognized because they exceed an Ethernet
 * frame. Their sizes must then prove the MSS: most are multiples of it, and so is the largest
 * packet that is no super-segment, if one of full size was captured. The common divisor of most
 * sizes is found with a candidate and a vote (Boyer and Moore's majority algorithm), because the
 * last piece of a write can have any size. */
#include "tcp/wire_segments.h"

#define ETHERNET_PAYLOAD  1460u /* of the MTU 1500, less IPv4 and TCP headers */
#define TIMESTAMPS_OPTION 12u   /* bytes with padding, RFC 7323 appendix A */
#define LEAST_MSS         48u   /* the least that Linux accepts */
#define LEAST_PROVEN      500u  /* the default MSS 536 (RFC 9293), less options */
#define LEAST_OF_PATH     1208u /* of the MTU 1280 (RFC 8200), less both headers and timestamps */
#define PROOFS_OF_PATH    4u    /* payloads that must fit more often than not */
#define BULK_PACKETS      8u    /* that show the largest segment of a sender */

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
    sender->single_max = least < ETHERNET_PAYLOAD ? least : ETHERNET_PAYLOAD;
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

/* The path carries less than both SYNs announce if the sender fills packets of one lesser size. */
static bool is_bulk_of_less(const struct tcp_stream *stream, uint64_t packets, uint64_t payload) {
    uint32_t most = stream->segment_max;
    return packets >= BULK_PACKETS && most >= LEAST_OF_PATH && most < stream->agreed_mss &&
           payload / packets >= most - most / 10;
}

uint32_t wire_mss(const struct tcp_stream *stream, uint64_t packets, uint64_t payload) {
    bool super = has_super_segments(stream);
    if (stream->agreed_mss && super)
        return stream->agreed_mss;
    if (stream->agreed_mss >= stream->segment_max && !is_bulk_of_less(stream, packets, payload))
        return stream->agreed_mss;
    return super ? proven_mss(stream->super_segments) : stream->segment_max;
}

/* --- the path ------------------------------------------------------------------------------- */

static uint64_t whole_segments(uint64_t bytes, uint64_t mss) {
    return (bytes + mss - 1) / mss;
}

/* Payloads before this one count as their sum needs, because single ones are no longer known. */
static void set_path_mss(struct tcp_stream *stream, uint32_t mss) {
    stream->agreed_mss = (uint16_t)mss;
    if (mss < stream->single_max)
        stream->single_max = mss;
    for (unsigned i = 0; stream->super_segments && i < WIRE_COUNTERS; i++)
        stream->super_segments->sums[i].segments =
            whole_segments(stream->super_segments->sums[i].bytes, mss);
}

/* A single packet of more than that contradicts it, as does a divisor of two segments that each
 * are a packet below single_max. */
static bool is_path_proven(const struct tcp_stream *stream) {
    const struct super_segments *super = stream->super_segments;
    return super->common >= LEAST_OF_PATH && super->common < stream->agreed_mss &&
           super->common <= ETHERNET_PAYLOAD && super->link_max <= super->common &&
           super->fits >= super->misses + PROOFS_OF_PATH;
}

void note_path_mtu(struct tcp_stream *stream, uint32_t mtu, uint32_t ip_header) {
    uint32_t headers = ip_header + 20 + (stream->timestamps ? TIMESTAMPS_OPTION : 0);
    if (mtu >= headers + LEAST_PROVEN && mtu - headers < stream->agreed_mss)
        set_path_mss(stream, mtu - headers);
}

/* --- sums ------------------------------------------------------------------------------------ */

static bool make_sums(struct segment_context *seg) {
    struct tcp_stream *sender = seg->sender;
    if (sender->super_segments)
        return true;
    struct super_segments *super = pool_zeroed(seg->pool, sizeof *super);
    sender->counts_missing |= !super;
    if (!super)
        return false;
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
    weigh(sender->super_segments, payload);
    if (is_path_proven(sender))
        set_path_mss(sender, sender->super_segments->common);
    count_long(sender, WIRE_DATA, long_bytes(sender, payload), 1);
}

void note_fragmented_payload(struct segment_context *seg) {
    struct tcp_stream *sender = seg->sender;
    if (seg->tcp->flags & TCP_SYN)
        return;
    if (!sender->single_max)
        set_limits(seg, sender);
    if (seg->packet->payload_bytes > sender->single_max)
        sender->single_max = seg->packet->payload_bytes;
}

uint64_t long_bytes(const struct tcp_stream *stream, int64_t bytes) {
    if (!stream->super_segments || bytes <= 0)
        return 0;
    uint64_t whole = (uint64_t)bytes;
    if (whole <= stream->single_max) {
        if (whole > stream->super_segments->link_max)
            stream->super_segments->link_max = (uint32_t)whole;
        return 0;
    }
    return whole;
}

void count_long(struct tcp_stream *stream, enum wire_counter counter, uint64_t bytes,
                uint64_t sign) {
    if (!bytes)
        return;
    struct wire_sum *sum = &stream->super_segments->sums[counter];
    sum->packets += sign;
    sum->bytes += sign * bytes;
    if (!stream->agreed_mss)
        return;
    /* A payload that counted by the sum of bytes may be taken back as more segments than that. */
    uint64_t least = whole_segments(sum->bytes, stream->agreed_mss);
    sum->segments += sign * whole_segments(bytes, stream->agreed_mss);
    if ((int64_t)(sum->segments - least) < 0)
        sum->segments = least;
}

void leave_out_duplicate(struct segment_context *seg) {
    uint32_t payload = seg->packet->payload_bytes;
    recovery_state(seg, seg->sender)->duplicate_data += payload > 0;
    if (!(seg->tcp->flags & TCP_SYN))
        count_long(seg->sender, WIRE_DATA, long_bytes(seg->sender, payload), UINT64_MAX);
}

uint32_t segments_of(const struct tcp_stream *stream, uint64_t bytes) {
    bool several = bytes && stream->agreed_mss && has_super_segments(stream);
    return several ? (uint32_t)whole_segments(bytes, stream->agreed_mss) : 1;
}

int64_t wire_count(const struct tcp_stream *stream, enum wire_counter counter, uint64_t packets) {
    if (!has_super_segments(stream))
        return (int64_t)packets;
    uint64_t mss = wire_mss(stream, 0, 0);
    if (!mss)
        return -1;
    uint64_t bytes = stream->super_segments->sums[counter].bytes;
    uint64_t segments = stream->agreed_mss ? stream->super_segments->sums[counter].segments
                                           : whole_segments(bytes, mss);
    return (int64_t)(packets - stream->super_segments->sums[counter].packets + segments);
}
