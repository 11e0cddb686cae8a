/* SPDX-License-Identifier: Apache-2.0 */
#include "receive/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "receive/pending_connection.h"
#include "transfer/clock.h"

#define RESERVE 64 /* file descriptors for all else */

/* As many files as this user may have open; half of them for visitors. */
static size_t count_places(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return 128;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
    size_t places = limit.rlim_cur > 2 * RESERVE ? (size_t)(limit.rlim_cur - RESERVE) / 2 : 32;
    return places < DOOR_MOST ? places : DOOR_MOST;
}

static int listen_at(const struct receive_options *options, int family, char why[WHY_ROOM]) {
    union endpoint at;
    if (endpoint_find(&at, options->local.bind, (uint16_t)options->port, family, true, why))
        return -1;
    return endpoint_listen(&at, &options->local, why);
}

bool door_open(struct door *door, const struct receive_options *options, char why[WHY_ROOM]) {
    int family = (int)options->family;
    bool any = family == AF_UNSPEC && !options->local.bind;
    door->room = count_places();
    door->visitors = calloc(door->room, sizeof *door->visitors);
    door->polled = calloc(door->room + LISTENERS + 1, sizeof *door->polled);
    door->listeners[0] = listen_at(options, any ? AF_INET : family, why);
    door->listeners[1] = -1;
    if (any && door->listeners[0] >= 0) { /* a host without IPv6 is served without */
        char no_matter[WHY_ROOM];
        door->listeners[1] = listen_at(options, AF_INET6, no_matter);
    }
    return door->visitors && door->polled && door->listeners[0] >= 0;
}

static void forget(struct door *door, size_t at, bool closes) {
    if (closes)
        close(door->visitors[at]->control.fd);
    free(door->visitors[at]);
    door->count--;
    memmove(&door->visitors[at], &door->visitors[at + 1],
            (door->count - at) * sizeof *door->visitors);
}

static void welcome(struct door *door, int fd, const union endpoint *peer) {
    int one = 1;
    if (door->count == door->room)
        forget(door, 0, true);
    struct visitor *visitor = calloc(1, sizeof *visitor);
    if (!visitor) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    control_begin(&visitor->control, fd);
    visitor->peer = *peer;
    visitor->since_ns = monotonic_ns();
    door->visitors[door->count++] = visitor;
}

/* Out of files: the visitor of longest standing makes room; when there is none, time will. */
static bool make_room(struct door *door) {
    struct timespec pause = to_timespec(10 * NS_PER_MS);
    if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)
        return false;
    if (!door->count) {
        nanosleep(&pause, NULL);
        return false;
    }
    forget(door, 0, true);
    return true;
}

static void accept_all(struct door *door, int listener) {
    for (unsigned i = 0; i < 256; i++) {
        union endpoint peer;
        socklen_t size = sizeof peer;
        int fd = accept4(listener, &peer.address, &size, SOCK_CLOEXEC);
        if (fd >= 0)
            welcome(door, fd, &peer);
        else if (errno != ECONNABORTED && errno != EINTR && !make_room(door))
            return;
    }
}

static void tend_visitors(struct door *door, size_t polled) {
    uint64_t now = monotonic_ns();
    for (size_t i = polled; i-- > 0;) {
        struct visitor *visitor = door->visitors[i];
        enum visitor_fate fate = VISITOR_STAYS;
        if (door->polled[LISTENERS + 1 + i].revents)
            fate = visitor_tend(visitor, door->sessions, door->key);
        if (fate == VISITOR_STAYS && now - visitor->since_ns > DOOR_LIMIT_NS)
            fate = VISITOR_LEAVES;
        if (fate != VISITOR_STAYS)
            forget(door, i, fate == VISITOR_LEAVES);
    }
}

void door_tend(struct door *door, int limit_ms) {
    uint64_t finished;
    size_t visitors = door->count;
    for (unsigned i = 0; i < LISTENERS; i++)
        door->polled[i] = (struct pollfd){.fd = door->listeners[i], .events = POLLIN};
    door->polled[LISTENERS] = (struct pollfd){.fd = door->sessions->wake, .events = POLLIN};
    for (size_t i = 0; i < visitors; i++)
        door->polled[LISTENERS + 1 + i] =
            (struct pollfd){.fd = door->visitors[i]->control.fd, .events = POLLIN};
    if (poll(door->polled, LISTENERS + 1 + visitors, limit_ms) < 0)
        return;
    if (read(door->sessions->wake, &finished, sizeof finished) > 0)
        session_set_tidy(door->sessions);
    tend_visitors(door, visitors);
    for (unsigned i = 0; i < LISTENERS; i++)
        if (door->polled[i].revents)
            accept_all(door, door->listeners[i]);
}

void door_close(struct door *door) {
    while (door->count)
        forget(door, door->count - 1, true);
    for (unsigned i = 0; i < LISTENERS; i++)
        if (door->listeners[i] >= 0)
            close(door->listeners[i]);
    free(door->visitors);
    free(door->polled);
}
