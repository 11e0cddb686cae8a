/* SPDX-License-Identifier: Apache-2.0 */
/* Converts packets to observations: decodes them, assigns fragments to their datagram, and computes
 * digests. The ends of a conversation are written once as text, and again only if a table of the
 * last 65,536 ones no longer contains it, so that most rows have no text.
 *
 * Memory does not grow with the number of packets: 512 kB for that table and FRAGMENT_BYTES for
 * open datagrams. A fragment whose datagram cannot be allocated still has a row. Packets are
 * borrowed from the merge until the next merged_input_read(); next_packet() must therefore not
 * be called while blocks of the current packet remain. A reader belongs to one thread. */
#include "observation/observation.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/pool.h"
#include "common/block.h"
#include "decode/headers.h"
#include "flow/flow.h"
#include "flow/reassembly.h"

#define PACKETS_AT_ONCE 64u
#define FRAGMENT_BYTES  ((size_t)128 << 20) /* memory limit of all open datagrams */
#define WRITTEN_ROOM    65536u              /* entries of the table of written conversations */
#define UDP_HEADER      8u
#define WAIT_NS         1000000 /* wait for a pipe without data */

struct observation_reader {
    struct merged_input *captures;
    struct reassembly *datagrams;
    struct encapsulation_table *paths;
    struct pool pool;
    struct packet packets[PACKETS_AT_ONCE];
    size_t packet_count, packet_next;
    struct headers headers;                  /* of the current packet */
    uint32_t rest, rest_offset, rest_length; /* blocks of it that are not returned yet */
    struct observation again;                /* their common fields */
    uint32_t datagram_count;
    int64_t row_packet; /* number of the next packet with a row */
    struct observation_counts counts;
    /* Conversations and sides whose ends were written, direct-mapped by their number. If two share
     * a slot, their ends are written more often, which is harmless. */
    uint64_t written[WRITTEN_ROOM];
};

static void forget_datagram(void *context, struct datagram *datagram) {
    (void)context;
    (void)datagram;
}

struct observation_reader *observation_reader_open(const char *const *paths, size_t count,
                                                   struct error *error) {
    struct observation_reader *reader = calloc(1, sizeof *reader);
    if (reader) {
        reader->pool.own.most = FRAGMENT_BYTES;
        reader->paths = encapsulation_table_open();
        reader->datagrams = reassembly_open(forget_datagram, NULL);
    }
    if (!reader || !reader->paths || !reader->datagrams)
        error_set(error, ERROR_MEMORY, "out of memory");
    else if ((reader->captures = merged_input_open(paths, NULL, count, error))) {
        reassembly_use(reader->datagrams, NULL, &reader->pool);
        return reader;
    }
    observation_reader_close(reader);
    return NULL;
}

void observation_reader_close(struct observation_reader *reader) {
    if (!reader)
        return;
    if (reader->datagrams)
        reassembly_close(reader->datagrams);
    if (reader->paths)
        encapsulation_table_close(reader->paths);
    pool_close(&reader->pool);
    merged_input_close(reader->captures);
    free(reader);
}

static uint64_t mix(uint64_t hash, uint64_t word) {
    __extension__ unsigned __int128 product =
        (unsigned __int128)(hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Equal bytes must have equal digests in every capture, so there is no random seed, and a sender
 * could construct collisions. Words are read in native byte order: digests must not be compared
 * between machines. `count` enters the digest, so that trailing zeros matter. */
static uint64_t digest_of(const uint8_t *bytes, uint32_t count, uint64_t hash) {
    uint64_t word;
    for (; count >= sizeof word; bytes += sizeof word, count -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = mix(hash + 1, word);
    }
    word = 0;
    memcpy(&word, bytes, count);
    return block_mix(mix(hash + count, word));
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static int compare_ends(const struct headers *headers) {
    int order = memcmp(headers->source, headers->destination, sizeof headers->source);
    return order ? order : (int)headers->source_port - (int)headers->destination_port;
}

/* Orders the two ends, so that both directions have one number; `side` is 1 if the sender is the
 * second. The number of the encapsulation belongs to this reader, so that conversations must not
 * be compared between readers. */
static void name_conversation(struct observation *row, const struct headers *headers,
                              uint32_t path) {
    bool second = compare_ends(headers) > 0;
    const uint8_t *low = second ? headers->destination : headers->source;
    const uint8_t *high = second ? headers->source : headers->destination;
    uint32_t ports = second ? (uint32_t)headers->destination_port << 16 | headers->source_port
                            : (uint32_t)headers->source_port << 16 | headers->destination_port;
    uint64_t hash = digest_of(low, 16, (uint64_t)headers->protocol << 32 | path);
    row->conversation = mix(digest_of(high, 16, hash), ports);
    row->side = second;
}

static void write_ends(struct observation_reader *reader, struct observation *row,
                       const struct headers *headers, uint32_t path) {
    char source[INET6_ADDRSTRLEN] = "", destination[INET6_ADDRSTRLEN] = "", chain[PATH_TEXT_MAX];
    uint64_t name = row->conversation ^ row->side;
    int family = headers->ip_version == 4 ? AF_INET : AF_INET6;
    row->has_ends = reader->written[name % WRITTEN_ROOM] != name;
    if (!row->has_ends)
        return;
    reader->written[name % WRITTEN_ROOM] = name;
    inet_ntop(family, headers->source, source, sizeof source);
    inet_ntop(family, headers->destination, destination, sizeof destination);
    encapsulation_table_text(reader->paths, path, chain);
    snprintf(row->ends, sizeof row->ends, "%u|%s|%u|%s|%u|%s", headers->protocol, source,
             headers->source_port, destination, headers->destination_port, chain);
}

/* Digest of a segment without payload: all fields that its sender chose. SACK blocks count with
 * their lengths only, because middleboxes that change sequence numbers may shift their
 * positions. */
static uint64_t digest_of_tcp(const struct tcp_header *tcp) {
    uint64_t hash = mix((uint64_t)tcp->flags << 16 | tcp->window, tcp->timestamp_value);
    hash = mix(hash, (uint64_t)tcp->timestamp_echo << 8 | tcp->sack_count);
    for (unsigned i = 0; i < tcp->sack_count && i < SACK_BLOCKS_MAX; i++)
        hash = mix(hash, tcp->sack[i].end - tcp->sack[i].start);
    return block_mix(hash);
}

/* Echoes of different processes often have equal payload, so the ICMP type, code and identifier
 * enter its digest. Other protocols have a seed of 0. */
static uint64_t digest_seed(const struct headers *headers) {
    bool icmp = headers->protocol == IP_ICMP || headers->protocol == IP_ICMPV6;
    if (!icmp || headers->layer != LAYER_TRANSPORT)
        return 0;
    return (uint64_t)headers->icmp.type << 24 | (uint64_t)headers->icmp.code << 16 |
           headers->icmp.identifier;
}

/* Sets the digests of the payload's captured bytes, and run, stream and number if it begins with
 * the header of a block. digest_short covers fewer bytes, for a comparison with a capture of a
 * smaller snap length. */
static void set_payload(struct observation *row, const uint8_t *bytes, uint32_t captured,
                        uint64_t seed) {
    struct block_header block;
    row->run = row->number = OBSERVATION_UNKNOWN;
    row->digested = (uint8_t)least(captured, OBSERVATION_DIGEST_MAX);
    row->digest = captured ? digest_of(bytes, row->digested, seed) : 0;
    row->digest_short =
        captured ? digest_of(bytes, least(captured, OBSERVATION_DIGEST_LEAST), seed) : 0;
    if (!block_read_header(&block, bytes, captured))
        return;
    row->run = block.run;
    row->stream = block.stream;
    row->number = (int64_t)block.sequence;
}

static void set_tcp(struct observation *row, const struct tcp_header *tcp) {
    row->flags = tcp->flags;
    row->sequence = tcp->sequence;
    row->acknowledgment = tcp->acknowledgment;
    row->mss = tcp->options & TCP_OPTION_MSS ? tcp->mss : 0;
    if (tcp->options & TCP_OPTION_TIMESTAMPS)
        row->stamp = tcp->timestamp_value;
    if (!row->payload)
        row->digest = row->digest_short = digest_of_tcp(tcp);
}

/* Returns the payload of the whole datagram, if its first fragment contains the length. */
static uint32_t payload_of(const struct headers *headers) {
    bool udp = headers->protocol == IP_UDP && headers->layer == LAYER_TRANSPORT;
    if (udp && headers->udp_length >= UDP_HEADER)
        return headers->udp_length - UDP_HEADER;
    return headers->payload_length;
}

/* Assigns a fragment to its datagram (RFC 791, RFC 8200 4.5) and numbers the datagram at its
 * first fragment. Without a time stamp its time is 0, which does not expire the datagrams of a
 * real capture. */
static void set_fragment(struct observation_reader *reader, struct observation *row,
                         const struct packet *packet, const struct headers *headers,
                         uint32_t path) {
    struct packet_info seen = {.time_ns = row->time_ns,
                               .frame = packet->frame,
                               .capture = packet->interface,
                               .fragment = true,
                               .fragment_offset = headers->fragment_offset,
                               .time_known = packet_is_timed(packet)};
    enum fragment_verdict verdict;
    if (!seen.time_known)
        seen.time_ns = 0;
    reassembly_expire(reader->datagrams, seen.time_ns);
    struct datagram *datagram = reassembly_take(reader->datagrams, headers, path, &seen, &verdict);
    row->fragment_start = headers->fragment_offset;
    row->fragment_end = headers->fragment_offset + headers->ip_length - headers->ip_header_length;
    reader->counts.unassigned += !datagram;
    if (!datagram)
        return;
    if (!datagram->counted)
        datagram->flow = reader->datagram_count++;
    datagram->counted = true;
    row->datagram = datagram->flow;
    /* `direction` is unused by reassembly; it records that the completing fragment was reported. */
    row->completes = datagram->complete && !datagram->direction;
    datagram->direction |= row->completes;
}

/* A row needs a decoded transport header, or a complete network header if the transport is not
 * decoded (another protocol, a later fragment). Counts the packets that have no row. */
static bool has_row(struct observation_reader *reader, const struct headers *headers) {
    bool read = headers->layer == LAYER_TRANSPORT ||
                (headers->layer == LAYER_NETWORK && headers->answer == DECODE_OK);
    reader->counts.not_ip += headers->layer < LAYER_NETWORK;
    reader->counts.unread += headers->layer >= LAYER_NETWORK && !read;
    return read;
}

/* A datagram longer than its first block contains more of them, because the capture point is
 * before segmentation offload. Keeps the common fields in reader->again and cuts the first row
 * to one block; give_next_block() makes the others. The last block may be shorter. */
static void note_more_blocks(struct observation_reader *reader, struct observation *row) {
    const struct headers *headers = &reader->headers;
    struct block_header block;
    reader->rest = 0;
    if (row->run == OBSERVATION_UNKNOWN || headers->protocol != IP_UDP || headers->fragment ||
        !block_read_header(&block, headers->payload, headers->payload_captured))
        return;
    reader->rest_offset = reader->rest_length = block.length;
    reader->rest = row->payload > block.length ? (row->payload - 1) / block.length : 0;
    if (!reader->rest)
        return;
    memcpy(&reader->again, row, offsetof(struct observation, ends));
    row->payload = block.length;
}

/* Makes the row of the next block of the current packet. Returns false if there is none, if it
 * was not captured or if its bytes do not begin with a block header. `ends` is not copied: the
 * first row has it. */
static bool give_next_block(struct observation_reader *reader, struct observation *row) {
    const struct headers *headers = &reader->headers;
    if (!reader->rest || reader->rest_offset >= headers->payload_captured) {
        reader->rest = 0;
        return false;
    }
    reader->rest--;
    reader->again.part++;
    memcpy(row, &reader->again, offsetof(struct observation, ends));
    row->has_ends = false;
    set_payload(row, headers->payload + reader->rest_offset,
                headers->payload_captured - reader->rest_offset, 0);
    row->payload = least(row->payload - reader->rest_offset, reader->rest_length);
    reader->rest_offset += reader->rest_length;
    if (row->run != OBSERVATION_UNKNOWN)
        return true;
    reader->rest = 0;
    return false;
}

/* Makes the first row of a packet. Returns false if the packet has none. */
static bool make_row(struct observation_reader *reader, struct observation *row,
                     const struct packet *packet) {
    struct headers *headers = &reader->headers;
    decode_packet(packet, headers);
    if (!has_row(reader, headers))
        return false;
    uint32_t path = encapsulation_table_number(reader->paths, headers->path, headers->path_depth);
    memset(row, 0, offsetof(struct observation, ends));
    row->packet = reader->row_packet++;
    row->frame = (int64_t)packet->frame;
    row->time_ns = packet_is_timed(packet) ? packet->time_ns : OBSERVATION_UNKNOWN;
    row->interface = packet->interface;
    row->datagram = row->stamp = OBSERVATION_UNKNOWN;
    row->protocol = headers->protocol;
    row->ttl = headers->ttl;
    row->ip_id = headers->ip_version == 4 ? (uint16_t)headers->identification : 0;
    row->ip_bytes = headers->ip_length;
    row->payload = payload_of(headers);
    name_conversation(row, headers, path);
    write_ends(reader, row, headers, path);
    set_payload(row, headers->payload, headers->payload_captured, digest_seed(headers));
    if (headers->protocol == IP_TCP && headers->layer == LAYER_TRANSPORT)
        set_tcp(row, &headers->tcp);
    if (headers->fragment)
        set_fragment(reader, row, packet, headers, path);
    note_more_blocks(reader, row);
    return true;
}

/* Makes packets[packet_next] valid. Returns false at the end of the input. If a pipe has no
 * data, it sleeps and asks again, so that the caller must not hold the GIL for a live capture. */
static bool next_packet(struct observation_reader *reader) {
    if (reader->packet_next < reader->packet_count)
        return true;
    reader->packet_next = 0;
    while (!(reader->packet_count =
                 merged_input_read(reader->captures, reader->packets, PACKETS_AT_ONCE))) {
        if (merged_input_ended(reader->captures))
            return false;
        nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
    }
    reader->counts.packets += reader->packet_count;
    return true;
}

size_t observation_read(struct observation_reader *reader, struct observation *rows, size_t most) {
    size_t count = 0;
    while (count < most) {
        if (give_next_block(reader, &rows[count]))
            count++;
        else if (!next_packet(reader))
            break;
        else
            count += make_row(reader, &rows[count], &reader->packets[reader->packet_next++]);
    }
    return count;
}

struct observation_counts observation_reader_counts(const struct observation_reader *reader) {
    return reader->counts;
}

const struct merged_input *observation_reader_captures(const struct observation_reader *reader) {
    return reader->captures;
}
