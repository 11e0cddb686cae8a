/* SPDX-License-Identifier: Apache-2.0 */
#include "receive/pending_connection.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "control/handshake.h"
#include "stream/block_fast.h"

struct data_line {
    uint64_t run, stream;
};

static const struct line_field data_fields[] = {
    {"run", offsetof(struct data_line, run), FIELD_NUMBER, UINT32_MAX, NULL},
    {"stream", offsetof(struct data_line, stream), FIELD_NUMBER, STREAMS_MOST - 1, NULL},
};

static enum visitor_fate refuse(struct visitor *visitor, bool busy, const char *why) {
    struct refusal refusal = {.is_busy = busy};
    char line[LINE_MOST];
    snprintf(refusal.text, sizeof refusal.text, "%.199s", why);
    refusal_write(&refusal, line);
    control_say(&visitor->control, "%s", line);
    return VISITOR_LEAVES;
}

/* A connection of blocks begins with a block; all of its header is read before it is handed on. */
static enum visitor_fate take_block(struct visitor *visitor, struct session_set *sessions) {
    struct block_header header;
    const uint8_t *head = (const uint8_t *)visitor->control.in;
    if (visitor->control.have < BLOCK_HEADER_BYTES)
        return VISITOR_STAYS;
    block_get_header(head, &header);
    return session_hand_over(sessions, WAY_FORWARD, header.run, header.stream, &visitor->peer,
                             visitor->control.fd, head, BLOCK_HEADER_BYTES)
               ? VISITOR_TAKEN
               : VISITOR_LEAVES;
}

static bool may_be_block(const char *bytes, size_t count) {
    size_t compared = count < 4 ? count : 4;
    return !memcmp(bytes, "WTB1", compared) || !memcmp(bytes, "WTC1", compared);
}

/* No more than a header, until it is clear that lines follow. */
static enum visitor_fate take_first(struct visitor *visitor, struct session_set *sessions) {
    struct control *control = &visitor->control;
    ssize_t got = recv(control->fd, control->in + control->have, BLOCK_HEADER_BYTES - control->have,
                       MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return VISITOR_STAYS;
    if (got <= 0)
        return VISITOR_LEAVES;
    control->have += (size_t)got;
    if (may_be_block(control->in, control->have))
        return take_block(visitor, sessions);
    visitor->stage = VISITOR_LINES;
    return VISITOR_STAYS;
}

static enum visitor_fate take_data(struct visitor *visitor, const char *line,
                                   struct session_set *sessions) {
    struct data_line data = {0};
    if (line_read(line, data_fields, 2, &data) || visitor->control.have)
        return VISITOR_LEAVES;
    return session_hand_over(sessions, WAY_REVERSE, data.run, data.stream, &visitor->peer,
                             visitor->control.fd, NULL, 0)
               ? VISITOR_TAKEN
               : VISITOR_LEAVES;
}

static enum visitor_fate take_hello(struct visitor *visitor, const char *line,
                                    const struct key *key) {
    struct hello hello;
    char answer[LINE_MOST];
    const char *why = hello_read(&hello, line);
    if (why)
        return refuse(visitor, false, why);
    strcpy(visitor->theirs, hello.nonce);
    key_make_nonce(visitor->mine);
    strcpy(hello.nonce, visitor->mine);
    hello.wants_key = key != NULL;
    hello_write(&hello, answer);
    visitor->stage = key ? VISITOR_PROOF : VISITOR_TEST;
    return control_say(&visitor->control, "%s", answer) ? VISITOR_STAYS : VISITOR_LEAVES;
}

static enum visitor_fate take_proof(struct visitor *visitor, const char *line,
                                    const struct key *key) {
    struct proof proof, expected;
    char answer[LINE_MOST];
    key_prove(key, KEY_OF_SENDER, visitor->theirs, visitor->mine, expected.proof);
    if (proof_read(&proof, line) || !key_is_proof(proof.proof, expected.proof))
        return refuse(visitor, false, "wrong key, or none");
    key_prove(key, KEY_OF_RECEIVER, visitor->theirs, visitor->mine, proof.proof);
    proof_write(&proof, answer);
    visitor->stage = VISITOR_TEST;
    return control_say(&visitor->control, "%s", answer) ? VISITOR_STAYS : VISITOR_LEAVES;
}

static enum visitor_fate take_test(struct visitor *visitor, const char *line,
                                   struct session_set *sessions) {
    struct test_plan plan;
    bool busy = false;
    const char *why = line_is(line, "test") ? test_plan_from_line(&plan, line) : "expected a test";
    if (why)
        return refuse(visitor, false, why);
    why = test_plan_complete(&plan, visitor->peer.address.sa_family == AF_INET6);
    if (!why)
        why = session_begin(sessions, &visitor->control, &plan, &visitor->peer, &busy);
    if (!why)
        return VISITOR_TAKEN;
    test_plan_free(&plan);
    return refuse(visitor, busy, why);
}

static enum visitor_fate take_line(struct visitor *visitor, const char *line,
                                   struct session_set *sessions, const struct key *key) {
    switch (visitor->stage) {
    case VISITOR_LINES:
        return line_is(line, "data") ? take_data(visitor, line, sessions)
                                     : take_hello(visitor, line, key);
    case VISITOR_PROOF: return take_proof(visitor, line, key);
    case VISITOR_TEST: return take_test(visitor, line, sessions);
    case VISITOR_FIRST: break;
    }
    return VISITOR_LEAVES;
}

enum visitor_fate visitor_tend(struct visitor *visitor, struct session_set *sessions,
                               const struct key *key) {
    char line[LINE_MOST];
    enum visitor_fate fate = VISITOR_STAYS;
    if (visitor->stage == VISITOR_FIRST)
        fate = take_first(visitor, sessions);
    while (fate == VISITOR_STAYS && visitor->stage != VISITOR_FIRST) {
        switch (control_take(&visitor->control, line)) {
        case CONTROL_LINE: fate = take_line(visitor, line, sessions, key); break;
        case CONTROL_NOTHING: return VISITOR_STAYS;
        case CONTROL_GONE:
        case CONTROL_GARBAGE: return VISITOR_LEAVES;
        }
    }
    return fate;
}
