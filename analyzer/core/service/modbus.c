/* SPDX-License-Identifier: Apache-2.0 */
/* Modbus over TCP (Modbus Messaging on TCP/IP 1.0b): exceptions in reply to requests.
 *
 *   0  transaction   2  0   4  bytes that follow   6  unit   7  function, 0x80 more of an exception
 *   8  first address of a request, or the code of an exception */
#include <stdio.h>

#include "base/bytes.h"
#include "service/readers.h"

#define HEADER_BYTES 8u
#define LENGTH_MOST  254u
#define EXCEPTION    0x80
#define ACKNOWLEDGE  5  /* code: accepted, but it takes long */
#define LAST_CODED   24 /* function: read a queue; others have no address */

static const char *exception_text(uint8_t code) {
    static const char *const texts[] = {NULL,
                                        "1 illegal function",
                                        "2 illegal data address",
                                        "3 illegal data value",
                                        "4 server device failure",
                                        "5 acknowledge",
                                        "6 server device busy",
                                        "7 negative acknowledge",
                                        "8 memory parity error",
                                        NULL,
                                        "10 gateway path unavailable",
                                        "11 gateway target device failed to respond"};
    return code < sizeof texts / sizeof *texts ? texts[code] : NULL;
}

void modbus_read(struct service_message *message, struct service_bytes bytes) {
    if (bytes.length < HEADER_BYTES + 1 || load_be16(bytes.at + 2) ||
        load_be16(bytes.at + 4) > LENGTH_MOST)
        return;
    uint8_t function = bytes.at[7];
    if (function & EXCEPTION) {
        const char *text = exception_text(bytes.at[8]);
        if (text && load_be16(bytes.at + 4) == 3)
            service_say(message, "Modbus request", bytes.at[8] != ACKNOWLEDGE, text);
    } else if (message->from_client && function && function <= LAST_CODED &&
               bytes.length >= HEADER_BYTES + 4) {
        message->step = STEP_ASKS;
        message->type = "Modbus request";
        snprintf(message->name, sizeof message->name, "function %u, unit %u, address %u", function,
                 bytes.at[6], load_be16(bytes.at + 8));
    } else if (!message->from_client) {
        service_say(message, "Modbus request", false, "data");
    }
}
