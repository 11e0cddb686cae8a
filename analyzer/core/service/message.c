/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of messages, and elements of ASN.1. */
#include "service/message.h"

#include <stdio.h>

void service_put(char *text, const uint8_t *bytes, uint32_t length) {
    uint32_t kept = length < SERVICE_TEXT_BYTES - 1 ? length : SERVICE_TEXT_BYTES - 1;
    for (uint32_t i = 0; i < kept; i++)
        text[i] = bytes[i] >= ' ' && bytes[i] < 127 ? (char)bytes[i] : '?';
    text[kept] = '\0';
}

void service_add_wide(char *text, const uint8_t *bytes, uint32_t length) {
    size_t used = strlen(text);
    for (uint32_t i = 0; i + 1 < length && used < SERVICE_TEXT_BYTES - 1; i += 2)
        text[used++] = !bytes[i + 1] && bytes[i] >= ' ' && bytes[i] < 127 ? (char)bytes[i] : '?';
    text[used] = '\0';
}

void service_number(char *text, uint32_t number, const char *said) {
    int used = snprintf(text, SERVICE_TEXT_BYTES, "%u ", number);
    snprintf(text + used, SERVICE_TEXT_BYTES - (size_t)used, "%.*s",
             (int)SERVICE_TEXT_BYTES - used - 1, said);
}

void service_say(struct service_message *message, const char *type, bool refused,
                 const char *answer) {
    message->step = STEP_ANSWERS;
    message->type = type;
    message->refused = refused;
    service_put(message->answer, (const uint8_t *)answer, (uint32_t)strlen(answer));
}

bool ber_next(struct service_bytes *bytes, uint8_t *tag, struct service_bytes *contents) {
    if (bytes->length < 2)
        return false;
    uint32_t size = bytes->at[1], head = 2;
    if (size & 0x80) {
        uint32_t octets = size & 0x7f;
        if (!octets || octets > 4 || bytes->length < head + octets)
            return false;
        size = 0;
        for (uint32_t i = 0; i < octets; i++)
            size = size << 8 | bytes->at[head + i];
        head += octets;
    }
    *tag = bytes->at[0];
    uint32_t left = bytes->length - head;
    *contents = (struct service_bytes){bytes->at + head, size < left ? size : left};
    bytes->at = contents->at + contents->length;
    bytes->length = left - contents->length;
    return true;
}

bool ber_find(struct service_bytes container, uint8_t tag, struct service_bytes *contents) {
    uint8_t seen;
    while (ber_next(&container, &seen, contents))
        if (seen == tag)
            return true;
    return false;
}
