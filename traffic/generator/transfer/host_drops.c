/* SPDX-License-Identifier: Apache-2.0 */
/* The interface to the peer, its queueing discipline, and packets that this host dropped there,
 * from the kernel by rtnetlink(7): drops of the root queueing discipline, which includes those of
 * its children (qdisc_tree_reduce_backlog() and the return values of enqueue pass them up), and
 * drops of the interface itself.
 *
 * The counters are those of all traffic of the interface, so their growth is an upper bound for one
 * transfer. The interface is that of the route to the peer when a transfer begins; packets of the
 * peer need not arrive there, if routes are asymmetric. Any user may ask; nothing is changed. */
#include <linux/gen_stats.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "transfer/endpoint.h"

#define ANSWER_BYTES 32768
#define WAIT_US      500000 /* for an answer: the kernel gives it during the send */

struct request {
    struct nlmsghdr header;
    uint8_t body[128]; /* a struct of the message's type, and attributes */
};

/* Copies an attribute of an answer. */
struct wanted {
    unsigned short type;
    size_t fixed; /* bytes of the answer before its attributes */
    void *into;
    size_t room;
    ssize_t stored;                                                /* -1: not found yet */
    void (*each)(struct wanted *wanted, struct nlmsghdr *message); /* NULL, or reads a list */
};

static void search_attributes(struct rtattr *at, int left, struct wanted *wanted) {
    for (; RTA_OK(at, left); at = RTA_NEXT(at, left))
        if ((at->rta_type & NLA_TYPE_MASK) == wanted->type && RTA_PAYLOAD(at) <= wanted->room) {
            wanted->stored = (ssize_t)RTA_PAYLOAD(at);
            memcpy(wanted->into, RTA_DATA(at), RTA_PAYLOAD(at));
        }
}

/* Reads the messages of one datagram. Returns whether the acknowledgment was among them. */
static bool read_messages(struct nlmsghdr *message, size_t left, struct wanted *wanted) {
    for (; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
        if (message->nlmsg_type == NLMSG_ERROR) {
            const struct nlmsgerr *error = NLMSG_DATA(message);
            if (!error->error && wanted->stored < 0)
                wanted->stored = 0;
            return true;
        }
        uint8_t *body = NLMSG_DATA(message);
        if (message->nlmsg_type == NLMSG_DONE)
            return true;
        if (wanted->each)
            wanted->each(wanted, message);
        else if (message->nlmsg_len > NLMSG_LENGTH(wanted->fixed))
            search_attributes((struct rtattr *)(body + NLMSG_ALIGN(wanted->fixed)),
                              (int)NLMSG_PAYLOAD(message, wanted->fixed), wanted);
    }
    return false;
}

/* Sends a request whose body has `bytes` bytes. Returns the size of the attribute, 0 if the kernel
 * answers without it, -1 if it refuses. */
static ssize_t ask(struct request *request, size_t bytes, struct wanted *wanted) {
    _Alignas(struct nlmsghdr) uint8_t answer[ANSWER_BYTES];
    struct timeval limit = {.tv_usec = WAIT_US};
    ssize_t got;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    wanted->stored = -1;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    request->header.nlmsg_len = (uint32_t)NLMSG_LENGTH(bytes);
    request->header.nlmsg_flags =
        NLM_F_REQUEST | (wanted->each ? NLM_F_DUMP : NLM_F_ACK | NLM_F_ECHO);
    if (send(fd, request, request->header.nlmsg_len, 0) > 0)
        while ((got = recv(fd, answer, sizeof answer, 0)) > 0)
            if (read_messages((struct nlmsghdr *)answer, (size_t)got, wanted))
                break;
    close(fd);
    return wanted->stored;
}

/* Appends an attribute to a body that has `bytes` bytes so far. Returns their new number. */
static size_t append(struct request *request, size_t bytes, unsigned short type, const void *value,
                     size_t size) {
    const struct rtattr head = {.rta_type = type, .rta_len = (unsigned short)RTA_LENGTH(size)};
    memcpy(request->body + bytes, &head, sizeof head);
    memcpy(request->body + bytes + RTA_LENGTH(0), value, size);
    return bytes + RTA_SPACE(size);
}

static size_t append_address(struct request *request, size_t bytes, unsigned short type,
                             const union endpoint *at) {
    if (at->address.sa_family == AF_INET6)
        return append(request, bytes, type, &at->ipv6.sin6_addr, sizeof at->ipv6.sin6_addr);
    return append(request, bytes, type, &at->ipv4.sin_addr, sizeof at->ipv4.sin_addr);
}

int host_interface_to(const union endpoint *own, const union endpoint *peer) {
    bool six = peer->address.sa_family == AF_INET6;
    uint8_t protocol = IPPROTO_UDP, address_bits = six ? 128 : 32;
    int found = 0;
    struct wanted wanted = {RTA_OIF, sizeof(struct rtmsg), &found, sizeof found, -1, NULL};
    struct request request = {.header.nlmsg_type = RTM_GETROUTE};
    const struct rtmsg route = {.rtm_family = (uint8_t)peer->address.sa_family,
                                .rtm_dst_len = address_bits,
                                .rtm_src_len = own ? address_bits : 0};
    size_t bytes = NLMSG_ALIGN(sizeof route);
    if (six && peer->ipv6.sin6_scope_id)
        return (int)peer->ipv6.sin6_scope_id;
    memcpy(request.body, &route, sizeof route);
    bytes = append_address(&request, bytes, RTA_DST, peer);
    if (own) {
        bytes = append_address(&request, bytes, RTA_SRC, own);
        bytes = append(&request, bytes, RTA_IP_PROTO, &protocol, sizeof protocol);
        bytes = append(&request, bytes, RTA_SPORT, &own->ipv4.sin_port, sizeof(in_port_t));
        bytes = append(&request, bytes, RTA_DPORT, &peer->ipv4.sin_port, sizeof(in_port_t));
    }
    return ask(&request, bytes, &wanted) == sizeof found ? found : 0;
}

static ssize_t ask_root_queue(int interface, struct wanted *wanted) {
    struct request request = {.header.nlmsg_type = RTM_GETQDISC};
    const struct tcmsg queue = {.tcm_ifindex = interface, .tcm_parent = TC_H_ROOT};
    memcpy(request.body, &queue, sizeof queue);
    return ask(&request, sizeof queue, wanted);
}

/* TCA_STATS2 nests the counters. An interface without a queue (noqueue) gives no answer but the
 * acknowledgment: it drops nothing there. */
static int64_t queue_drops(int interface) {
    _Alignas(struct rtattr) uint8_t nested[1024];
    struct gnet_stats_queue counters;
    struct wanted wanted = {TCA_STATS2, sizeof(struct tcmsg), nested, sizeof nested, -1, NULL},
                  inner = {TCA_STATS_QUEUE, 0, &counters, sizeof counters, -1, NULL};
    ssize_t got = ask_root_queue(interface, &wanted);
    if (got <= 0)
        return got;
    search_attributes((struct rtattr *)nested, (int)got, &inner);
    return inner.stored == sizeof counters ? (int64_t)counters.drops : -1;
}

/* Any discipline but those that kernels and distributions set may have a rate, and the children of
 * mq may have one. */
bool host_may_shape(int interface) {
    static const char *const rateless[] = {"noqueue", "pfifo_fast", "fq_codel", "fq"};
    char kind[IFNAMSIZ] = "";
    struct wanted wanted = {TCA_KIND, sizeof(struct tcmsg), kind, sizeof kind - 1, -1, NULL};
    ssize_t got = ask_root_queue(interface, &wanted);
    for (size_t i = 0; got > 0 && i < sizeof rateless / sizeof *rateless; i++)
        if (!strcmp(kind, rateless[i]))
            return false;
    return got != 0;
}

/* The queueing disciplines of an interface. */
struct disciplines {
    int interface;
    bool root_is_fq, root_is_mq;
    unsigned children, fq_children;
};

/* Notes one of a list of all. */
static void note_discipline(struct wanted *wanted, struct nlmsghdr *message) {
    struct disciplines *found = wanted->into;
    struct tcmsg *queue = NLMSG_DATA(message);
    char kind[IFNAMSIZ] = "";
    struct wanted inner = {TCA_KIND, 0, kind, sizeof kind - 1, -1, NULL};
    if (message->nlmsg_len < NLMSG_LENGTH(sizeof *queue) ||
        queue->tcm_ifindex != found->interface || queue->tcm_parent == TC_H_INGRESS)
        return;
    search_attributes(TCA_RTA(queue), (int)NLMSG_PAYLOAD(message, sizeof *queue), &inner);
    bool is_fq = !strcmp(kind, "fq");
    if (queue->tcm_parent == TC_H_ROOT) {
        found->root_is_fq = is_fq;
        found->root_is_mq = !strcmp(kind, "mq");
    } else {
        found->children++;
        found->fq_children += is_fq;
    }
}

/* An interface with several queues has mq, with one child for each. The kernel gives no handle to
 * the one that it sets itself, so its children are found only in the list of all interfaces. */
bool host_has_fq(int interface) {
    struct disciplines found = {.interface = interface};
    struct wanted wanted = {.into = &found, .each = note_discipline};
    struct request request = {.header.nlmsg_type = RTM_GETQDISC};
    ask(&request, sizeof(struct tcmsg), &wanted);
    return found.root_is_fq ||
           (found.root_is_mq && found.children && found.children == found.fq_children);
}

/* An older kernel has fewer counters; those that are read here were among the first. */
static bool interface_counters(int interface, struct rtnl_link_stats64 *counters) {
    uint8_t bytes[512];
    struct wanted wanted = {IFLA_STATS64, sizeof(struct ifinfomsg), bytes, sizeof bytes, -1, NULL};
    struct request request = {.header.nlmsg_type = RTM_GETLINK};
    const struct ifinfomsg which = {.ifi_index = interface};
    memcpy(request.body, &which, sizeof which);
    ssize_t got = ask(&request, sizeof which, &wanted);
    if (got < (ssize_t)offsetof(struct rtnl_link_stats64, rx_compressed))
        return false;
    *counters = (struct rtnl_link_stats64){0};
    memcpy(counters, bytes, (size_t)got < sizeof *counters ? (size_t)got : sizeof *counters);
    return true;
}

void host_drops_read(struct host_drops *drops, const union endpoint *peer) {
    struct rtnl_link_stats64 counters;
    if (!drops->interface)
        drops->interface = host_interface_to(NULL, peer);
    drops->queue = drops->sent = drops->received = -1;
    if (!drops->interface)
        return;
    drops->queue = queue_drops(drops->interface);
    if (!interface_counters(drops->interface, &counters))
        return;
    drops->sent = (int64_t)(counters.tx_dropped & INT64_MAX);
    drops->received = (int64_t)((counters.rx_dropped + counters.rx_missed_errors) & INT64_MAX);
}
