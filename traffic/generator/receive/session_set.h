/* SPDX-License-Identifier: Apache-2.0 */
/* The tests that a receiver runs: a slot and a thread for each. */
#ifndef WIRETALE_SESSION_H
#define WIRETALE_SESSION_H

#include "receive/receive_options.h"
#include "transfer/transfer.h"

struct session {
    enum { SESSION_FREE, SESSION_RUNNING, SESSION_FINISHED } state; /* under the set's lock */
    struct session_set *set;
    pthread_t thread;
    struct test test;
};

struct session_set {
    const struct receive_options *options;
    struct session *list;
    uint64_t count, running, begun, cut_short;
    int wake;        /* eventfd: one has finished */
    uint64_t untold; /* reports that could not be written; under `print` */
    pthread_mutex_t lock, print;
};

bool session_set_begin(struct session_set *set, const struct receive_options *options);
/* Joins those that have finished. */
void session_set_tidy(struct session_set *set);
void session_set_end(struct session_set *set);

/* Takes over the connection and the plan. NULL: done; else why not, and `*busy` when that may
 * pass. */
const char *session_begin(struct session_set *set, const struct control *control,
                          struct test_plan *plan, const union endpoint *peer, bool *busy);

/* A data connection to the test it is of. False: nobody's. */
bool session_hand_over(struct session_set *set, enum way_name way, uint64_t run, uint64_t stream,
                       const union endpoint *peer, int fd, const uint8_t *head, size_t count);

#endif
