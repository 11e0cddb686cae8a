/* SPDX-License-Identifier: Apache-2.0 */
/* The end of HTTP/2 connections in clear (RFC 9113 section 6.8): a GOAWAY with an error, at the
 * start of a segment or behind other small frames in it.
 *
 *   0 length;  3 type, flags;  5 stream;  9 of a GOAWAY: last stream, error, and a text */
#include <stdio.h>

#include "base/bytes.h"
#include "service/readers.h"

#define FRAME_HEAD  9u
#define GOAWAY      7u
#define FRAMES_MOST 8u
#define OF_ALL      0xd0u  /* bits of types that concern the connection: settings, ping, GOAWAY */
#define OF_EITHER   0x100u /* window update */

static const char *const errors[] = {"NO_ERROR",
                                     "PROTOCOL_ERROR",
                                     "INTERNAL_ERROR",
                                     "FLOW_CONTROL_ERROR",
                                     "SETTINGS_TIMEOUT",
                                     "STREAM_CLOSED",
                                     "FRAME_SIZE_ERROR",
                                     "REFUSED_STREAM",
                                     "CANCEL",
                                     "COMPRESSION_ERROR",
                                     "CONNECT_ERROR",
                                     "ENHANCE_YOUR_CALM",
                                     "INADEQUATE_SECURITY",
                                     "HTTP_1_1_REQUIRED"};

static void goaway_read(struct service_message *message, struct service_bytes frame) {
    char said[SERVICE_TEXT_BYTES], text[SERVICE_TEXT_BYTES];
    uint32_t error = load_be32(frame.at + 4);
    if (!error || error >= sizeof errors / sizeof *errors)
        return;
    service_put(said, frame.at + 8, frame.length - 8);
    snprintf(text, sizeof text, "%s%s%.40s", errors[error], said[0] ? " " : "", said);
    service_say(message, "HTTP/2 connection", true, text);
    message->unasked = true;
}

void http2_read(struct service_message *message, struct service_bytes bytes) {
    for (uint32_t i = 0; i < FRAMES_MOST && bytes.length >= FRAME_HEAD; i++) {
        uint32_t length = load_be32(bytes.at) >> 8, left = bytes.length - FRAME_HEAD;
        uint8_t type = bytes.at[3];
        bool of_all = !load_be32(bytes.at + 5), ends = type == GOAWAY && !bytes.at[4];
        if (length > left || type > 9 ||
            !((OF_EITHER | (of_all ? OF_ALL : ~OF_ALL)) >> type & 1)) /* no frame at all */
            return;
        bytes.at += FRAME_HEAD;
        if (ends && length >= 8)
            goaway_read(message, (struct service_bytes){bytes.at, length});
        bytes.at += length;
        bytes.length = left - length;
    }
}
