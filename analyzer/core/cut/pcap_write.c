/* SPDX-License-Identifier: Apache-2.0 */
#include "cut/pcap_write.h"

#define MAGIC_US   0xa1b2c3d4u
#define MAGIC_NS   0xa1b23c4du
#define SECOND_NS  1000000000ll
#define VERSION_24 0x00040002u /* major 2, minor 4 */

bool pcap_needs_ns(const struct interface *interface) {
    return pcapng_resolution(interface) < 1000;
}

bool pcap_header(struct pcapng_writer *writer, uint32_t link_type, bool in_ns) {
    uint32_t header[] = {in_ns ? MAGIC_NS : MAGIC_US, VERSION_24, 0, 0, PCAP_SNAPLEN, link_type};
    return pcapng_bytes(writer, header, sizeof header);
}

static int64_t time_of(const struct written_packet *written) {
    int64_t time_ns = written->packet->time_ns;
    return time_ns == TIME_UNKNOWN ? written->time_before_ns : time_ns;
}

bool pcap_has_time(const struct written_packet *written) {
    int64_t time_ns = time_of(written);
    return time_ns >= 0 && time_ns / SECOND_NS <= UINT32_MAX;
}

bool pcap_packet(struct pcapng_writer *writer, const struct written_packet *written, bool in_ns) {
    int64_t time_ns = time_of(written), part_ns = time_ns % SECOND_NS;
    uint32_t head[] = {(uint32_t)(time_ns / SECOND_NS),
                       (uint32_t)(in_ns ? part_ns : part_ns / 1000), written->captured,
                       written->packet->length};
    return pcapng_bytes(writer, head, sizeof head) &&
           pcapng_bytes(writer, written->data, written->captured);
}
