/* SPDX-License-Identifier: Apache-2.0 */
/* Programs in between: message brokers (AMQP 0-9-1) and proxies (SOCKS 5, RFC 1928). */
#include <stdio.h>

#include "base/bytes.h"
#include "service/readers.h"

/*   0 frame: 1 is a method;  1 channel;  3 length;  7 class, method;  11 of a close, code and text
 */
#define AMQP_METHOD_AT 7u
#define AMQP_CLOSED    0x000a0032u
#define AMQP_OPEN      0x000a0029u

void amqp_read(struct service_message *message, struct service_bytes bytes) {
    static const uint8_t greeting[4] = {'A', 'M', 'Q', 'P'};
    char said[SERVICE_TEXT_BYTES], text[SERVICE_TEXT_BYTES];
    if (message->from_client && !memcmp(bytes.at, greeting, sizeof greeting)) {
        message->step = STEP_ASKS;
        message->type = "AMQP connection";
    }
    if (bytes.length < AMQP_METHOD_AT + 7 || load_be16(bytes.at) != 0x100 || bytes.at[2])
        return;
    uint32_t method = load_be32(bytes.at + AMQP_METHOD_AT),
             left = bytes.length - AMQP_METHOD_AT - 7;
    uint32_t length = bytes.at[AMQP_METHOD_AT + 6];
    if (method == AMQP_OPEN) {
        service_say(message, "AMQP connection", false, "OK");
    } else if (method == AMQP_CLOSED && load_be16(bytes.at + AMQP_METHOD_AT + 4) >= 300) {
        service_put(said, bytes.at + AMQP_METHOD_AT + 7, length < left ? length : left);
        service_number(text, load_be16(bytes.at + AMQP_METHOD_AT + 4), said);
        service_say(message, "AMQP connection", true, text);
        message->unasked = true;
    }
}

enum socks_address { SOCKS_IPV4 = 1, SOCKS_NAME = 3, SOCKS_IPV6 = 4 };

/*   0 version 5;  1 command or reply;  2 0;  3 kind of address;  4 address;  then the port */
void socks_read(struct service_message *message, struct service_bytes bytes) {
    static const char *const replies[] = {"OK",
                                          "1 general failure",
                                          "2 not allowed by rules",
                                          "3 network unreachable",
                                          "4 host unreachable",
                                          "5 connection refused",
                                          "6 TTL expired",
                                          "7 command not supported",
                                          "8 address type not supported"};
    if (bytes.length < 10 || bytes.at[0] != 5 || bytes.at[2])
        return;
    uint8_t code = bytes.at[1], kind = bytes.at[3];
    if (kind != SOCKS_IPV4 && kind != SOCKS_NAME && kind != SOCKS_IPV6)
        return;
    if (!message->from_client && code < sizeof replies / sizeof *replies) {
        service_say(message, "SOCKS connection", code != 0, replies[code]);
    } else if (message->from_client && code && code < 4) {
        message->step = STEP_ASKS;
        message->type = "SOCKS connection";
        if (kind == SOCKS_IPV4)
            snprintf(message->name, sizeof message->name, "%u.%u.%u.%u", bytes.at[4], bytes.at[5],
                     bytes.at[6], bytes.at[7]);
        else if (kind == SOCKS_NAME && bytes.at[4] <= bytes.length - 5)
            service_put(message->name, bytes.at + 5, bytes.at[4]);
    }
}
