/* SPDX-License-Identifier: Apache-2.0 */
/* Counts each input interface in file order: times, damage to headers, offloading; then
 * writes the interfaces table.
 *
 * Counts cover the packets that pass the filter and the interval, except `filtered`. The counts of
 * drops come from the file instead (pcapng interface statistics) and concern the whole capture. */
#include <pcap.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "pipeline/interface_counts.h"

#define TICKS_ENOUGH 8u       /* packets with the same time, and packets one tick apart */
#define TICK_MOST_NS 20000000 /* a coarser clock would be older than pcap */

static NOINLINE struct interface_count *grow_counts(struct interface_counts *list,
                                                    uint32_t interface) {
    size_t before = list->room;
    if (!list_grow(&list->counts, &list->room, (size_t)interface - list->first + 1,
                   sizeof *list->counts))
        return NULL;
    /* last_ns begins as the greatest time, so that the first packet takes the slow path, which sets
     * first_ns. */
    for (size_t i = before; i < list->room; i++)
        list->counts[i] = (struct interface_count){
            .last_ns = INT64_MAX, .tick_ns = TICK_MOST_NS, .tick_most_ns = TICK_MOST_NS};
    return &list->counts[interface - list->first];
}

inline struct interface_count *interface_count_of(struct interface_counts *list,
                                                  uint32_t interface) {
    return LIKELY(interface - list->first < list->room) ? &list->counts[interface - list->first]
                                                        : grow_counts(list, interface);
}

int64_t interface_last_ns(const void *context, uint32_t interface) {
    const struct interface_counts *list = context;
    bool is_counted = interface >= list->first && interface - list->first < list->room;
    const struct interface_count *count =
        is_counted ? &list->counts[interface - list->first] : NULL;
    return count && count->packets > count->time_unknown ? count->last_ns : TIME_UNKNOWN;
}

void interface_counts_free(struct interface_counts *list) {
    for (size_t i = 0; i < list->room; i++) {
        bursts_free(&list->counts[i].bursts);
        stations_free(&list->counts[i].stations);
    }
    free(list->counts);
}

static bool tick_is_known(const struct interface_count *count) {
    return count->ticks >= TICKS_ENOUGH && count->no_ticks >= TICKS_ENOUGH;
}

/* Returns whether another step of this length shows nothing. */
static inline bool is_step_known(const struct interface_count *count, int64_t step_ns) {
    return step_ns ? step_ns >= count->tick_ns && count->ticks >= TICKS_ENOUGH
                   : count->no_ticks >= TICKS_ENOUGH;
}

/* A coarse clock stamps many packets with the same time and others one tick apart, never less. A
 * clock as fine as its file has such packets as well, a microsecond apart. */
static NOINLINE void note_tick(struct interface_count *count, int64_t step_ns) {
    if (!step_ns) {
        count->no_ticks++;
    } else {
        if (step_ns < count->tick_ns - count->tick_ns / 4)
            count->ticks = 0;
        if (step_ns < count->tick_ns)
            count->tick_ns = step_ns;
        count->tick_most_ns = count->tick_ns + count->tick_ns / 4;
        count->ticks++;
    }
    count->clock_step_us = tick_is_known(count) ? (uint16_t)(count->tick_ns / 1000) : 0;
}

static void note_first(struct first_packet *first, const struct packet *packet) {
    if (!first->frame)
        *first = (struct first_packet){packet->frame, packet->time_ns, packet_is_timed(packet)};
}

static NOINLINE void note_step_back(struct interface_count *count, const struct packet *packet,
                                    int64_t step_ns) {
    count->backward_steps++;
    note_first(&count->backward, packet);
    if (step_ns > count->backward_ns_max)
        count->backward_ns_max = step_ns;
}

/* Handles a missing time, the first one, and one before that of an earlier packet. A step back is
 * measured from the packet before, not from the latest time: otherwise one wrong time in the
 * future would make every later packet a step back. Returns the step in ns, else 0. */
static NOINLINE int64_t note_other_time(struct interface_count *count, const struct packet *packet,
                                        int64_t time_ns) {
    bool first = count->packets == count->time_unknown + 1;
    int64_t step_ns = first ? 0 : count->previous_ns - time_ns;
    if (!packet_is_timed(packet)) {
        bool out_of_range = packet->time_ns == TIME_OUT_OF_RANGE;
        uint64_t *first_frame =
            out_of_range ? &count->time_out_of_range_frame : &count->time_unknown_frame;
        if (!*first_frame)
            *first_frame = packet->frame;
        count->time_unknown++;
        count->time_out_of_range += out_of_range;
        count->last_frame = 0;
        return 0;
    }
    if (step_ns > 0)
        note_step_back(count, packet, step_ns);
    if (first || time_ns < count->first_ns)
        count->first_ns = time_ns;
    if (first || time_ns > count->last_ns)
        count->last_ns = time_ns;
    count->previous_ns = time_ns;
    return step_ns > 0 ? step_ns : 0;
}

int64_t interface_count_packet(struct interface_count *count, const struct packet *packet,
                               int64_t time_ns) {
    count->packets++;
    count->last_frame = packet->frame;
    count->bytes += packet->length;
    count->captured_bytes += packet->captured;
    count->truncated += packet->captured < packet->length;
    if (!LIKELY(time_ns >= count->last_ns) || !LIKELY(packet->time_ns == time_ns))
        return note_other_time(count, packet, time_ns);
    int64_t step_ns = time_ns - count->last_ns;
    if (step_ns <= count->tick_most_ns && !is_step_known(count, step_ns))
        note_tick(count, step_ns);
    count->last_ns = count->previous_ns = time_ns;
    return 0;
}

/* A packet that no link carries as one frame was captured before the adapter segmented it (TSO),
 * or after it was merged (GRO, LRO). */
static NOINLINE void note_long_packet(struct interface_count *count, const struct packet *packet,
                                      const struct headers *headers) {
    bool is_whole = !headers->fragment && !headers->length_over_record;
    if (headers->layer < LAYER_NETWORK || !is_whole)
        return;
    count->super_segments++;
    note_first(&count->super_segment, packet);
}

/* Counts a packet other than TCP if it belongs to no flow, and if its protocol may hide an IP
 * packet. */
static NOINLINE void note_undecoded(struct interface_count *count, const struct packet *packet,
                                    const struct headers *headers) {
    uint32_t protocol = undecoded_protocol(headers);
    struct undecoded_count *named = count->undecoded, *end = named + UNDECODED_NAMED;
    if (headers->layer < LAYER_NETWORK)
        count->no_flow_bytes += wire_bytes_of(packet->link_type, packet->length);
    if (!protocol) {
        if (headers->answer == DECODE_NOT_UNDERSTOOD && headers->reason != REASON_NOT_IP)
            note_first(&count->not_understood, packet);
        return;
    }
    count->undecoded_by_reason[headers->reason]++;
    note_first(&count->undecoded_first, packet);
    while (named < end && named->packets &&
           (named->protocol != protocol || named->reason != headers->reason))
        named++;
    if (named == end)
        return;
    named->protocol = protocol;
    named->reason = headers->reason;
    named->packets++;
}

static NOINLINE void note_cut_length(struct interface_count *count, const struct packet *packet,
                                     const struct headers *headers) {
    if (headers->layer < LAYER_NETWORK)
        return;
    count->lengths_cut++;
    note_first(&count->length_cut, packet);
}

static NOINLINE void note_answer(struct interface_count *count, const struct packet *packet,
                                 const struct headers *headers) {
    if (headers->answer == DECODE_MALFORMED)
        note_first(&count->malformed, packet);
    else if (headers->answer == DECODE_CUT)
        note_first(&count->cut, packet);
}

/* An IP length of 0 is the other sign of TSO, because the adapter fills it in; jumbograms (RFC
 * 2675) have it too, and are as long. */
void interface_count_headers(struct interface_count *count, const struct packet *packet,
                             const struct headers *headers) {
    count->reasons[headers->reason]++;
    count->wlan_frames += headers->wlan != WLAN_NONE;
    count->wlan_retries += headers->wlan == WLAN_RETRY;
    if (headers->wlan)
        station_count(&count->stations, packet, headers);
    if (!LIKELY(headers->answer == DECODE_OK))
        note_answer(count, packet, headers);
    if (!LIKELY(headers->ip_length <= JUMBO_BYTES) || !LIKELY(!headers->length_from_frame))
        note_long_packet(count, packet, headers);
    if (!LIKELY(!headers->length_over_record))
        note_cut_length(count, packet, headers);
    if (!LIKELY(headers->protocol == IP_TCP) || !LIKELY(!headers->undecoded))
        note_undecoded(count, packet, headers);
}

/* Files hold LINKTYPE_ numbers, but libpcap compiles for its own DLT_ numbers; a few of them
 * differ (https://www.tcpdump.org/linktypes.html). */
int link_type_dlt(uint16_t link_type) {
    switch (link_type) {
    case 100: return DLT_ATM_RFC1483;
    case 101: return DLT_RAW;
    case 102: return DLT_SLIP_BSDOS;
    case 103: return DLT_PPP_BSDOS;
    default: return link_type;
    }
}

/* Returns the packets whose decoding ended with `answer`, summed over its reasons. */
static uint64_t answers(const struct interface_count *count, enum decode_answer answer) {
    uint64_t sum = 0;
    for (unsigned reason = 0; reason < REASON_COUNT; reason++)
        if (decode_reason_answer((enum decode_reason)reason) == answer)
            sum += count->reasons[reason];
    return sum;
}

/* Of a row of decode_stops, in place of a protocol. */
#define NO_PROTOCOL     0u
#define OTHER_PROTOCOLS UINT32_MAX

static int by_packets(const void *left, const void *right) {
    const struct undecoded_count *a = left, *b = right;
    if (a->packets != b->packets)
        return a->packets < b->packets ? 1 : -1;
    if (a->reason != b->reason)
        return a->reason < b->reason ? -1 : 1;
    return (a->protocol > b->protocol) - (a->protocol < b->protocol);
}

static void add_decode_stop(struct row_sink *sink, size_t interface,
                            const struct undecoded_count *stop) {
    static const enum word outcomes[] = {[DECODE_CUT] = WORD_CUT,
                                         [DECODE_NOT_UNDERSTOOD] = WORD_NOT_UNDERSTOOD,
                                         [DECODE_MALFORMED] = WORD_MALFORMED};
    char protocol[UNDECODED_NAME_MAX] = "others";
    struct row row;
    row_clear(&row);
    row_set(&row, decode_stops_capture, interface);
    if (stop->reason != REASON_NONE) {
        row_set(&row, decode_stops_outcome, outcomes[decode_reason_answer(stop->reason)]);
        row_set_text(sink, &row, decode_stops_reason, decode_reason_name(stop->reason));
    }
    if (stop->protocol != OTHER_PROTOCOLS)
        undecoded_name(stop->protocol, protocol);
    if (stop->protocol != NO_PROTOCOL)
        row_set_text(sink, &row, decode_stops_protocol, protocol);
    row_set(&row, decode_stops_packets, stop->packets);
    add_row(sink, TABLE_decode_stops, &row);
}

/* Adds the rows of an interface. Packets of link-layer protocols that cannot carry IP have none. */
static void add_decode_stops(struct row_sink *sink, size_t interface,
                             const struct interface_count *count) {
    struct undecoded_count stops[UNDECODED_NAMED + 2 * REASON_COUNT];
    uint64_t others[REASON_COUNT];
    size_t rows = 0;
    memcpy(others, count->undecoded_by_reason, sizeof others);
    for (; rows < UNDECODED_NAMED && count->undecoded[rows].packets; rows++) {
        stops[rows] = count->undecoded[rows];
        others[stops[rows].reason] -= stops[rows].packets;
    }
    for (enum decode_reason reason = 0; reason < REASON_COUNT; reason++) {
        uint64_t plain = count->reasons[reason] - count->undecoded_by_reason[reason];
        if (others[reason])
            stops[rows++] = (struct undecoded_count){OTHER_PROTOCOLS, reason, others[reason]};
        if (plain && reason != REASON_NONE && reason != REASON_NOT_IP)
            stops[rows++] = (struct undecoded_count){NO_PROTOCOL, reason, plain};
    }
    qsort(stops, rows, sizeof *stops, by_packets);
    for (size_t i = 0; i < rows; i++)
        add_decode_stop(sink, interface, &stops[i]);
}

static uint64_t undecoded_packets(const struct interface_count *count) {
    uint64_t sum = 0;
    for (unsigned reason = 0; reason < REASON_COUNT; reason++)
        sum += count->undecoded_by_reason[reason];
    return sum;
}

static void put_file(struct row_sink *sink, struct row *row, const struct interface *interface,
                     const struct damage *damage, const struct interface_count *count) {
    row_set_path(sink, row, interfaces_file, interface->file);
    row_set_text(sink, row, interfaces_format, interface->format);
    row_set_text(sink, row, interfaces_compression, interface->compression);
    if (damage && damage->present) {
        row_set_text(sink, row, interfaces_damage, damage->text);
        row_set(row, interfaces_damage_offset, damage->offset);
        row_set(row, interfaces_damage_frame, damage->frame);
        row_set_if(row, interfaces_damage_frame_ns,
                   damage->frame && count->last_frame == damage->frame, count->previous_ns);
    }
}

static void put_count(struct row *row, unsigned column, uint64_t count) {
    row_set_if(row, column, count != DROPS_UNKNOWN, count);
}

static void put_truth(struct row *row, unsigned column, uint8_t truth) {
    row_set_if(row, column, truth != TRUTH_UNKNOWN, truth == TRUTH_YES);
}

static void put_link(struct row_sink *sink, struct row *row, const struct tracer_facts *facts) {
    row_set_if(row, interfaces_speed_bps, facts->speed_bps && facts->speed_bps <= INT64_MAX,
               (int64_t)facts->speed_bps);
    row_set_text(sink, row, interfaces_duplex, *facts->duplex ? facts->duplex : NULL);
    row_set_if(row, interfaces_mtu, facts->mtu, facts->mtu);
    put_truth(row, interfaces_promiscuous, facts->promiscuous);
    put_truth(row, interfaces_receive_offload, facts->receive_offload);
    put_truth(row, interfaces_send_offload, facts->send_offload);
    row_set_text(sink, row, interfaces_time_stamps,
                 *facts->time_stamps ? facts->time_stamps : NULL);
    row_set_if(row, interfaces_carrier_losses, facts->link_told, facts->carrier_losses);
    row_set_if(row, interfaces_carrier_down_ns, facts->link_told, facts->carrier_down_ns);
    row_set_if(row, interfaces_carrier_lost_ns, facts->carrier_lost_ns, facts->carrier_lost_ns);
    row_set_if(row, interfaces_carrier_back_ns, facts->carrier_back_ns, facts->carrier_back_ns);
}

static void put_clock(struct row *row, const struct tracer_facts *facts) {
    bool is_bounded = facts->synchronized == TRUTH_YES && !facts->error_unknown;
    put_truth(row, interfaces_clock_synchronized, facts->synchronized);
    row_set_if(row, interfaces_clock_error_ns, is_bounded, facts->error_ns);
    row_set_if(row, interfaces_clock_steps, facts->link_told, facts->clock_steps);
    row_set_if(row, interfaces_clock_step_size_ns, facts->clock_steps, facts->clock_step_size_ns);
    row_set_if(row, interfaces_clock_step_ns, facts->clock_steps, facts->clock_step_ns);
    row_set_if(row, interfaces_clock_step_last_ns, facts->clock_steps, facts->clock_step_last_ns);
}

static void put_interface(struct row_sink *sink, struct row *row,
                          const struct interface *interface) {
    row_set(row, interfaces_interface, interface->index);
    row_set_text(sink, row, interfaces_name, interface->name);
    row_set(row, interfaces_link_type, interface->link_type);
    row_set_text(sink, row, interfaces_link_type_name,
                 pcap_datalink_val_to_name(link_type_dlt(interface->link_type)));
    row_set_if(row, interfaces_snaplen, interface->snaplen, interface->snaplen);
    row_set(row, interfaces_time_resolution_ns, interface->time_resolution_ns);
    /* If a writer gives no received packets (isb_ifrecv), those that its filter accepted are the
     * best figure. */
    uint64_t received =
        interface->received == DROPS_UNKNOWN ? interface->accepted : interface->received;
    put_count(row, interfaces_received, received);
    put_count(row, interfaces_dropped_program, interface_dropped_program(interface));
    put_count(row, interfaces_dropped_kernel, interface->dropped_kernel);
    put_count(row, interfaces_dropped_interface, interface->dropped_interface);
    row_set_text(sink, row, interfaces_hardware, interface->hardware);
    row_set_text(sink, row, interfaces_system, interface->system);
    row_set_text(sink, row, interfaces_capture_application, interface->application);
    row_set_text(sink, row, interfaces_capture_filter, interface->filter);
    row_set_text(sink, row, interfaces_comment, interface->comment);
    row_set(row, interfaces_packet_comments, interface->comments);
    put_link(sink, row, &interface->tracer);
    put_clock(row, &interface->tracer);
}

/* Sets the columns of frame and time, which follow each other. */
static void put_first(struct row *row, unsigned frame_column, const struct first_packet *first) {
    row_set_if(row, frame_column, first->frame, first->frame);
    row_set_if(row, frame_column + 1, first->frame && first->timed, first->time_ns);
}

static void put_frames(struct row *row, const struct interface_count *count) {
    row_set_if(row, interfaces_time_unknown_frame, count->time_unknown_frame,
               count->time_unknown_frame);
    row_set_if(row, interfaces_time_out_of_range_frame, count->time_out_of_range,
               count->time_out_of_range_frame);
    row_set_if(row, interfaces_backward_ns_max, count->backward_steps, count->backward_ns_max);
    put_first(row, interfaces_backward_frame, &count->backward);
    put_first(row, interfaces_super_segment_frame, &count->super_segment);
    put_first(row, interfaces_length_cut_frame, &count->length_cut);
    put_first(row, interfaces_not_understood_frame, &count->not_understood);
    put_first(row, interfaces_undecoded_frame, &count->undecoded_first);
    put_first(row, interfaces_cut_headers_frame, &count->cut);
    put_first(row, interfaces_malformed_frame, &count->malformed);
}

/* A burst is null if the clock cannot show it. A packet with an earlier time than the one before it
 * counts at the latest time, so the bytes are right as long as no step back is as long as a window.
 */
static void put_bursts(struct row *row, const struct interface *interface,
                       const struct interface_count *count) {
    static const unsigned columns[BURST_WINDOWS] = {
        interfaces_burst_10us_bytes, interfaces_burst_100us_bytes, interfaces_burst_1ms_bytes};
    const struct bursts *bursts = &count->bursts;
    bool known = false;
    for (unsigned i = 0; i < BURST_WINDOWS; i++) {
        int64_t window_ns = burst_windows_ns[i];
        known = count->packets && !count->time_unknown && !bursts->lost &&
                count->backward_ns_max < window_ns && interface->time_resolution_ns <= window_ns &&
                (!tick_is_known(count) || count->tick_ns <= window_ns);
        row_set_if(row, columns[i], known, bursts->windows[i].most);
    }
    row_set_if(row, interfaces_burst_ns, known, bursts->first_ns);
    row_set_if(row, interfaces_burst_last_ns, known, bursts->last_ns);
    row_set_if(row, interfaces_burst_frame, known, bursts->last_frame);
}

static void put_counts(struct row *row, const struct interface_count *count) {
    bool timed = count->packets > count->time_unknown;
    row_set(row, interfaces_packets, count->packets);
    row_set(row, interfaces_bytes, count->bytes);
    row_set(row, interfaces_captured_bytes, count->captured_bytes);
    row_set(row, interfaces_filtered_packets, count->filtered);
    row_set_if(row, interfaces_first_ns, timed, count->first_ns);
    row_set_if(row, interfaces_last_ns, timed, count->last_ns);
    row_set(row, interfaces_truncated_packets, count->truncated);
    row_set_if(row, interfaces_wlan_frames, count->wlan_frames, count->wlan_frames);
    row_set_if(row, interfaces_wlan_retries, count->wlan_frames, count->wlan_retries);
    row_set(row, interfaces_time_unknown, count->time_unknown);
    row_set(row, interfaces_time_out_of_range, count->time_out_of_range);
    row_set_if(row, interfaces_clock_tick_ns, tick_is_known(count), count->tick_ns);
    row_set(row, interfaces_backward_steps, count->backward_steps);
    row_set(row, interfaces_super_segments, count->super_segments);
    row_set(row, interfaces_lengths_cut, count->lengths_cut);
    row_set(row, interfaces_not_ip, count->reasons[REASON_NOT_IP]);
    row_set(row, interfaces_not_understood,
            (int64_t)(answers(count, DECODE_NOT_UNDERSTOOD) - count->reasons[REASON_NOT_IP]));
    row_set(row, interfaces_cut_headers, answers(count, DECODE_CUT));
    row_set(row, interfaces_malformed, answers(count, DECODE_MALFORMED));
    row_set(row, interfaces_no_flow_bytes, count->no_flow_bytes);
    row_set(row, interfaces_undecoded_packets, undecoded_packets(count));
    put_frames(row, count);
}

static void put_port(struct row_sink *sink, struct row *row, unsigned side,
                     const struct port_of_pair *port) {
    static const struct {
        unsigned capture, source, destination, ttl_min, ttl_max;
    } columns[] = {
        {second_ports_first_capture, second_ports_first_source, second_ports_first_destination,
         second_ports_first_ttl_min, second_ports_first_ttl_max},
        {second_ports_second_capture, second_ports_second_source, second_ports_second_destination,
         second_ports_second_ttl_min, second_ports_second_ttl_max},
    };
    row_set_if(row, columns[side].capture, port->named, port->interface);
    if (port->addressed) {
        row_set_mac(sink, row, columns[side].source, port->source);
        row_set_mac(sink, row, columns[side].destination, port->destination);
    }
    row_set(row, columns[side].ttl_min, port->ttl_min);
    row_set(row, columns[side].ttl_max, port->ttl_max);
}

static void add_second_ports(struct row_sink *sink, uint32_t interface,
                             const struct second_ports *second, bool shard) {
    for (unsigned i = 0; i < second->count; i++) {
        struct row row;
        row_clear(&row);
        row_set(&row, second_ports_capture, interface);
        row_set(&row, second_ports_rank, shard ? second->pairs[i].ports_number : i + 1);
        row_set(&row, second_ports_packets, second->pairs[i].packets);
        for (unsigned side = 0; side < 2; side++)
            put_port(sink, &row, side, &second->pairs[i].ports[side]);
        add_row(sink, TABLE_second_ports, &row);
    }
}

/* Sets the columns of the duplicates of an interface, and adds their rows of second_ports. */
static void put_duplicates(struct row_sink *sink, struct row *row, uint32_t interface,
                           const struct interface_duplicates *duplicates) {
    uint64_t mirrored = interface < duplicates->mirrored_room ? duplicates->mirrored[interface] : 0;
    struct second_ports second = {0};
    if (mirrored)
        capture_ports_sum(duplicates->ports, interface,
                          duplicates->shard ? PORT_PAIRS_MOST : PORT_PAIRS_NAMED, &second);
    row_set(row, interfaces_mirror_duplicates, mirrored);
    row_set(row, interfaces_second_port_duplicates, second.packets);
    row_set_if(row, interfaces_second_port_ns_max, second.packets, second.delay_ns_max);
    add_second_ports(sink, interface, &second, duplicates->shard);
}

void interface_rows_add(struct row_sink *sink, const struct merged_input *input,
                        struct interface_counts *list,
                        const struct interface_duplicates *duplicates, bool whole) {
    const struct interface_list *interfaces = merged_input_interfaces(input);
    for (size_t i = list->first; i < interfaces->count; i++) {
        const struct interface *interface = interfaces->items[i];
        struct interface_count *count = interface_count_of(list, (uint32_t)i);
        struct row row;
        if (!count)
            return;
        row_clear(&row);
        row_set(&row, interfaces_capture, i);
        if (whole)
            put_duplicates(sink, &row, (uint32_t)i, duplicates);
        put_file(sink, &row, interface, merged_input_damage(input, interface->file_index), count);
        put_interface(sink, &row, interface);
        put_counts(&row, count);
        stations_put(sink, &row, &count->stations);
        put_bursts(&row, interface, count);
        add_row(sink, TABLE_interfaces, &row);
        add_decode_stops(sink, i, count);
    }
}

void interface_counts_restart(struct interface_counts *list, const struct merged_input *input) {
    const struct interface_list *interfaces = merged_input_interfaces(input);
    for (size_t i = list->first; i < interfaces->count && i - list->first < list->room; i++) {
        const struct interface_count *count = &list->counts[i - list->first];
        interfaces->items[i]->timed = count->packets > count->time_unknown;
        interfaces->items[i]->first_ns = count->first_ns;
        interfaces->items[i]->last_ns = count->last_ns;
    }
    interface_counts_free(list);
    *list = (struct interface_counts){.first = (uint32_t)interfaces->count};
}

void interface_rows_add_before(struct row_sink *sink, const struct merged_input *input,
                               uint32_t least, uint32_t first) {
    const struct interface_list *interfaces = merged_input_interfaces(input);
    for (uint32_t i = least; i < first; i++) {
        struct row row;
        row_clear(&row);
        row_set(&row, interfaces_capture, i);
        put_file(sink, &row, interfaces->items[i], NULL, NULL);
        put_interface(sink, &row, interfaces->items[i]);
        put_counts(&row, &(struct interface_count){0});
        row_set_if(&row, interfaces_first_ns, interfaces->items[i]->timed,
                   interfaces->items[i]->first_ns);
        row_set_if(&row, interfaces_last_ns, interfaces->items[i]->timed,
                   interfaces->items[i]->last_ns);
        add_row(sink, TABLE_interfaces, &row);
    }
}
