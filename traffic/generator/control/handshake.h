/* SPDX-License-Identifier: Apache-2.0 */
/* The lines before a test: who speaks, and whether it has the key. */
#ifndef WIRETALE_HANDSHAKE_H
#define WIRETALE_HANDSHAKE_H

#include "control/key.h"
#include "control/line_fields.h"

#define HELLO_WORD "wiretale/1"

struct hello {
    char nonce[NONCE_HEX];
    uint64_t wants_key;
};
struct proof {
    char proof[NONCE_HEX];
};
struct refusal {
    uint64_t is_busy;
    char text[200];
};

/* NULL, or what is wrong with the line. */
const char *hello_read(struct hello *hello, const char *line);
const char *proof_read(struct proof *proof, const char *line);
const char *refusal_read(struct refusal *refusal, const char *line);
void hello_write(const struct hello *hello, char line[LINE_MOST]);
void proof_write(const struct proof *proof, char line[LINE_MOST]);
void refusal_write(const struct refusal *refusal, char line[LINE_MOST]);

#endif
