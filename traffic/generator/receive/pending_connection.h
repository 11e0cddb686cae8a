/* SPDX-License-Identifier: Apache-2.0 */
/* One connection that has not said yet what it is for. */
#ifndef WIRETALE_VISITOR_H
#define WIRETALE_VISITOR_H

#include "control/key.h"
#include "receive/session_set.h"

enum visitor_stage { VISITOR_FIRST, VISITOR_LINES, VISITOR_PROOF, VISITOR_TEST };

struct visitor {
    struct control control;
    union endpoint peer;
    uint64_t since_ns;
    enum visitor_stage stage;
    char mine[NONCE_HEX], theirs[NONCE_HEX]; /* challenges */
};

enum visitor_fate {
    VISITOR_STAYS,
    VISITOR_LEAVES, /* its connection is to be closed */
    VISITOR_TAKEN   /* its connection has another owner */
};

/* Reads what is there; never waits. */
enum visitor_fate visitor_tend(struct visitor *visitor, struct session_set *sessions,
                               const struct key *key);

#endif
