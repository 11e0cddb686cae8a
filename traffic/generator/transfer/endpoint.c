/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of both ends. Options are set before a socket is bound or connected, because the SYN
 * carries the window scale that follows from the buffer (RFC 7323), the MSS and the DSCP.
 *
 * The caller owns each descriptor that is returned; a function that fails has closed its socket.
 * Each wait has a bound: poll() for a connect, SO_RCVTIMEO and SO_SNDTIMEO for data. IPv4 and IPv6
 * have separate sockets (IPV6_V6ONLY), so no address has the mapped form (RFC 4291 2.5.5.2), and
 * hosts of different families are never the same. */
#include "transfer/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/units.h"

#define UDP_BUFFER_DEFAULT (8 << 20) /* bytes: 60 ms at 1 Gbit/s, until a busy receiver runs */
#define LISTEN_BACKLOG     4096

bool local_plan_take_ports(void *into, const char *text, const char **expected) {
    struct local_plan *local = into;
    char first[8] = "";
    *expected = "two ports from 1 to 65535, the lower one first, as in 40000-40100";
    const char *last = strchr(text, '-');
    if (!last || last - text >= (ptrdiff_t)sizeof first)
        return false;
    memcpy(first, text, (size_t)(last - text));
    return units_parse_port(first, &local->port_first) &&
           units_parse_port(last + 1, &local->port_last) && local->port_first <= local->port_last;
}

/* The hint SOCK_STREAM lists each address once; the addresses serve UDP too. /etc/hosts may have an
 * address twice. */
int endpoint_find(union endpoint list[MOST_ADDRESSES], const char *host, uint16_t port, int family,
                  int flags, char error[ERROR_SIZE]) {
    struct addrinfo *results,
        hints = {.ai_family = family, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    char service[8];
    int count = 0;
    snprintf(service, sizeof service, "%u", port);
    int failed = getaddrinfo(host, service, &hints, &results);
    if (failed) {
        snprintf(error, ERROR_SIZE, "%.150s: %s", host ? host : "any address",
                 failed == EAI_SYSTEM ? strerror(errno) : gai_strerror(failed));
        return -1;
    }
    for (const struct addrinfo *at = results; at && count < MOST_ADDRESSES; at = at->ai_next) {
        int same = 0;
        list[count] = (union endpoint){0};
        memcpy(&list[count], at->ai_addr, at->ai_addrlen);
        while (same < count && memcmp(&list[same], &list[count], sizeof *list))
            same++;
        count += same == count;
    }
    freeaddrinfo(results);
    return count;
}

void endpoint_add_reason(char reasons[REASONS_SIZE], const union endpoint *endpoint,
                         const char *reason) {
    char name[ADDRESS_SIZE];
    size_t used = strlen(reasons);
    endpoint_name(endpoint, name);
    snprintf(reasons + used, REASONS_SIZE - used, "%s%s: %.120s", used ? "; " : "", name, reason);
}

socklen_t endpoint_size(const union endpoint *endpoint) {
    return endpoint->address.sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                   : sizeof(struct sockaddr_in);
}

/* The port is at the same place in both kinds of address. */
uint16_t endpoint_port(const union endpoint *endpoint) {
    return ntohs(endpoint->ipv4.sin_port);
}

void endpoint_set_port(union endpoint *endpoint, uint16_t port) {
    endpoint->ipv4.sin_port = htons(port);
}

bool endpoint_same_host(const union endpoint *one, const union endpoint *other) {
    if (one->address.sa_family != other->address.sa_family)
        return false;
    if (one->address.sa_family == AF_INET6)
        return IN6_ARE_ADDR_EQUAL(&one->ipv6.sin6_addr, &other->ipv6.sin6_addr);
    return one->ipv4.sin_addr.s_addr == other->ipv4.sin_addr.s_addr;
}

/* Numeric, because a name server may take seconds to answer. */
void endpoint_name(const union endpoint *endpoint, char name[ADDRESS_SIZE]) {
    if (getnameinfo(&endpoint->address, endpoint_size(endpoint), name, ADDRESS_SIZE, NULL, 0,
                    NI_NUMERICHOST))
        strcpy(name, "?");
}

/* Describes errno in `error`, closes the socket if there is one, and keeps errno. */
static int give_up(int fd, char error[ERROR_SIZE], const char *operation) {
    int reason = errno;
    snprintf(error, ERROR_SIZE, "%s: %s", operation, strerror(reason));
    if (fd >= 0)
        close(fd);
    errno = reason;
    return -1;
}

/* Binds to the first address of --bind that this host has, with any port. Returns 0 or -1. */
static int bind_address(int fd, int family, const char *name, char error[ERROR_SIZE]) {
    union endpoint list[MOST_ADDRESSES];
    int count = endpoint_find(list, name, 0, family, 0, error);
    for (int i = 0; i < count; i++)
        if (!bind(fd, &list[i].address, endpoint_size(&list[i])))
            return 0;
    if (count > 0)
        snprintf(error, ERROR_SIZE, "--bind %.100s: %s", name, strerror(errno));
    return -1;
}

/* Applies --device and --bind. Returns 0 or -1. */
static int bind_local(int fd, int family, const struct local_plan *local, char error[ERROR_SIZE]) {
    if (local->device &&
        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, local->device, strlen(local->device))) {
        snprintf(error, ERROR_SIZE, "--device %.20s: %s%s", local->device, strerror(errno),
                 errno == EPERM ? " (needs CAP_NET_RAW)" : "");
        return -1;
    }
    return local->bind ? bind_address(fd, family, local->bind, error) : 0;
}

/* Creates a socket with all that must be set before it is bound or connected. A `plan` of NULL is
 * that of a control connection. */
static int create(int family, int type, const struct local_plan *local,
                  const struct socket_plan *plan, char error[ERROR_SIZE]) {
    int one = 1, fd = socket(family, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return give_up(fd, error, "socket");
    if (family == AF_INET6) /* IPv4 has a socket of its own */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind_local(fd, family, local, error) ||
        (plan && endpoint_apply(fd, family, type == SOCK_DGRAM, plan, error))) {
        close(fd);
        return -1;
    }
    return fd;
}

/* SO_REUSEADDR lets a receiver restart while connections of the previous
 * one are in TIME-WAIT (RFC 9293 3.3.2). */
int endpoint_listen(const union endpoint *at, const struct local_plan *local,
                    char error[ERROR_SIZE]) {
    struct local_plan device = {.device = local->device};
    int one = 1,
        fd = create(at->address.sa_family, SOCK_STREAM | SOCK_NONBLOCK, &device, NULL, error);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, &at->address, endpoint_size(at)))
        return give_up(fd, error, "bind");
    if (listen(fd, LISTEN_BACKLOG))
        return give_up(fd, error, "listen");
    return fd;
}

bool endpoint_is_absent(void) {
    return errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT;
}

/* Waits for the connection. Returns 0, or -1 with errno set. SO_ERROR has the result of a connect
 * that did not complete at once. */
static int finish_connect(int fd, uint64_t limit_ns) {
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    int failure = 0;
    socklen_t size = sizeof failure;
    int ready = poll(&one, 1, (int)(limit_ns / NS_PER_MS) + 1);
    if (ready <= 0)
        errno = ready ? errno : ETIMEDOUT;
    else if (!getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) && !failure)
        return 0;
    else
        errno = failure;
    return -1;
}

/* The kernel would retransmit its SYN for about two minutes, so the socket connects without
 * blocking. It blocks afterwards, because movers rely on timeouts. */
int endpoint_connect(const union endpoint *to, const struct local_plan *local,
                     const struct socket_plan *plan, uint64_t limit_ns, char error[ERROR_SIZE]) {
    int fd = create(to->address.sa_family, SOCK_STREAM | SOCK_NONBLOCK, local, plan, error);
    if (fd < 0)
        return -1;
    if (connect(fd, &to->address, endpoint_size(to)) &&
        (errno != EINPROGRESS || finish_connect(fd, limit_ns)))
        return give_up(fd, error, "connect");
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

/* Binds to the first free port of the range. Returns 0, or -1 with errno set. Any error but
 * EADDRINUSE would repeat at each port, so it ends the search. */
static int bind_in_range(int fd, union endpoint *at, const struct local_plan *local) {
    endpoint_set_port(at, 0);
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

/* `at` is the address of the control connection, so data arrives at the same interface. */
int endpoint_bind_udp(const union endpoint *at, const struct local_plan *local,
                      const struct socket_plan *plan, char error[ERROR_SIZE]) {
    union endpoint own = *at;
    struct local_plan device = {.device = local->device};
    int one = 1, fd = create(at->address.sa_family, SOCK_DGRAM, &device, plan, error);
    if (fd < 0)
        return -1;
    /* Now, and not before the first datagram, because the kernel starts to stamp with a delay. */
    (void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
    if (bind_in_range(fd, &own, local))
        return give_up(fd, error, "UDP bind");
    return fd;
}

int endpoint_connect_udp(const union endpoint *to, const struct local_plan *local,
                         const struct socket_plan *plan, char error[ERROR_SIZE]) {
    int fd = create(to->address.sa_family, SOCK_DGRAM, local, plan, error);
    if (fd >= 0 && connect(fd, &to->address, endpoint_size(to)))
        return give_up(fd, error, "UDP connect");
    return fd;
}

/* `ns` must be at least 1,000, because a timeval of 0 waits forever. */
void endpoint_limit_waits(int fd, uint64_t ns) {
    struct timeval limit = {.tv_sec = (time_t)(ns / NS_PER_S),
                            .tv_usec = (suseconds_t)(ns % NS_PER_S / 1000)};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

/* An option of socket_plan that is an int. */
struct socket_option {
    const char *name; /* of the command line */
    int level, option;
    int value; /* -1: not asked for */
};

/* 0 in the plan means that the option was not given. */
static int value_or_unset(uint64_t value) {
    return value ? (int)value : -1;
}

/* Options of TCP alone are skipped over UDP. */
static bool set_option(int fd, bool udp, const struct socket_option *of) {
    return of->value < 0 || (udp && of->level == IPPROTO_TCP) ||
           !setsockopt(fd, of->level, of->option, &of->value, sizeof of->value);
}

/* SO_*BUFFORCE lets root exceed net.core.rmem_max and wmem_max. */
static void set_buffers(int fd, int bytes) {
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes))
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes))
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

/* Linux paces a TCP socket by itself (from 4.13 on), so no fq is needed. */
static bool limit_rate(int fd, double bps) {
    uint64_t bytes_per_s = (uint64_t)(bps / 8);
    return bps <= 0 ||
           !setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_s, sizeof bytes_per_s);
}

/* A UDP socket without --buffer gets UDP_BUFFER_DEFAULT, because the system's 200 kB overflow while
 * the thread waits for a CPU. The congestion control comes last, because its error needs a hint of
 * its own. */
int endpoint_apply(int fd, int family, bool udp, const struct socket_plan *plan,
                   char error[ERROR_SIZE]) {
    static const int path_mtu_values[] = {
        [PATH_MTU_SYSTEM] = -1,
        [PATH_MTU_DO] = IP_PMTUDISC_DO,
        [PATH_MTU_DONT] = IP_PMTUDISC_DONT,
        [PATH_MTU_WANT] = IP_PMTUDISC_WANT,
        [PATH_MTU_PROBE] = IP_PMTUDISC_PROBE, /* the numbers of IPv6 are the same */
    };
    /* DSCP is the upper six bits of the traffic class (RFC 2474). */
    int traffic_class = plan->dscp_plus_1 ? (int)(plan->dscp_plus_1 - 1) << 2 : -1;
    bool six = family == AF_INET6;
    int level = six ? IPPROTO_IPV6 : IPPROTO_IP;
    const struct socket_option options[] = {
        {"dscp", level, six ? IPV6_TCLASS : IP_TOS, traffic_class},
        {"ttl", level, six ? IPV6_UNICAST_HOPS : IP_TTL, value_or_unset(plan->ttl)},
        {"df", level, six ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, path_mtu_values[plan->path_mtu]},
        {"no-delay", IPPROTO_TCP, TCP_NODELAY, value_or_unset(plan->no_delay)},
        {"mss", IPPROTO_TCP, TCP_MAXSEG, value_or_unset(plan->mss)},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (!set_option(fd, udp, &options[i])) {
            snprintf(error, ERROR_SIZE, "--%s: %s", options[i].name, strerror(errno));
            return -1;
        }
    if (plan->buffer || udp)
        set_buffers(fd, plan->buffer ? (int)plan->buffer : UDP_BUFFER_DEFAULT);
    if (!limit_rate(fd, plan->fq_rate_bps)) {
        snprintf(error, ERROR_SIZE, "--fq-rate: %s", strerror(errno));
        return -1;
    }
    const char *congestion = plan->congestion;
    if (udp || !*congestion ||
        !setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, strlen(congestion)))
        return 0;
    snprintf(error, ERROR_SIZE,
             "--congestion %s: %s (sysctl net.ipv4.tcp_available_congestion_control)", congestion,
             strerror(errno));
    return -1;
}
