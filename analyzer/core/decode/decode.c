/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder's entry, and what its reasons are called. */
#include "decode/decode.h"

static const uint8_t reason_answers[REASON_COUNT] = {
#define X(symbol, answer, name, sentence) DECODE_##answer,
    DECODE_REASONS(X)
#undef X
};

static const char *const reason_names[REASON_COUNT] = {
#define X(symbol, answer, name, sentence) name,
    DECODE_REASONS(X)
#undef X
};

static const char *const reason_sentences[REASON_COUNT] = {
#define X(symbol, answer, name, sentence) sentence,
    DECODE_REASONS(X)
#undef X
};

/* The layers' usual ways are made one function, their others are kept out of it (noinline). */
__attribute__((flatten)) void decode_packet(const struct packet *packet, struct headers *headers) {
    /* A record that claims fewer bytes on the wire than it holds has at least those it holds. */
    struct decoding d = {
        .data = packet->data,
        .captured = packet->captured,
        .end = packet->length > packet->captured ? packet->length : packet->captured,
        .headers = headers,
    };
    HEADERS_CLEAR(headers, answer, ip_version);
    headers->link_hash = 0;
    decode_link(&d, packet->link_type);
    headers->answer = reason_answers[headers->reason];
    /* Fields of layers that were not reached read as 0, never as those of an earlier packet. */
    if (headers->layer < LAYER_NETWORK)
        HEADERS_CLEAR(headers, ip_version, link_hash);
}

const char *decode_reason_name(enum decode_reason reason) {
    return reason_names[reason];
}

const char *decode_reason_sentence(enum decode_reason reason) {
    return reason_sentences[reason];
}

enum decode_answer decode_reason_answer(enum decode_reason reason) {
    return reason_answers[reason];
}
