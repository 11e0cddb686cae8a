/* SPDX-License-Identifier: Apache-2.0 */
/* The transfers of a receiver: a slot and a thread for each. One thread must call all functions. */
#ifndef WIRETALE_SESSION_SET_H
#define WIRETALE_SESSION_SET_H

#include "control/handshake.h"
#include "receive/allowed.h"
#include "receive/quota.h"
#include "session/exchange.h"

/* The command line of `receive`. */
struct receive_options {
    const char *key;  /* NULL: not given */
    const char *user; /* that root becomes; NULL: not given */
    bool no_sandbox;
    struct content_target target;
    struct folder_room room; /* of target.folder */
    uint64_t port;
    uint64_t family;      /* AF_UNSPEC, AF_INET, AF_INET6 */
    uint64_t tests;       /* transfers to run; 0: until stopped */
    uint64_t accept_ns;   /* longest time in which no transfer runs; 0: no limit */
    uint64_t parallel;    /* transfers at once */
    uint64_t per_address; /* of them, of one address */
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

#endif
