/* SPDX-License-Identifier: Apache-2.0 */
#include "control/handshake.h"

#include <stddef.h>

static const struct line_field hello_fields[] = {
    {"nonce", offsetof(struct hello, nonce), FIELD_TEXT, NONCE_HEX, NULL},
    {"key", offsetof(struct hello, wants_key), FIELD_NUMBER, 1, NULL},
};
static const struct line_field proof_fields[] = {
    {"proof", offsetof(struct proof, proof), FIELD_TEXT, NONCE_HEX, NULL},
};
static const struct line_field refusal_fields[] = {
    {"busy", offsetof(struct refusal, is_busy), FIELD_NUMBER, 1, NULL},
    {"text", offsetof(struct refusal, text), FIELD_TEXT, 200, NULL},
};

#define FIELDS(list) list, sizeof list / sizeof *list

const char *hello_read(struct hello *hello, const char *line) {
    *hello = (struct hello){0};
    if (!line_is(line, HELLO_WORD))
        return "no greeting of this protocol and version (wiretale/1)";
    const char *why = line_read(line, FIELDS(hello_fields), hello);
    return why ? why : key_is_nonce(hello->nonce) ? NULL : "no challenge";
}

const char *proof_read(struct proof *proof, const char *line) {
    *proof = (struct proof){0};
    return line_is(line, "proof") ? line_read(line, FIELDS(proof_fields), proof) : "no proof";
}

const char *refusal_read(struct refusal *refusal, const char *line) {
    *refusal = (struct refusal){0};
    return line_is(line, "refused") ? line_read(line, FIELDS(refusal_fields), refusal)
                                    : "no refusal";
}

void hello_write(const struct hello *hello, char line[LINE_MOST]) {
    line_write(line, HELLO_WORD, FIELDS(hello_fields), hello);
}

void proof_write(const struct proof *proof, char line[LINE_MOST]) {
    line_write(line, "proof", FIELDS(proof_fields), proof);
}

void refusal_write(const struct refusal *refusal, char line[LINE_MOST]) {
    line_write(line, "refused", FIELDS(refusal_fields), refusal);
}
