/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts connections and finds their purpose. A pending connection holds no session, only a place
 * in a bounded list, for at most MAX_PENDING_NS; if the list is full, its oldest connection is
 * closed. The listener owns a connection until a session accepts it. */
#ifndef WIRETALE_LISTENER_H
#define WIRETALE_LISTENER_H

#include "common/clock.h"
#include "receive/session_set.h"

#define MAX_PENDING    4096u
#define MAX_PENDING_NS (5 * NS_PER_S)
#define LISTEN_SOCKETS MOST_ADDRESSES /* of --bind, or any of IPv4 and of IPv6 */

struct pending_connection;

struct listener {
    struct session_set *sessions;
    const struct key *key;               /* NULL: any sender may start a transfer */
    int sockets[LISTEN_SOCKETS];         /* -1: unused */
    struct pending_connection **pending; /* oldest first */
    size_t count, capacity;              /* of `pending` */
    struct pollfd *polled;               /* room for all sockets */
};

/* Opens the sockets that `options` ask for. If that fails, returns false with `error` set. */
bool listener_open(struct listener *listener, const struct receive_options *options,
                   char error[ERROR_SIZE]);
/* Waits at most `limit_ms` for connections, their data or the end of a session, and handles all. */
void listener_poll(struct listener *listener, int limit_ms);
void listener_close(struct listener *listener);

#endif
