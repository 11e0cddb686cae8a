/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "transfer/clock.h"
#include "transfer/socket_options.h"

int endpoint_find(union endpoint *found, const char *host, uint16_t port, int family, bool passive,
                  char error[ERROR_SIZE]) {
    struct addrinfo *list, hints = {.ai_family = family,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_flags = passive ? AI_PASSIVE : 0};
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    int failed = getaddrinfo(host, service, &hints, &list);
    if (failed) {
        snprintf(error, ERROR_SIZE, "%.150s: %s", host ? host : "any address",
                 failed == EAI_SYSTEM ? strerror(errno) : gai_strerror(failed));
        return -1;
    }
    memset(found, 0, sizeof *found);
    memcpy(found, list->ai_addr, list->ai_addrlen);
    freeaddrinfo(list);
    return 0;
}

socklen_t endpoint_size(const union endpoint *endpoint) {
    return endpoint->address.sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                   : sizeof(struct sockaddr_in);
}

static in_port_t *port_of(union endpoint *endpoint) {
    return endpoint->address.sa_family == AF_INET6
               ? &((struct sockaddr_in6 *)&endpoint->storage)->sin6_port
               : &((struct sockaddr_in *)&endpoint->storage)->sin_port;
}

uint16_t endpoint_port(const union endpoint *endpoint) {
    union endpoint copy = *endpoint;
    return ntohs(*port_of(&copy));
}

void endpoint_set_port(union endpoint *endpoint, uint16_t port) {
    *port_of(endpoint) = htons(port);
}

bool endpoint_same_host(const union endpoint *one, const union endpoint *other) {
    if (one->address.sa_family != other->address.sa_family)
        return false;
    if (one->address.sa_family == AF_INET6)
        return !memcmp(&((const struct sockaddr_in6 *)&one->storage)->sin6_addr,
                       &((const struct sockaddr_in6 *)&other->storage)->sin6_addr,
                       sizeof(struct in6_addr));
    return ((const struct sockaddr_in *)&one->storage)->sin_addr.s_addr ==
           ((const struct sockaddr_in *)&other->storage)->sin_addr.s_addr;
}

void endpoint_name(const union endpoint *endpoint, char name[ADDRESS_SIZE]) {
    if (getnameinfo(&endpoint->address, endpoint_size(endpoint), name, ADDRESS_SIZE, NULL, 0,
                    NI_NUMERICHOST))
        strcpy(name, "?");
}

static int give_up(int fd, char error[ERROR_SIZE], const char *what) {
    snprintf(error, ERROR_SIZE, "%s: %s", what, strerror(errno));
    close(fd);
    return -1;
}

static int bind_local(int fd, int family, const struct local_plan *local, char error[ERROR_SIZE]) {
    union endpoint at;
    if (local->device &&
        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, local->device, strlen(local->device))) {
        snprintf(error, ERROR_SIZE, "--device %.20s: %s%s", local->device, strerror(errno),
                 errno == EPERM ? " (needs CAP_NET_RAW)" : "");
        return -1;
    }
    if (!local->bind)
        return 0;
    if (endpoint_find(&at, local->bind, 0, family, false, error))
        return -1;
    if (bind(fd, &at.address, endpoint_size(&at))) {
        snprintf(error, ERROR_SIZE, "--bind %.100s: %s", local->bind, strerror(errno));
        return -1;
    }
    return 0;
}

int endpoint_listen(const union endpoint *at, const struct local_plan *local,
                    char error[ERROR_SIZE]) {
    int one = 1, family = at->address.sa_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct local_plan device = {.device = local->device};
    if (fd < 0) {
        snprintf(error, ERROR_SIZE, "socket: %s", strerror(errno));
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind_local(fd, family, &device, error)) {
        close(fd);
        return -1;
    }
    if (bind(fd, &at->address, endpoint_size(at)))
        return give_up(fd, error, "bind");
    if (listen(fd, 4096))
        return give_up(fd, error, "listen");
    return fd;
}

static int finish_connect(int fd, uint64_t limit_ns) {
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;
    int ready = poll(&one, 1, (int)(limit_ns / NS_PER_MS) + 1);
    if (ready <= 0)
        errno = ready ? errno : ETIMEDOUT;
    else if (!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) && !error)
        return 0;
    else
        errno = error;
    return -1;
}

int endpoint_connect(const union endpoint *to, const struct local_plan *local,
                     const struct socket_plan *plan, uint64_t limit_ns, char error[ERROR_SIZE]) {
    int family = to->address.sa_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        snprintf(error, ERROR_SIZE, "socket: %s", strerror(errno));
        return -1;
    }
    if ((plan && endpoint_apply(fd, family, false, plan, error)) ||
        bind_local(fd, family, local, error)) {
        close(fd);
        return -1;
    }
    if (connect(fd, &to->address, endpoint_size(to)) &&
        (errno != EINPROGRESS || finish_connect(fd, limit_ns)))
        return give_up(fd, error, "connect");
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

static int bind_in_range(int fd, union endpoint *at, const struct local_plan *local) {
    if (!local->port_first)
        return bind(fd, &at->address, endpoint_size(at));
    for (uint32_t port = local->port_first; port <= local->port_last; port++) {
        endpoint_set_port(at, (uint16_t)port);
        if (!bind(fd, &at->address, endpoint_size(at)))
            return 0;
        if (errno != EADDRINUSE)
            return -1;
    }
    return -1;
}

int endpoint_bind_udp(const union endpoint *at, const struct local_plan *local,
                      const struct socket_plan *plan, char error[ERROR_SIZE]) {
    union endpoint own = *at;
    struct local_plan device = {.device = local->device};
    int one = 1;
    int family = at->address.sa_family, fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        snprintf(error, ERROR_SIZE, "socket: %s", strerror(errno));
        return -1;
    }
    if (bind_local(fd, family, &device, error) || endpoint_apply(fd, family, true, plan, error)) {
        close(fd);
        return -1;
    }
    /* Long before the first datagram: the kernel begins to stamp some time after it is asked. */
    (void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
    endpoint_set_port(&own, 0);
    if (bind_in_range(fd, &own, local))
        return give_up(fd, error, "UDP bind");
    return fd;
}

int endpoint_connect_udp(const union endpoint *to, const struct local_plan *local,
                         const struct socket_plan *plan, char error[ERROR_SIZE]) {
    int family = to->address.sa_family, fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        snprintf(error, ERROR_SIZE, "socket: %s", strerror(errno));
        return -1;
    }
    if (bind_local(fd, family, local, error) || endpoint_apply(fd, family, true, plan, error)) {
        close(fd);
        return -1;
    }
    if (connect(fd, &to->address, endpoint_size(to)))
        return give_up(fd, error, "UDP connect");
    return fd;
}

int endpoint_apply(int fd, int family, bool udp, const struct socket_plan *plan,
                   char error[ERROR_SIZE]) {
    return socket_options_set(fd, family, udp, plan, error, ERROR_SIZE);
}

void endpoint_limit_waits(int fd, uint64_t ns) {
    struct timeval limit = {.tv_sec = (time_t)(ns / NS_PER_S),
                            .tv_usec = (suseconds_t)(ns % NS_PER_S / 1000)};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}
