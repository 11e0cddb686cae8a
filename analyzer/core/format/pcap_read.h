/* SPDX-License-Identifier: Apache-2.0 */
/* The pcap file format, in every variant that libpcap reads. All fields are in the byte order that
 * the magic number shows.
 *
 *   File header                         Record header
 *   OFFSET SIZE                         OFFSET SIZE
 *   0      4    magic number            0      4    seconds, unsigned
 *   4      2    major version           4      4    µs or ns
 *   6      2    minor version           8      4    captured length  (8 and 12 are exchanged in
 *   8      8    zone, accuracy: unused  12     4    length on wire    versions before 2.3 and
 * 543.0) 16     4    snap length             16     8    "modified" only: interface, protocol, type
 *   20     4    link type: low 16 bits; bit 26: the top 4 bits are the FCS length in 16-bit units
 */
#ifndef WIRETALE_PCAP_READ_H
#define WIRETALE_PCAP_READ_H

#include "format/capture_file.h"

extern const struct capture_format pcap_format;

#endif
