/* SPDX-License-Identifier: Apache-2.0 */
/* Where the headers of a packet end (--headers). */
#ifndef WIRETALE_CAPTURE_HEADERS_H
#define WIRETALE_CAPTURE_HEADERS_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether headers_end() knows a link type of pcap files. */
bool headers_known(int link_type);

/* Returns the bytes up to the end of the transport header, at most `size`. What it does not know
 * ends the headers, so that no payload stays. ARP and neighbor discovery stay as they are. */
uint32_t headers_end(int link_type, const uint8_t *data, uint32_t size);

#endif
