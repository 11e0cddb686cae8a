/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer/socket_options.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

struct option {
    const char *name;
    int level, option, level_ipv6, option_ipv6; /* 0: as IPv4 */
    int value;                                  /* -1: not asked for */
    bool tcp_only;
};

/* enum path_mtu to the kernel's words; the same numbers in IPv6. */
static const int path_mtu_values[] = {-1, IP_PMTUDISC_DO, IP_PMTUDISC_DONT, IP_PMTUDISC_WANT,
                                      IP_PMTUDISC_PROBE};

static int or_none(uint64_t value) {
    return value ? (int)value : -1;
}

static int set_one(int fd, int family, const struct option *option, char *error, size_t room) {
    bool six = family == AF_INET6 && option->level_ipv6;
    if (!setsockopt(fd, six ? option->level_ipv6 : option->level,
                    six ? option->option_ipv6 : option->option, &option->value,
                    sizeof option->value))
        return 0;
    snprintf(error, room, "--%s: %s", option->name, strerror(errno));
    return -1;
}

/* Root may go over the system's bound (net.core.rmem_max). */
static void set_buffers(int fd, int bytes) {
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes))
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes))
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static int set_congestion(int fd, const char *name, char *error, size_t room) {
    if (!*name || !setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, strlen(name)))
        return 0;
    snprintf(error, room, "--congestion %s: %s (sysctl net.ipv4.tcp_available_congestion_control)",
             name, strerror(errno));
    return -1;
}

int socket_options_set(int fd, int family, bool udp, const struct socket_plan *plan, char *error,
                       size_t room) {
    int traffic_class = plan->dscp_plus_1 ? (int)(plan->dscp_plus_1 - 1) << 2 : -1;
    const struct option options[] = {
        {"dscp", IPPROTO_IP, IP_TOS, IPPROTO_IPV6, IPV6_TCLASS, traffic_class, false},
        {"ttl", IPPROTO_IP, IP_TTL, IPPROTO_IPV6, IPV6_UNICAST_HOPS, or_none(plan->ttl), false},
        {"df", IPPROTO_IP, IP_MTU_DISCOVER, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
         path_mtu_values[plan->path_mtu], false},
        {"no-delay", IPPROTO_TCP, TCP_NODELAY, 0, 0, or_none(plan->no_delay), true},
        {"mss", IPPROTO_TCP, TCP_MAXSEG, 0, 0, or_none(plan->mss), true},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].value >= 0 && !(udp && options[i].tcp_only) &&
            set_one(fd, family, &options[i], error, room))
            return -1;
    if (plan->buffer || udp)
        set_buffers(fd, plan->buffer ? (int)plan->buffer : UDP_BUFFER_DEFAULT);
    return udp ? 0 : set_congestion(fd, plan->congestion, error, room);
}
