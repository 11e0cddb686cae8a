/* SPDX-License-Identifier: Apache-2.0 */
/* One or two passes over the input: the first, if packets around others are taken, only notes the
 * times of the chosen packets. The second writes. An interface is described before the first packet
 * that is read after its own description, and the drop counts of all follow the last packet. */
#include "cut/cut.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cut/anonymize.h"
#include "cut/pcap_write.h"
#include "format/kept_blocks.h"

#define PACKETS_AT_ONCE 256u
#define STEP_READS      64u /* reads of a step */

#define JOBS 2u /* a thread decompresses ahead */

struct cut {
    struct cut_options options;
    struct merged_input *input;
    struct pcapng_writer writer;
    struct address_map map;
    struct kept_blocks kept;
    uint8_t *draft;    /* bytes of a packet that is changed; NULL before the first */
    size_t draft_room; /* bytes: of the greatest packet, which the readers limit by link type */
    bool noting;       /* the first of two passes */
    bool begun;        /* the head is written */
    bool in_ns;        /* the unit of a pcap file, and its link type */
    uint32_t link_type;
    const char *unfit; /* why a pcap file cannot hold a packet */
    uint32_t described;
    int64_t last_ns; /* time of the last packet with one, TIME_UNKNOWN before */
    uint64_t packets_read, packets_written;
    struct packet packets[PACKETS_AT_ONCE];
};

static bool open_input(struct cut *cut, struct error *error) {
    merged_input_close(cut->input);
    const struct cut_options *options = &cut->options;
    kept_blocks_free(&cut->kept);
    cut->kept = (struct kept_blocks){
        .with_others = !cut->noting && !options->classic && !options->key,
        .with_secrets =
            !cut->noting && !options->classic && !options->key && !options->headers_only,
    };
    cut->input = merged_input_open_keeping(options->paths, options->path_count, &cut->kept, error);
    cut->packets_read = 0;
    if (cut->input)
        merged_input_read_ahead(cut->input, JOBS);
    return cut->input != NULL;
}

static bool open_parts(struct cut *cut, struct error *error) {
    const struct cut_options *options = &cut->options;
    bool done = pcapng_writer_open(&cut->writer, options->fd, false);
    if (options->key)
        done = address_map_open(&cut->map, options->key) && done;
    return done || error_set(error, ERROR_MEMORY, "out of memory");
}

struct cut *cut_open(const struct cut_options *options, struct error *error) {
    struct cut *cut = calloc(1, sizeof *cut);
    if (!cut) {
        error_set(error, ERROR_MEMORY, "out of memory");
        return NULL;
    }
    cut->options = *options;
    cut->noting = options->choice->around_ns > 0;
    cut->last_ns = TIME_UNKNOWN;
    if (open_parts(cut, error) && open_input(cut, error))
        return cut;
    cut_close(cut);
    return NULL;
}

void cut_close(struct cut *cut) {
    if (!cut)
        return;
    merged_input_close(cut->input);
    pcapng_writer_close(&cut->writer);
    if (cut->options.key)
        address_map_close(&cut->map);
    kept_blocks_free(&cut->kept);
    free(cut->draft);
    free(cut);
}

static const struct interface *interface_of(const struct cut *cut, const struct packet *packet) {
    return merged_input_interfaces(cut->input)->items[packet->interface];
}

static int compare_frames(const void *left, const void *right) {
    const struct commented_frame *a = left, *b = right;
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    return a->frame < b->frame ? -1 : a->frame > b->frame;
}

/* Writes what precedes the packets of a pcapng file: the head, interfaces that are new, and other
 * blocks. */
static bool describe_interfaces(struct cut *cut) {
    const struct interface_list *list = merged_input_interfaces(cut->input);
    const struct cut_options *options = &cut->options;
    if (options->classic)
        return true;
    bool done = cut->begun || pcapng_bytes(&cut->writer, options->head, options->head_size);
    cut->begun = true;
    for (; done && cut->described < list->count; cut->described++)
        done = pcapng_interface(&cut->writer, list->items[cut->described], options->key != NULL);
    done = done && pcapng_bytes(&cut->writer, cut->kept.bytes, cut->kept.size);
    cut->kept.size = 0;
    return done;
}

/* Sets the bytes that are written. A packet without a time keeps its length, because only a simple
 * packet block has no time, and its length follows from the packet's: payload becomes 0. Returns
 * false without memory. */
static bool set_bytes(struct cut *cut, struct written_packet *written) {
    const struct packet *packet = written->packet;
    uint32_t captured = packet->captured;
    uint32_t headers = cut->options.headers_only ? headers_size(packet) : captured;
    bool zeroed = headers < captured && packet->time_ns == TIME_UNKNOWN;
    bool changed = cut->options.key || zeroed;
    if (changed && !list_grow(&cut->draft, &cut->draft_room, captured, 1))
        return false;
    written->data = changed ? cut->draft : packet->data;
    written->captured = zeroed ? captured : headers;
    if (cut->options.key && captured)
        anonymize_packet(&cut->map, packet, cut->draft);
    else if (zeroed)
        memcpy(cut->draft, packet->data, headers);
    if (zeroed)
        memset(cut->draft + headers, 0, captured - headers);
    return true;
}

/* Writes the header of a pcap file; without a packet, for the first interface. */
static bool begin_classic(struct cut *cut, const struct interface *interface) {
    cut->begun = true;
    cut->link_type = interface ? interface->link_type : 1; /* Ethernet */
    cut->in_ns = interface && pcap_needs_ns(interface);
    return pcap_header(&cut->writer, cut->link_type, cut->in_ns);
}

static bool write_classic(struct cut *cut, const struct interface *interface,
                          const struct written_packet *written) {
    if (!cut->begun && !begin_classic(cut, interface))
        return false;
    if (interface->link_type != cut->link_type)
        cut->unfit = "packets of two link types";
    else if (pcap_needs_ns(interface) && !cut->in_ns)
        cut->unfit = "timestamps of two resolutions";
    else if (!pcap_has_time(written))
        cut->unfit = "times before 1970 or after 2106";
    return !cut->unfit && pcap_packet(&cut->writer, written, cut->in_ns);
}

static bool write_packet(struct cut *cut, const struct packet *packet) {
    const struct interface *interface = interface_of(cut, packet);
    const struct cut_comments *comments = &cut->options.comments;
    struct written_packet written = {
        .packet = packet,
        .number = packet->interface,
        .resolution_ns = pcapng_resolution(interface),
        .time_before_ns = cut->last_ns == TIME_UNKNOWN ? 0 : cut->last_ns,
    };
    const struct commented_frame key = {interface->file_index, packet->frame}, *found = NULL;
    if (comments->count)
        found = bsearch(&key, comments->frames, comments->count, sizeof key, compare_frames);
    if (found) {
        written.comment = comments->strings[found - comments->frames];
        written.comment_size = comments->sizes[found - comments->frames];
    }
    struct process_options options;
    if (cut->kept.with_others && packet->process) {
        process_options_of(packet, &options);
        written.options = &options;
    }
    cut->packets_written++;
    if (!set_bytes(cut, &written))
        return false;
    return cut->options.classic ? write_classic(cut, interface, &written)
                                : pcapng_packet(&cut->writer, &written, interface->snaplen);
}

static bool is_taken(const struct cut *cut, const struct packet *packet) {
    const struct choice *choice = cut->options.choice;
    if (choice->around_ns && packet_is_timed(packet))
        return choice_near(choice, packet->time_ns);
    return choice_has(choice, interface_of(cut, packet)->file_index, packet);
}

/* Returns false if memory or the output is exhausted. */
static bool take_packet(struct cut *cut, const struct packet *packet) {
    struct choice *choice = cut->options.choice;
    bool done = true;
    if (!cut->noting)
        done = !is_taken(cut, packet) || write_packet(cut, packet);
    else if (packet_is_timed(packet) &&
             choice_has(choice, interface_of(cut, packet)->file_index, packet))
        done = choice_note_time(choice, packet->time_ns);
    if (packet_is_timed(packet))
        cut->last_ns = packet->time_ns;
    return done;
}

static enum cut_state failure(const struct cut *cut, struct error *error) {
    if (cut->writer.error)
        return CUT_UNWRITTEN;
    if (cut->unfit)
        error_set(error, ERROR_USAGE, "a pcap file cannot hold %s: name the output .pcapng",
                  cut->unfit);
    else
        error_set(error, ERROR_MEMORY, "out of memory");
    return CUT_FAILED;
}

/* The end of a pass. */
static enum cut_state end_pass(struct cut *cut, struct error *error) {
    if (cut->noting) {
        cut->noting = false;
        cut->last_ns = TIME_UNKNOWN;
        choice_sort_spans(cut->options.choice);
        return open_input(cut, error) ? CUT_MORE : CUT_FAILED;
    }
    const struct interface_list *list = merged_input_interfaces(cut->input);
    int64_t time_ns = cut->last_ns == TIME_UNKNOWN ? 0 : cut->last_ns;
    bool done = describe_interfaces(cut), classic = cut->options.classic;
    if (classic && !cut->begun)
        done = begin_classic(cut, list->count ? list->items[0] : NULL);
    for (size_t i = 0; done && !classic && i < list->count; i++)
        done = pcapng_statistics(&cut->writer, (uint32_t)i, list->items[i], time_ns);
    return done && pcapng_finish(&cut->writer) ? CUT_DONE : CUT_UNWRITTEN;
}

enum cut_state cut_step(struct cut *cut, struct error *error) {
    for (unsigned reads = 0; reads < STEP_READS; reads++) {
        size_t read = merged_input_read(cut->input, cut->packets, PACKETS_AT_ONCE);
        if (!read)
            return merged_input_ended(cut->input) ? end_pass(cut, error) : CUT_MORE;
        if (!cut->noting && !describe_interfaces(cut))
            return failure(cut, error);
        cut->packets_read += read;
        for (size_t i = 0; i < read; i++)
            if (!take_packet(cut, &cut->packets[i]))
                return failure(cut, error);
    }
    return CUT_MORE;
}

int cut_write_error(const struct cut *cut) {
    return cut->writer.error;
}

struct cut_blocks cut_blocks(const struct cut *cut) {
    const struct kept_blocks *kept = &cut->kept;
    return (struct cut_blocks){kept->secrets, kept->processes, kept->with_secrets,
                               kept->with_others};
}

uint64_t cut_packets_read(const struct cut *cut) {
    return cut->packets_read;
}

uint64_t cut_packets_written(const struct cut *cut) {
    return cut->packets_written;
}

const struct merged_input *cut_input(const struct cut *cut) {
    return cut->input;
}
