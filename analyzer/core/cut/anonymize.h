/* SPDX-License-Identifier: Apache-2.0 */
/* A packet without addresses, payload and names.
 *
 * Bytes are kept only if a rule names them; everything else is 0. Kept are the headers that
 * decode_packet() reads: link header, switch tags, tunnels, IP, TCP with the options that verdicts
 * use, UDP, SCTP, DCCP, ICMP and the headers that ICMP errors quote. Their addresses are replaced
 * by pseudonyms (cut/address_map.h). The payload is 0 but for its last two bytes, a keyed digest of
 * the original, so that two datagrams that differ do not become duplicates of each other. Lengths
 * stay. */
#ifndef WIRETALE_ANONYMIZE_H
#define WIRETALE_ANONYMIZE_H

#include "base/packet.h"
#include "cut/address_map.h"

/* Writes the anonymized packet to `out`, which has room for packet->captured bytes. Checksums of
 * IPv4, TCP, UDP, UDP-Lite, ICMP, ICMPv6 and GRE are those of the new bytes (bytes that the snap
 * length cut count as 0); a UDP checksum of 0 stays, those of SCTP and DCCP and in quotations
 * become 0. */
void anonymize_packet(struct address_map *map, const struct packet *packet, uint8_t *out);

/* Returns how many captured bytes of a packet are headers: up to the transport header with its
 * options, or the innermost header that was read. Those that an ICMP error quotes, the messages of
 * neighbor discovery and those of ARP count. */
uint32_t headers_size(const struct packet *packet);

#endif
