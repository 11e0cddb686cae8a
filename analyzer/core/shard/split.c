/* SPDX-License-Identifier: Apache-2.0 */
/* Packets are decoded as by the threads of an analysis (pipeline/batch.c), and counted for
 * their interface in the same way, so that the row of an interface is that of one run. Most packets
 * need no record of their origin; the others have state that packets of other shards left: a time
 * behind that of an earlier packet, no time, a coarse clock. */
#include "shard/split.h"

#include <stdlib.h>
#include <string.h>

#include "cut/pcapng_write.h"
#include "decode/step.h"
#include "flow/checksum.h"
#include "format/packet_origin.h"
#include "format/pcapng_process.h"
#include "local/host_ids.h"
#include "pipeline/batch.h"
#include "pipeline/interface_counts.h"
#include "rows/row_sink.h"
#include "shard/payload.h"

/* Packets of a read, as many as a merge reads when it probes a file. */
#define PACKETS_AT_ONCE 64u
#define STEP_READS      256u
#define SPANS_MOST      (1u << 22)

struct split {
    struct split_options options;
    struct merged_input *input;
    struct pcapng_writer *writers;
    struct payload_window *window;
    struct wanted_packets wanted;
    struct interface_counts counts;
    struct host_id_table *host_ids;
    struct local_exchanges local;
    struct analysis *analysis;
    struct analysis_totals *totals; /* of it */
    struct split_facts facts;
    uint32_t described;          /* interfaces */
    const struct process *named; /* the last process that the shards have */
    bool begun, out_of_memory;
    int64_t previous_ns; /* time of the packet before, 0 before the first */
    int64_t merge_ns;    /* latest time so far, INT64_MIN before the first */
    struct packet packets[PACKETS_AT_ONCE];
};

static bool open_writers(struct split *split) {
    uint32_t count = split->options.shard_count;
    bool done = (split->writers = calloc(count, sizeof *split->writers)) != NULL;
    for (uint32_t i = 0; done && i < count; i++)
        done = pcapng_writer_open(&split->writers[i], split->options.fds[i], true);
    return done;
}

struct split *split_open(const struct split_options *options, struct error *error) {
    struct split *split = calloc(1, sizeof *split);
    if (!split) {
        error_set(error, ERROR_MEMORY, "out of memory");
        return NULL;
    }
    split->options = *options;
    split->merge_ns = split->facts.clock_ns = INT64_MIN;
    if (!(split->analysis = analysis_empty(&split->totals))) {
        error_set(error, ERROR_MEMORY, "out of memory");
        split_close(split);
        return NULL;
    }
    local_init(&split->local, analysis_sink(split->analysis));
    const struct analysis_options *chosen = &options->analysis;
    wanted_packets_begin(&split->wanted, chosen->start_ns, chosen->end_ns);
    if (chosen->filter && !(split->wanted.filter = bpf_filter_open(chosen->filter, error))) {
        split_close(split);
        return NULL;
    }
    split->window = payload_window_open();
    split->host_ids = host_ids_open();
    if (!split->window || !split->host_ids || !open_writers(split))
        error_set(error, ERROR_MEMORY, "out of memory for %u shards", options->shard_count);
    else if ((split->input =
                  merged_input_open(&split->options.path, &split->options.name, 1, error)))
        return split;
    split_close(split);
    return NULL;
}

void split_close(struct split *split) {
    if (!split)
        return;
    bpf_filter_close(split->wanted.filter);
    merged_input_close(split->input);
    for (uint32_t i = 0; split->writers && i < split->options.shard_count; i++)
        pcapng_writer_close(&split->writers[i]);
    free(split->writers);
    payload_window_close(split->window);
    free(split->host_ids);
    interface_counts_free(&split->counts);
    free(split->facts.spans);
    local_free(&split->local);
    analysis_close(split->analysis);
    free(split);
}

/* Writes a process, whose number is that of its block. */
static bool describe_process(struct pcapng_writer *writer, const struct process *process) {
    struct {
        uint32_t type, length, id;
        uint16_t code, size;
    } head = {BLOCK_PROCESS, 0, process->id, OPTION_PROCESS_NAME, (uint16_t)strlen(process->name)};
    uint32_t padding = (uint32_t)-head.size & 3, end[] = {0, 0};
    head.length = (uint32_t)sizeof head + head.size + padding + (uint32_t)sizeof end;
    end[1] = head.length;
    return pcapng_bytes(writer, &head, sizeof head) &&
           pcapng_bytes(writer, process->name, head.size) && pcapng_bytes(writer, end, padding) &&
           pcapng_bytes(writer, end, sizeof end);
}

/* Writes the head, and interfaces and processes that are new, to all shards. Times are ns in each
 * of them. */
static bool describe_interfaces(struct split *split) {
    const struct interface_list *list = merged_input_interfaces(split->input);
    bool done = true;
    for (uint32_t shard = 0; done && shard < split->options.shard_count; shard++) {
        struct pcapng_writer *writer = &split->writers[shard];
        if (!split->begun)
            done = pcapng_bytes(writer, split->options.head, split->options.head_size);
        for (size_t i = split->described; done && i < list->count; i++) {
            struct interface interface = *list->items[i];
            interface.time_resolution_ns = 1;
            done = pcapng_interface(writer, &interface, false);
        }
        const struct process *next = split->named ? split->named->next : list->processes.first;
        for (; done && next; next = next->next)
            done = describe_process(writer, next);
    }
    split->begun = true;
    split->named = list->processes.last;
    split->described = (uint32_t)list->count;
    return done;
}

/* Notes that a frame is merged at another time than its own. */
static void note_span(struct split *split, uint64_t frame) {
    struct split_facts *facts = &split->facts;
    struct merge_span *last = facts->span_count ? &facts->spans[facts->span_count - 1] : NULL;
    if (last && last->last + 1 == frame && last->merge_ns == split->merge_ns) {
        last->last = frame;
        return;
    }
    if (facts->span_count >= SPANS_MOST ||
        !list_grow(&facts->spans, &facts->span_room, facts->span_count + 1, sizeof *facts->spans)) {
        split->out_of_memory = true;
        return;
    }
    facts->spans[facts->span_count++] = (struct merge_span){frame, frame, split->merge_ns};
}

/* Advances the times, and notes those that concern the whole file. */
static void note_time(struct split *split, const struct packet *packet,
                      struct packet_origin *origin) {
    struct split_facts *facts = &split->facts;
    bool timed = packet_is_timed(packet);
    if (timed && !facts->timed)
        facts->first_ns = facts->last_ns = packet->time_ns;
    else if (timed)
        facts->clock_ns = max64(facts->clock_ns, min64(packet->time_ns, split->previous_ns));
    facts->timed |= timed;
    if (timed)
        facts->last_ns = max64(facts->last_ns, packet->time_ns);
    if (!timed || packet->time_ns != split->merge_ns)
        note_span(split, packet->frame);
    *origin = (struct packet_origin){.time_ns = packet->time_ns,
                                     .used_ns = timed ? facts->clock_ns : split->previous_ns,
                                     .merge_ns = split->merge_ns};
    if (timed)
        facts->end_ns = split->previous_ns = packet->time_ns;
}

/* Counts a packet for its interface, as the reader of an analysis does. */
static bool count_packet(struct split *split, const struct packet *packet,
                         const struct headers *headers, struct packet_origin *origin) {
    struct interface_count *count = interface_count_of(&split->counts, packet->interface);
    if (!count)
        return false;
    int64_t time_ns = packet_is_timed(packet) ? packet->time_ns : origin->used_ns;
    origin->step_back_ns = interface_count_packet(count, packet, time_ns);
    bursts_add(&count->bursts, count->last_ns, count->bytes - packet->length, count->bytes,
               packet->frame, &split->counts.rings_bytes);
    origin->clock_step_us = count->clock_step_us;
    interface_count_headers(count, packet, headers);
    return true;
}

static void put_origin(uint8_t out[static ORIGIN_SIZE], const struct packet_origin *origin) {
    const int64_t times[] = {origin->time_ns, origin->used_ns, origin->merge_ns,
                             origin->step_back_ns};
    memcpy(out, times, sizeof times);
    memcpy(out + sizeof times, &origin->clock_step_us, sizeof origin->clock_step_us);
    memcpy(out + sizeof times + sizeof origin->clock_step_us, &origin->flags, sizeof origin->flags);
}

/* Returns whether a packet needs a record: one without it has a time that pcapng can express. */
static bool needs_record(const struct packet *packet, const struct packet_origin *origin) {
    return !packet_is_timed(packet) || packet->time_ns < 0 || origin->merge_ns != packet->time_ns ||
           origin->used_ns < packet->time_ns - CLOCK_LAG_NS || origin->step_back_ns ||
           origin->clock_step_us || origin->flags;
}

/* Writes a packet with the options of packet_origin.h. */
static bool write_packet(struct pcapng_writer *writer, const struct packet *packet, uint32_t kept,
                         uint64_t id, const struct packet_origin *origin) {
    uint64_t ticks =
        packet_is_timed(packet) && packet->time_ns >= 0 ? (uint64_t)packet->time_ns : 0;
    uint8_t options[12 + 4 + ORIGIN_SIZE + 8 + 4] = {OPTION_PACKET_ID, 0, 8, 0};
    uint32_t size = 12;
    memcpy(options + 4, &id, sizeof id);
    if (needs_record(packet, origin)) {
        uint16_t option[] = {OPTION_ORIGIN, ORIGIN_SIZE};
        memcpy(options + size, option, sizeof option);
        put_origin(options + size + sizeof option, origin);
        size += (uint32_t)sizeof option + ORIGIN_SIZE;
    }
    if (packet->process) {
        uint16_t option[] = {OPTION_PROCESS, sizeof packet->process->number};
        memcpy(options + size, option, sizeof option);
        memcpy(options + size + sizeof option, &packet->process->number, option[1]);
        size += (uint32_t)sizeof option + option[1];
    }
    return pcapng_enhanced(writer, packet, packet->interface, ticks, packet->data, kept, options,
                           size + 4);
}

/* A merge of files takes packets by the latest time so far, also of those that are skipped. */
static bool is_taken(struct split *split, const struct packet *packet) {
    bool timed = packet_is_timed(packet);
    split->totals->packets++;
    if (timed && packet->time_ns > split->merge_ns)
        split->merge_ns = packet->time_ns;
    if (is_wanted(&split->wanted, packet, timed ? packet->time_ns : split->previous_ns))
        return true;
    struct interface_count *count = interface_count_of(&split->counts, packet->interface);
    if (count)
        count->filtered++;
    split->out_of_memory |= !count;
    return false;
}

/* Takes the packet's IPv4 ID, as the reader of an analysis does. */
static uint8_t take_host_id(struct split *split, const struct packet *packet,
                            const struct headers *headers) {
    uint16_t id = (uint16_t)headers->identification;
    if (headers->layer < LAYER_NETWORK || headers->ip_version != 4 || !id)
        return 0;
    return host_ids_before(split->host_ids, load_le32(headers->source), packet->interface, id);
}

/* Writes a packet to its shard, and an ICMP error also to that of the packet which it quotes. */
static bool take_packet(struct split *split, const struct packet *packet) {
    const struct split_options *options = &split->options;
    struct packet_origin origin;
    struct headers headers;
    bool cut;
    memset(&headers, 0, sizeof headers);
    note_time(split, packet, &origin);
    decode_packet(packet, &headers);
    if (!count_packet(split, packet, &headers, &origin))
        split->out_of_memory = true;
    if (local_concerns(&headers))
        local_take(&split->local, packet, &headers);
    uint32_t kept = payload_kept(split->window, packet, &headers, &cut);
    uint64_t checksum = checksum_verify(packet, &headers);
    uint64_t id = packet->frame | (uint64_t)options->file << ID_FRAME_BITS |
                  (uint64_t)take_host_id(split, packet, &headers) << ID_IDS_SHIFT |
                  checksum << ID_CHECKSUM_SHIFT | (cut ? ID_CUT : 0);
    uint32_t own = shard_of(&options->key, &headers, options->shard_count);
    uint32_t quoted = shard_of_quoted(&options->key, &headers, options->shard_count);
    own = own == SHARD_NONE ? 0 : own; /* not IP: a fixed one */
    if (quoted == SHARD_NONE || quoted == own)
        return write_packet(&split->writers[own], packet, kept, id, &origin);
    origin.flags = ORIGIN_NOT_QUOTED;
    if (!write_packet(&split->writers[own], packet, kept, id, &origin))
        return false;
    origin.flags = ORIGIN_QUOTE_ONLY;
    origin.step_back_ns = 0; /* which the other shard has */
    return write_packet(&split->writers[quoted], packet, kept, id, &origin);
}

/* Ends the shards, and makes the rows of the interfaces. */
static enum split_state end_file(struct split *split, struct error *error) {
    struct split_facts *facts = &split->facts;
    struct row_sink *sink = analysis_sink(split->analysis);
    struct interface_duplicates none = {0};
    const struct interface_list *list = merged_input_interfaces(split->input);
    if (!describe_interfaces(split))
        return SPLIT_UNWRITTEN;
    for (uint32_t shard = 0; shard < split->options.shard_count; shard++) {
        struct pcapng_writer *writer = &split->writers[shard];
        for (size_t i = 0; i < list->count; i++) {
            struct interface interface = *list->items[i];
            interface.time_resolution_ns = 1;
            if (!pcapng_statistics(writer, (uint32_t)i, &interface, max64(facts->last_ns, 0)))
                return SPLIT_UNWRITTEN;
        }
        if (!pcapng_finish(writer))
            return SPLIT_UNWRITTEN;
    }
    facts->interfaces = (uint32_t)list->count;
    split->totals->excluded = split->wanted.excluded;
    split->totals->filter_refused = bpf_filter_refused(split->wanted.filter);
    interface_rows_add(sink, split->input, &split->counts, &none, false);
    local_finish(&split->local, sink, interface_last_ns, &split->counts);
    row_sink_settle(sink);
    if (!sink->out_of_memory && row_sink_sort(sink))
        return SPLIT_DONE;
    error_set(error, ERROR_MEMORY, "out of memory for the interfaces");
    return SPLIT_FAILED;
}

enum split_state split_step(struct split *split, struct error *error) {
    for (unsigned reads = 0; reads < STEP_READS; reads++) {
        bool first = !split->totals->packets;
        size_t read = merged_input_read(split->input, split->packets, PACKETS_AT_ONCE);
        if (first)
            split->facts.interfaces_early = (uint32_t)merged_input_interfaces(split->input)->count;
        if (!read)
            return merged_input_ended(split->input) ? end_file(split, error) : SPLIT_MORE;
        if (!describe_interfaces(split))
            return SPLIT_UNWRITTEN;
        for (size_t i = 0; i < read; i++)
            if (is_taken(split, &split->packets[i]) && !take_packet(split, &split->packets[i]))
                return SPLIT_UNWRITTEN;
        if (split->out_of_memory) {
            error_set(error, ERROR_MEMORY, "out of memory, or too many times that step back");
            return SPLIT_FAILED;
        }
    }
    return SPLIT_MORE;
}

int split_write_error(const struct split *split) {
    for (uint32_t i = 0; i < split->options.shard_count; i++)
        if (split->writers[i].error)
            return split->writers[i].error;
    return 0;
}

const struct split_facts *split_facts(const struct split *split) {
    return &split->facts;
}

struct analysis *split_analysis(struct split *split) {
    struct analysis *analysis = split->analysis;
    split->analysis = NULL;
    return analysis;
}
