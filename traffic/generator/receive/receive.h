/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a receiver. One thread must call all functions.
 *
 * The session set holds the transfers: a slot and a thread for each. The listener accepts
 * connections and finds their purpose: a pending connection holds no session, only a place in a
 * bounded list, for at most MAX_PENDING_NS; if the list is full, its oldest connection is closed.
 * The listener owns a connection until a session accepts it. */
#ifndef WIRETALE_RECEIVE_H
#define WIRETALE_RECEIVE_H

#include "common/clock.h"
#include "control/handshake.h"
#include "session/exchange.h"

/* allowed.c: networks from which tests are accepted: "192.0.2.0/24", "2001:db8::/32" or an address.
 */

#define MAX_ALLOWED 64u

struct allowed_network {
    int family;
    uint8_t address[16]; /* in network byte order; IPv4 takes the first 4 */
    unsigned prefix;     /* bits */
};

struct allowed_networks {
    struct allowed_network list[MAX_ALLOWED];
    unsigned count; /* 0: all are allowed */
};

/* Adds a network to a struct allowed_networks (common/options.h). Returns false if the text is
 * none, if it has bits behind its prefix, or if the list is full. */
bool allowed_networks_take(void *networks, const char *text, const char **expected);

bool allowed_networks_contain(const struct allowed_networks *networks, const union endpoint *peer);

/* quota.c: bytes of blocks that each address may move in a time. */

#define MAX_QUOTA_ADDRESSES 4096u

struct quota_address;

struct quota {
    uint64_t bytes, ns;         /* 0: no quota */
    struct quota_address *list; /* made with the first test */
    uint32_t count;
};

/* Parses "10G/24h" into a struct quota (common/options.h). */
bool quota_take(void *quota, const char *text, const char **expected);

/* Takes `wanted` bytes (0: all that are left) for a test and returns their number. Returns 0 with
 * `error` set if the address has not so many. */
uint64_t quota_grant(struct quota *quota, const union endpoint *peer, uint64_t wanted,
                     uint64_t now_ns, char error[ERROR_SIZE]);
/* Returns the bytes of a grant that the test did not move. */
void quota_return(struct quota *quota, const union endpoint *peer, uint64_t granted,
                  uint64_t moved);

/* The command line of `receive`. */
struct receive_options {
    const char *key; /* NULL: not given */
    struct content_target target;
    uint64_t port;
    uint64_t family;      /* AF_UNSPEC, AF_INET, AF_INET6 */
    uint64_t tests;       /* transfers to run; 0: until stopped */
    uint64_t accept_ns;   /* longest time in which no transfer runs; 0: no limit */
    uint64_t parallel;    /* transfers at once */
    uint64_t max_streams; /* of a transfer */
    uint64_t idle_ns;     /* 0: as the sender asks */
    bool lets_stop;       /* senders may end this receiver */
    uint64_t buffer;      /* bytes; 0: as the sender asks */
    struct allowed_networks allowed;
    struct quota quota;
    struct local_plan local;
    struct exchange_options exchange; /* with the other limits of a transfer */
};

struct session {
    _Atomic enum { SESSION_FREE, SESSION_RUNNING, SESSION_FINISHED } state;
    struct session_set *set;
    pthread_t thread;
    struct transfer transfer; /* owns the control connection */
    uint64_t granted;         /* bytes of the address's quota; 0: no quota */
    _Atomic bool has_begun;   /* the sender has sent "start" */
    bool is_unwritten;        /* the report could not be written */
};

struct session_set {
    const struct receive_options *options;
    struct quota quota;
    struct session *list;
    uint64_t count;       /* slots */
    uint64_t running;     /* threads that are not joined yet */
    uint64_t begun;       /* transfers that reached their start */
    uint64_t cut_short;   /* of these, the incomplete ones */
    uint64_t unwritten;   /* reports that could not be written */
    bool is_stopped;      /* by the sender of a test that has run: no further test begins */
    _Atomic bool is_late; /* none began in time: neither does a further one */
    int wake;             /* eventfd: a session has finished */
};

/* `options` must outlive the set. Returns false if memory or descriptors ran out. */
bool session_set_begin(struct session_set *set, const struct receive_options *options);
void session_set_end(struct session_set *set);

/* Returns whether a transfer runs that has begun. */
bool session_set_is_busy(const struct session_set *set);

/* Joins the threads of finished sessions and frees their slots. */
void session_set_join_finished(struct session_set *set);

/* An accepted connection. */
struct connection {
    struct control control;
    struct data_keys keys; /* known if the sender has proved its key */
    union endpoint peer;
};

/* Starts a session, which then owns the connection and the plan, and returns NULL. Otherwise
 * returns the reason; `*busy` is set if a later attempt may succeed. */
const char *session_set_start(struct session_set *set, const struct connection *connection,
                              struct transfer_plan *plan, bool *busy);

/* Hands a data connection, of which the bytes in `control` were read, to the session with this run
 * and host. Returns false if no session expects it: the caller then keeps the connection. */
bool session_set_accept(struct session_set *set, enum direction_name name, uint64_t run,
                        uint64_t stream, const struct connection *connection);

/* listener.c */

#define MAX_PENDING    4096u
#define MAX_PENDING_NS (5 * NS_PER_S)
#define LISTEN_SOCKETS 2 /* IPv4 and IPv6 */

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
