/* SPDX-License-Identifier: Apache-2.0 */
/* Who connects: told apart by their first bytes, and not waited for. A stranger holds no slot of a
 * test, only a place among the visitors, for DOOR_LIMIT_NS at most; when all places are taken, the
 * one who has been there longest goes. */
#ifndef WIRETALE_DOOR_H
#define WIRETALE_DOOR_H

#include "control/key.h"
#include "receive/session_set.h"

#define DOOR_LIMIT_NS (5 * NS_PER_S)
#define DOOR_MOST     4096u
#define LISTENERS     2

struct visitor;

struct door {
    struct session_set *sessions;
    const struct key *key; /* NULL: anybody */
    int listeners[LISTENERS];
    struct visitor **visitors; /* the oldest first */
    size_t count, room;
    struct pollfd *polled;
};

/* False: said in `why`. */
bool door_open(struct door *door, const struct receive_options *options, char why[WHY_ROOM]);
/* Waits up to `limit_ms` for something, and deals with it. */
void door_tend(struct door *door, int limit_ms);
void door_close(struct door *door);

#endif
