/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of ttcp: to a receiver, or where transmitters come. */
#include "ttcp/ttcp_transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void ttcp_say(const struct ttcp_options *options, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "ttcp%s: ", options->transmit ? "-t" : "-r");
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

static int failed(enum ttcp_exit code) {
    return -1 - (int)code;
}

static bool set_option(int socket, int level, int name, int value) {
    return setsockopt(socket, level, name, &value, sizeof value) == 0;
}

static bool set_buffers(int socket, const struct ttcp_options *options) {
    if (!options->buffer)
        return true;
    int name = options->transmit ? SO_SNDBUF : SO_RCVBUF, got = 0;
    if (!set_option(socket, SOL_SOCKET, name, (int)options->buffer)) {
        ttcp_say(options, "-b %llu: %s", (unsigned long long)options->buffer, strerror(errno));
        return false;
    }
    socklen_t size = sizeof got;
    /* The kernel gives no more than its bound, and doubles what it gives (socket(7)). */
    if (getsockopt(socket, SOL_SOCKET, name, &got, &size) == 0 &&
        (uint64_t)got < options->buffer * 2)
        ttcp_say(options, "-b %llu: the system gives only %d bytes: raise net.core.%s",
                 (unsigned long long)options->buffer, got / 2,
                 options->transmit ? "wmem_max" : "rmem_max");
    return true;
}

bool ttcp_set_connection(int socket, const struct ttcp_options *options) {
    if (options->no_delay && !options->udp && !set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1))
        ttcp_say(options, "-D: %s", strerror(errno));
    return fcntl(socket, F_SETFL, O_NONBLOCK) == 0;
}

/* Everything that has to be set before a connection. */
static int prepare(int socket, const struct ttcp_options *options) {
    if (options->debug && !set_option(socket, SOL_SOCKET, SO_DEBUG, 1)) {
        ttcp_say(options, "-d: SO_DEBUG needs CAP_NET_ADMIN: %s", strerror(errno));
        return failed(TTCP_FORBIDDEN);
    }
    return set_buffers(socket, options) ? socket : failed(TTCP_UNREACHABLE);
}

static int find(const struct ttcp_options *options, int family, struct addrinfo **found) {
    struct addrinfo hints = {
        .ai_family = family,
        .ai_socktype = options->udp ? SOCK_DGRAM : SOCK_STREAM,
        .ai_flags = options->receive ? AI_PASSIVE : AI_ADDRCONFIG,
    };
    return getaddrinfo(options->host, options->port, &hints, found);
}

static int use_address(const struct addrinfo *address, const struct ttcp_options *options) {
    int made = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, 0);
    if (made < 0)
        return failed(TTCP_UNREACHABLE);
    int ready = prepare(made, options);
    if (ready >= 0 && connect(made, address->ai_addr, address->ai_addrlen) == 0 &&
        ttcp_set_connection(made, options))
        return made;
    int reason = errno;
    close(made);
    errno = reason;
    return ready < 0 ? ready : failed(TTCP_UNREACHABLE);
}

int ttcp_open_to(const struct ttcp_options *options, struct ttcp_transfer *transfer) {
    struct addrinfo *found = NULL;
    int problem = find(options, options->family, &found);
    if (problem) {
        ttcp_say(options, "%s: %s", options->host, gai_strerror(problem));
        return failed(TTCP_UNREACHABLE);
    }
    int made = failed(TTCP_UNREACHABLE);
    for (struct addrinfo *at = found; at && made == failed(TTCP_UNREACHABLE); at = at->ai_next) {
        made = use_address(at, options);
        memcpy(&transfer->peer, at->ai_addr, at->ai_addrlen);
        transfer->peer_length = at->ai_addrlen;
    }
    if (made == failed(TTCP_UNREACHABLE))
        ttcp_say(options, "%s port %s: cannot connect: %s", options->host, options->port,
                 strerror(errno));
    freeaddrinfo(found);
    return made;
}

static int bind_to(const struct addrinfo *address, const struct ttcp_options *options) {
    int made = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, 0);
    if (made < 0)
        return failed(TTCP_UNREACHABLE);
    int ready = prepare(made, options);
    /* A port of TCP whose last connection is not forgotten yet can be had; not one that is in use.
     */
    if (!options->udp)
        set_option(made, SOL_SOCKET, SO_REUSEADDR, 1);
    if (address->ai_family == AF_INET6)
        set_option(made, IPPROTO_IPV6, IPV6_V6ONLY, options->family == AF_INET6);
    if (ready >= 0 && bind(made, address->ai_addr, address->ai_addrlen) == 0 &&
        (options->udp || listen(made, 16) == 0) && fcntl(made, F_SETFL, O_NONBLOCK) == 0)
        return made;
    int reason = errno;
    close(made);
    errno = reason;
    return ready < 0 ? ready : failed(TTCP_UNREACHABLE);
}

/* Where there is IPv6, its socket takes IPv4 too. */
int ttcp_open_at(const struct ttcp_options *options) {
    int families[] = {options->family == AF_UNSPEC ? AF_INET6 : options->family, AF_INET};
    int made = failed(TTCP_UNREACHABLE);
    for (unsigned i = 0; i < (options->family == AF_UNSPEC ? 2 : 1); i++) {
        struct addrinfo *found = NULL;
        if (find(options, families[i], &found))
            continue;
        made = bind_to(found, options);
        freeaddrinfo(found);
        if (made != failed(TTCP_UNREACHABLE) || errno == EADDRINUSE || errno == EACCES)
            break;
    }
    if (made == failed(TTCP_UNREACHABLE)) {
        ttcp_say(options, "cannot receive at port %s: %s", options->port, strerror(errno));
        return errno == EACCES ? failed(TTCP_FORBIDDEN) : made;
    }
    return made;
}
