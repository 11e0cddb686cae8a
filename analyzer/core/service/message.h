/* SPDX-License-Identifier: Apache-2.0 */
/* A message of a service as its reader finds it, and what readers share: texts, elements of ASN.1.
 */
#ifndef WIRETALE_SERVICE_MESSAGE_H
#define WIRETALE_SERVICE_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SERVICE_TEXT_BYTES 64u

enum service_step { STEP_NONE, STEP_ASKS, STEP_ANSWERS };

struct service_bytes {
    const uint8_t *at;
    uint32_t length;
};

/* What a reader finds. */
struct service_message {
    bool from_client; /* set before: of a stream, whether the bytes go to the port of the service */
    enum service_step step;
    const char *type;                /* static: what is asked for */
    bool unasked;                    /* an answer that needs no request: the server spoke first */
    bool refused;                    /* of an answer */
    char name[SERVICE_TEXT_BYTES];   /* of a request: user, share, command; may be empty */
    char answer[SERVICE_TEXT_BYTES]; /* what the server says */
};

/* Readers take hostile bytes, and leave a message with STEP_NONE if they know none. */
typedef void service_reader(struct service_message *message, struct service_bytes bytes);

/* Text of at most SERVICE_TEXT_BYTES - 1 bytes. */
void service_put(char *text, const uint8_t *bytes, uint32_t length);
/* UTF-16 of which each character is one byte long, behind what the text has. */
void service_add_wide(char *text, const uint8_t *bytes, uint32_t length);
/* A number and a text, as far as it fits. */
void service_number(char *text, uint32_t number, const char *said);
void service_say(struct service_message *message, const char *type, bool refused,
                 const char *answer);
/* An element of ASN.1 (BER, X.690) at the front: its contents. Returns whether it is there; if it
 * is cut, its contents are as far as they were captured. */
bool ber_next(struct service_bytes *bytes, uint8_t *tag, struct service_bytes *contents);
/* The contents of the first element with a tag among those of a container. */
bool ber_find(struct service_bytes container, uint8_t tag, struct service_bytes *contents);

#endif
