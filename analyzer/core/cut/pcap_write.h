/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a classic pcap file (draft-ietf-opsawg-pcap) in little-endian order, for programs that do
 * not read pcapng. It has one link type and one unit of time, microseconds or nanoseconds. */
#ifndef WIRETALE_PCAP_WRITE_H
#define WIRETALE_PCAP_WRITE_H

#include "cut/pcapng_write.h"

#define PCAP_SNAPLEN 262144u /* bytes; the usual limit of writers */

/* Whether times of the interface need nanoseconds. */
bool pcap_needs_ns(const struct interface *interface);
/* Writes the header of the file for packets of one interface, or of one without any. */
bool pcap_header(struct pcapng_writer *writer, uint32_t link_type, bool in_ns);
/* Whether the time of a packet, or of the one before if it has none, fits the unsigned seconds. */
bool pcap_has_time(const struct written_packet *written);
bool pcap_packet(struct pcapng_writer *writer, const struct written_packet *written, bool in_ns);

#endif
