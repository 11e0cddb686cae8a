/* SPDX-License-Identifier: Apache-2.0 */
/* BGP (RFC 4271 section 4): a router that ends a session says why by a NOTIFICATION.
 *
 *   0  marker, 16 bytes of 0xff   16  length   18  type, 3 of a NOTIFICATION   19  code   20
 * subcode */
#include <stdio.h>

#include "base/bytes.h"
#include "service/readers.h"

#define MARKER_BYTES 16u
#define HEADER_BYTES 19u
#define LENGTH_MOST  4096u
#define NOTIFICATION 3

static bool is_header(struct service_bytes bytes) {
    for (uint32_t i = 0; i < MARKER_BYTES; i++)
        if (bytes.at[i] != 0xff)
            return false;
    return true;
}

/* Either end may send one, behind other messages of the same segment. The names are those of
 * analyzer/causes/services/bgp.py. */
void bgp_read(struct service_message *message, struct service_bytes bytes) {
    while (bytes.length >= HEADER_BYTES && is_header(bytes)) {
        uint32_t length = load_be16(bytes.at + MARKER_BYTES);
        if (length < HEADER_BYTES || length > LENGTH_MOST)
            return;
        if (bytes.at[MARKER_BYTES + 2] == NOTIFICATION && bytes.length >= HEADER_BYTES + 2) {
            char text[SERVICE_TEXT_BYTES];
            snprintf(text, sizeof text, "%u/%u", bytes.at[HEADER_BYTES],
                     bytes.at[HEADER_BYTES + 1]);
            service_say(message, "BGP session", true, text);
            message->unasked = true;
            return;
        }
        if (length > bytes.length)
            return;
        bytes.at += length;
        bytes.length -= length;
    }
}
