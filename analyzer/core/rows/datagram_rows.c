/* SPDX-License-Identifier: Apache-2.0 */
/* The row of a fragmented datagram that is complete or given up. Offsets and sizes are bytes of the
 * IP payload. A column stays null if the datagram cannot determine it: its size if the last
 * fragment (more fragments = 0, RFC 791) is missing, its missing bytes also if the list of gaps
 * overflowed (GAPS_MOST), its flow if no fragment could be assigned to one. */
#include <stdio.h>

#include "rows/rows.h"

#define MISSING_TEXT_MAX 1024 /* bytes; a longer text ends in ... */
#define RANGE_TEXT_MAX   26

/* Writes the gaps as in `1480-2959, 5920-`: first and last byte, without an end if it is
 * unknown. */
static void describe_missing(const struct datagram *datagram, char *text) {
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < datagram->original.gaps.count; i++) {
        const struct gap *gap = &datagram->original.gaps.gaps[i];
        const char *comma = i ? ", " : "";
        if (used + RANGE_TEXT_MAX + sizeof "..." > MISSING_TEXT_MAX) {
            snprintf(text + used, MISSING_TEXT_MAX - used, "%s...", comma);
            return;
        }
        bool open = gap->end == DATAGRAM_UNBOUNDED;
        unsigned first = (unsigned)gap->start, last = (unsigned)gap->end - 1;
        int size = open ? snprintf(text + used, RANGE_TEXT_MAX, "%s%u-", comma, first)
                        : snprintf(text + used, RANGE_TEXT_MAX, "%s%u-%u", comma, first, last);
        used += (size_t)size;
    }
}

static void put_bytes(struct row_sink *sink, struct row *row, const struct datagram *datagram) {
    const struct range_set *gaps = &datagram->original.gaps;
    char missing[MISSING_TEXT_MAX];
    bool counted = datagram->end_known && !datagram->original.gaps_lost;
    row_set_if(row, datagrams_bytes, datagram->end_known, datagram->size);
    row_set(row, datagrams_received_bytes, datagram->received);
    row_set(row, datagrams_overhead_bytes, datagram->overhead_bytes);
    row_set_if(row, datagrams_missing_bytes, counted, counted ? range_set_bytes(gaps) : 0);
    row_set_if(row, datagrams_missing_ranges, !datagram->original.gaps_lost, gaps->count);
    row_set_if(row, datagrams_missing_from, gaps->count, gaps->count ? gaps->gaps->start : 0);
    describe_missing(datagram, missing);
    row_set_text(sink, row, datagrams_missing, missing);
}

/* The first fragment of UDP has the length of all. */
static void put_payload(struct row *row, const struct datagram *datagram) {
    bool udp = datagram->key.protocol == IP_UDP && datagram->has_payload;
    bool sized = datagram->end_known && datagram->first_seen;
    int64_t whole = (int64_t)datagram->size - datagram->transport_header;
    row_set_if(row, datagrams_payload_bytes, udp || sized, udp ? datagram->payload.length : whole);
}

static void put_fragments(struct row *row, const struct datagram *datagram, bool timed) {
    row_set(row, datagrams_fragments, datagram->fragments);
    row_set(row, datagrams_out_of_order, datagram->out_of_order);
    row_set(row, datagrams_duplicates, datagram->duplicates);
    row_set(row, datagrams_overlaps, datagram->overlaps);
    row_set(row, datagrams_late, datagram->late);
    row_set(row, datagrams_first_frame, datagram->first_frame);
    row_set(row, datagrams_last_frame, datagram->last_frame);
    row_set_if(row, datagrams_first_ns, timed, datagram->first_ns);
    row_set_if(row, datagrams_last_ns, timed, datagram->last_ns);
    row_set_if(row, datagrams_complete_ns, timed && datagram->complete, datagram->complete_ns);
}

void datagram_row_add(struct row_sink *sink, const struct datagram *datagram) {
    const struct datagram_key *key = &datagram->key;
    struct row row;
    row_clear(&row);
    bool flow_known = datagram->counted && datagram->flow != FLOW_NONE;
    row_set_if(&row, datagrams_flow, flow_known, datagram->flow);
    row_set_if(&row, datagrams_direction, flow_known, datagram->direction);
    row_set(&row, datagrams_capture, datagram->capture);
    row_set(&row, datagrams_source, add_address(sink, key->ip_version, key->source));
    row_set(&row, datagrams_destination, add_address(sink, key->ip_version, key->destination));
    row_set(&row, datagrams_protocol_number, key->protocol);
    row_set(&row, datagrams_identification, key->identification);
    row_set(&row, datagrams_state, datagram->complete ? WORD_COMPLETE : WORD_INCOMPLETE);
    put_bytes(sink, &row, datagram);
    put_payload(&row, datagram);
    put_fragments(&row, datagram, datagram->timed);
    row_sink_add(sink, TABLE_datagrams, &row);
}
