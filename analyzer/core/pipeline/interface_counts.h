/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of each input interface while it is read, and the interfaces table. */
#ifndef WIRETALE_INTERFACE_COUNTS_H
#define WIRETALE_INTERFACE_COUNTS_H

#include "decode/headers.h"
#include "format/merged_input.h"
#include "local/stations.h"
#include "pipeline/bursts.h"
#include "rows/row_sink.h"
#include "update/capture_ports.h"

#define UNDECODED_NAMED 8u /* protocols of an interface that are counted one by one */

struct undecoded_count {
    uint32_t protocol; /* undecoded_protocol() */
    enum decode_reason reason;
    uint64_t packets;
};

/* The first packet of a kind. */
struct first_packet {
    uint64_t frame; /* 0 for none */
    int64_t time_ns;
    bool timed;
};

struct interface_count {
    uint64_t packets, time_unknown, bytes, filtered, captured_bytes;
    int64_t first_ns, last_ns, backward_ns_max, previous_ns;
    int64_t tick_ns;          /* least time between two packets, one tick of a coarse clock */
    int64_t tick_most_ns;     /* a longer time is not one tick */
    uint32_t ticks, no_ticks; /* packets that came one tick after the one before, or none */
    uint16_t clock_step_us;   /* the tick as far as it is known, 0 if the clock is fine */
    uint64_t last_frame;      /* 0 if it has no time */
    uint64_t truncated, time_out_of_range, time_out_of_range_frame, time_unknown_frame;
    uint64_t backward_steps, super_segments;
    uint64_t wlan_frames, wlan_retries; /* 802.11 data frames, and retries among them */
    uint64_t lengths_cut;               /* IP packets longer than their record */
    struct first_packet backward, super_segment, length_cut, cut, malformed, undecoded_first,
        not_understood;
    uint64_t reasons[REASON_COUNT]; /* packets by how decoding ended */
    struct undecoded_count undecoded[UNDECODED_NAMED];
    uint64_t undecoded_by_reason[REASON_COUNT]; /* packets of these and of all further protocols */
    struct bursts bursts;
    struct stations stations;
    uint64_t no_flow_bytes; /* wire bytes of packets without an IP header that was read */
};

struct interface_counts {
    struct interface_count *counts; /* by interface */
    size_t room;
    uint32_t first;     /* number of the first interface that is counted */
    size_t rings_bytes; /* memory of the rings of their bursts */
};

/* Packets outside the interval that was asked for. Without any, first_ns > last_ns. */
struct excluded_packets {
    uint64_t count;
    int64_t first_ns, last_ns;
};

/* Returns the counts of an interface; NULL without memory. The pointer is good until the next call
 * for a new interface. */
struct interface_count *interface_count_of(struct interface_counts *list, uint32_t interface);

/* Counts a packet. Returns by how much its time is before that of the packet before it, ns. */
int64_t interface_count_packet(struct interface_count *count, const struct packet *packet,
                               int64_t time_ns);
/* Returns the time of the latest packet of an interface, TIME_UNKNOWN without one. `context` is the
 * counts. */
int64_t interface_last_ns(const void *context, uint32_t interface);
/* Frees all counts. */
void interface_counts_free(struct interface_counts *list);

/* Counts how the decoding of the packet ended, and packets longer than a link could carry. */
void interface_count_headers(struct interface_count *count, const struct packet *packet,
                             const struct headers *headers);

#define JUMBO_BYTES 9216 /* bytes; the largest frame that switches commonly carry */

/* Returns whether interface_count_headers() would only add to the packets that were decoded. */
static inline bool headers_are_ordinary(const struct headers *headers) {
    return headers->reason == REASON_NONE && !headers->wlan && headers->ip_length <= JUMBO_BYTES &&
           !headers->length_from_frame && !headers->length_over_record && !headers->undecoded &&
           (LIKELY(headers->protocol == IP_TCP) || !undecoded_protocol(headers));
}

/* Returns libpcap's DLT_ number for a LINKTYPE_ number of a file. */
int link_type_dlt(uint16_t link_type);

/* The duplicates that the capture made. */
struct interface_duplicates {
    const uint64_t *mirrored; /* by interface */
    size_t mirrored_room;
    const struct capture_ports *ports;
    bool
        shard; /* of a cluster: rows of second_ports are of more pairs, with their number as rank */
};

/* Adds a row for each interface, and those of decode_stops. Columns of duplicates are null unless
 * the analysis is `whole`. */
void interface_rows_add(struct row_sink *sink, const struct merged_input *input,
                        struct interface_counts *list,
                        const struct interface_duplicates *duplicates, bool whole);
/* Keeps the times of the interfaces that are counted, then frees the counts and begins with further
 * interfaces. */
void interface_counts_restart(struct interface_counts *list, const struct merged_input *input);
/* Adds rows of interfaces before those, from `least` on, with no more than their files and times.
 */
void interface_rows_add_before(struct row_sink *sink, const struct merged_input *input,
                               uint32_t least, uint32_t first);

#endif
