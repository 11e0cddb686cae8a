/* SPDX-License-Identifier: Apache-2.0 */
/* The pcap file format, in every variant that libpcap reads. All fields are in the byte order that
 * the magic number shows.
 *
 *   File header                         Record header
 *   OFFSET SIZE                         OFFSET SIZE
 *   0      4    magic number            0      4    seconds, unsigned
 *   4      2    major version           4      4    µs or ns
 *   6      2    minor version           8      4    captured length  (8 and 12 are exchanged in
 *   8      8    zone, accuracy: unused  12     4    length on wire    versions before 2.3, 543.0)
 *   16     4    snap length             16     8    "modified" only: interface, protocol, type
 *   20     4    link type: low 16 bits; bit 26: the top 4 bits are the FCS length in 16-bit units
 *
 * Accepts the files that libpcap's sf-pcap.c accepts, and cuts packets at the snap length as it
 * does. */
#include "format/capture_file.h"

#include <limits.h>
#include <stdlib.h>

#include "base/bytes.h"

#define FILE_HEADER      24
#define RECORD_HEADER    16
#define MODIFIED_HEADER  24
#define FCS_PRESENT      0x04000000u
#define COOKED_ETHERNET  14 /* see snap_length_of() */
#define VERSION_MAJOR    2
#define VERSION_MINOR    4
#define VERSION_OF_DG_UX 543

enum length_order { CAPTURED_FIRST, LENGTH_FIRST, EITHER_FIRST };

struct pcap_reader {
    uint32_t interface;
    uint16_t link_type;
    bool big_endian;
    enum length_order order;
    uint32_t fraction_ns; /* ns per unit of the second time field */
    uint32_t header_size;
    uint32_t packet_max;
    uint32_t snap_length;
    uint32_t fcs;
};

struct pcap_variant {
    uint32_t magic;
    const char *format;
    uint32_t fraction_ns;
    uint32_t header_size;
};

static const struct pcap_variant variants[] = {
    {0xA1B2C3D4, "pcap", 1000, RECORD_HEADER},
    {0xA1B23C4D, "pcap-ns", 1, RECORD_HEADER},
    {0xA1B2CD34, "pcap-modified", 1000, MODIFIED_HEADER}, /* Alexey Kuznetzov's */
};

/* Returns the variant of a magic number in either byte order, NULL if it is not pcap. */
static const struct pcap_variant *find_variant(const uint8_t *first, bool *big_endian) {
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        *big_endian = load_be32(first) == variants[i].magic;
        if (*big_endian || load_le32(first) == variants[i].magic)
            return &variants[i];
    }
    return NULL;
}

static bool match_pcap(const uint8_t *first) {
    bool big_endian;
    return find_variant(first, &big_endian);
}

/* Sets the order of the lengths: version 2.3 exchanged them, but some of its writers did not.
 * Versions must be those that libpcap accepts, because others may have another record header. */
static bool set_order(const struct capture_file *file, struct pcap_reader *reader,
                      struct error *error) {
    unsigned major = load_u16(file->stream.cursor + 4, reader->big_endian);
    unsigned minor = load_u16(file->stream.cursor + 6, reader->big_endian);
    bool dg_ux = major == VERSION_OF_DG_UX && minor == 0;
    reader->order = minor == 3 ? EITHER_FIRST : minor < 3 ? LENGTH_FIRST : CAPTURED_FIRST;
    if (dg_ux || (major == VERSION_MAJOR && minor <= VERSION_MINOR))
        return true;
    return error_set(error, ERROR_UNREADABLE,
                     "%s: at byte 4: expected pcap version 2.0 to 2.4, found %u.%u", file->name,
                     major, minor);
}

/* A snap length of 0 means the greatest. The patched libpcap put an Ethernet header of its own
 * before packets of up to the snap length. */
static uint32_t snap_length_of(uint32_t stated, uint16_t link_type, uint32_t header_size) {
    uint32_t length = stated == 0 || stated > INT_MAX ? link_type_packet_max(link_type) : stated;
    if (header_size == MODIFIED_HEADER && link_type == 1 && length <= INT_MAX - COOKED_ETHERNET)
        length += COOKED_ETHERNET;
    return length;
}

/* A pcap file has one interface, whose number stays if the file is opened again. */
static bool add_interface(struct capture_file *file, struct pcap_reader *reader,
                          const struct pcap_variant *variant, uint32_t snaplen) {
    struct interface *added = capture_file_interface(file, 0, &reader->interface);
    if (!added)
        return false;
    added->format = variant->format;
    added->link_type = reader->link_type;
    added->snaplen = snaplen;
    added->time_resolution_ns = variant->fraction_ns;
    return true;
}

static bool begin_pcap(struct capture_file *file, struct error *error) {
    if (!capture_file_need_header(file, FILE_HEADER, "a pcap header", error))
        return false;
    const uint8_t *p = file->stream.cursor;
    struct pcap_reader *reader = file->reader = calloc(1, sizeof *reader);
    if (!reader)
        return error_set(error, ERROR_MEMORY, "%s: out of memory", file->name);
    const struct pcap_variant *variant = find_variant(p, &reader->big_endian);
    if (!variant || !set_order(file, reader, error)) /* match_pcap() has found it before */
        return false;
    uint32_t snaplen = load_u32(p + 16, reader->big_endian);
    uint32_t network = load_u32(p + 20, reader->big_endian);
    reader->link_type = link_type_normalize((uint16_t)network);
    reader->fraction_ns = variant->fraction_ns;
    reader->header_size = variant->header_size;
    reader->packet_max = link_type_packet_max(reader->link_type);
    reader->snap_length = snap_length_of(snaplen, reader->link_type, variant->header_size);
    reader->fcs = network & FCS_PRESENT ? (network >> 28) * 2 : 0;
    if (!add_interface(file, reader, variant, snaplen))
        return error_set(error, ERROR_MEMORY, "%s: out of memory", file->name);
    file->stream.cursor += FILE_HEADER;
    return true;
}

/* EITHER_FIRST: the captured length is the lesser one, because a packet is never captured with more
 * bytes than it had. */
static inline void load_lengths(const struct pcap_reader *reader, const uint8_t *p,
                                struct packet *packet) {
    uint32_t first = load_u32(p + 8, reader->big_endian);
    uint32_t second = load_u32(p + 12, reader->big_endian);
    bool exchanged =
        reader->order == LENGTH_FIRST || (reader->order == EITHER_FIRST && first > second);
    packet->captured = exchanged ? second : first;
    packet->length = exchanged ? first : second;
}

/* Reads packets that are complete between the stream's cursor and its end. The record after them
 * decides file->need: its header, or its header and data. Seconds are unsigned, so times last until
 * 2106; a fraction of a second or more is added as it stands. A packet over the snap length is cut,
 * but the whole record is skipped. */
static size_t read_records(struct capture_file *file, struct packet *packets, size_t most,
                           struct pcap_reader reader) {
    const uint8_t *p = file->stream.cursor, *end = file->stream.end;
    const uint64_t frame = file->frame + 1;
    size_t count = 0, need = 0;
    for (; count < most; count++) {
        struct packet *packet = &packets[count];
        size_t left = (size_t)(end - p);
        need = reader.header_size;
        if (left < need)
            break;
        load_lengths(&reader, p, packet);
        if (packet->captured > reader.packet_max)
            break;
        need += packet->captured;
        if (left < need)
            break;
        packet->time_ns = (int64_t)load_u32(p, reader.big_endian) * 1000000000 +
                          (int64_t)load_u32(p + 4, reader.big_endian) * reader.fraction_ns;
        packet->frame = frame + count;
        packet->data = p + reader.header_size;
        packet->interface = reader.interface;
        packet->link_type = reader.link_type;
        packet->shard = 0;
        packet->with_options = 0;
        packet->process = NULL;
        p += need;
        if (packet->captured > reader.snap_length)
            packet->captured = reader.snap_length;
        if (reader.fcs)
            packet_strip_fcs(packet, reader.fcs);
    }
    file->need = need;
    file->stream.cursor = p;
    file->frame += count;
    return count;
}

static size_t parse_pcap(struct capture_file *file, struct packet *packets, size_t most) {
    const struct pcap_reader *reader = file->reader;
    size_t count = read_records(file, packets, most, *reader);
    /* If the record header is in the window, only an excessive length can have ended the loop. */
    if (count < most && file->need == reader->header_size &&
        input_stream_available(&file->stream) >= file->need)
        capture_file_set_damage(file, "captured length %u exceeds the maximum of %u",
                                packets[count].captured, reader->packet_max);
    return count;
}

const struct capture_format pcap_format = {match_pcap, begin_pcap, parse_pcap, free};
