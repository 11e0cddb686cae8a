/* SPDX-License-Identifier: Apache-2.0 */
/* The command `path`: the routers on the way to a host. UDP datagrams with a rising time to live
 * leave one socket, so that routers which spread flows over several links take all of them the same
 * way. The kernel reports the ICMP answers (IP_RECVERR of ip(7)), so no privilege is needed.
 *
 * One probe is on the way at a time. An answer that quotes the payload of an earlier probe is late,
 * and dropped; routers of RFC 1812 quote it. An answer that quotes less counts for the probe on the
 * way. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "commands.h"
#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "common/options.h"
#include "transfer/endpoint.h"

#define MOST_HOPS    64
#define MOST_PROBES  10
#define SILENT_HOPS  5 /* in a row: whatever follows does not answer either */
#define CONTROL_SIZE 512

struct path_options {
    const char *host;
    uint64_t family, port, hops, probes, wait_ns;
    bool json;
};

/* Its rows name the functions, words and members above. */
#include "path/option_table.h"

/* Answers to the probes of one time to live. */
struct hop {
    union endpoint router;       /* family 0: no answer */
    int64_t rtt_ns[MOST_PROBES]; /* -1: no answer */
    bool reached, refused;       /* the host itself; a router that does not forward */
};

static bool is_error(const struct cmsghdr *part) {
    return (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_RECVERR) ||
           (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_RECVERR);
}

/* Adds the router of an error to the hop. Returns false if it is one of this host itself. */
static bool read_error(const struct cmsghdr *part, struct hop *hop) {
    struct sock_extended_err error;
    memcpy(&error, CMSG_DATA(part), sizeof error);
    bool ipv6 = error.ee_origin == SO_EE_ORIGIN_ICMP6;
    size_t size = ipv6 ? sizeof hop->router.ipv6 : sizeof hop->router.ipv4;
    if ((!ipv6 && error.ee_origin != SO_EE_ORIGIN_ICMP) ||
        part->cmsg_len < CMSG_LEN(sizeof error + size))
        return false;
    memcpy(&hop->router, CMSG_DATA(part) + sizeof error, size);
    if (error.ee_type != (ipv6 ? ICMP6_DST_UNREACH : ICMP_DEST_UNREACH))
        return true; /* the time to live ended */
    if (error.ee_code == (ipv6 ? ICMP6_DST_UNREACH_NOPORT : ICMP_PORT_UNREACH))
        hop->reached = true;
    else
        hop->refused = true;
    return true;
}

/* Takes one message of the error queue. Returns whether it answers the probe. */
static bool take_answer(int fd, uint32_t probe, struct hop *hop) {
    union {
        char bytes[CONTROL_SIZE];
        struct cmsghdr aligned;
    } control;
    uint32_t quoted = 0;
    struct iovec payload = {&quoted, sizeof quoted};
    struct msghdr message = {.msg_iov = &payload,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got = recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT);
    if (got < 0 || (got == sizeof quoted && quoted != probe))
        return false;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part))
        if (is_error(part) && part->cmsg_len >= CMSG_LEN(sizeof(struct sock_extended_err)))
            return read_error(part, hop);
    return false;
}

/* Sends a probe and waits for its answer. Returns the round trip, or -1. */
static int64_t send_probe(int fd, uint32_t probe, uint64_t wait_ns, struct hop *hop) {
    char late[sizeof probe];
    while (recv(fd, late, sizeof late, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0)
        continue;
    int64_t sent_ns = monotonic_ns(), until_ns = sent_ns + (int64_t)wait_ns;
    if (send(fd, &probe, sizeof probe, 0) < 0 && send(fd, &probe, sizeof probe, 0) < 0)
        return -1; /* the first call may return an error of the probe before */
    for (int64_t now_ns = sent_ns; now_ns < until_ns; now_ns = monotonic_ns()) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        struct timespec left = to_timespec(until_ns - now_ns);
        if (ppoll(&ready, 1, &left, NULL) > 0 && take_answer(fd, probe, hop))
            return monotonic_ns() - sent_ns;
        char byte;
        if (recv(fd, &byte, 1, MSG_DONTWAIT) >= 0) { /* a program has the port: the host answers */
            socklen_t size = sizeof hop->router;
            hop->reached = !getpeername(fd, &hop->router.address, &size);
            return monotonic_ns() - sent_ns;
        }
    }
    return -1;
}

static void set_hops(int fd, int family, int hops) {
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &hops, sizeof hops);
    else
        setsockopt(fd, IPPROTO_IP, IP_TTL, &hops, sizeof hops);
}

static void print_hop(FILE *out, unsigned number, const struct hop *hop, size_t probes) {
    char name[ADDRESS_SIZE] = "*";
    if (hop->router.address.sa_family)
        endpoint_name(&hop->router, name);
    fprintf(out, "%2u  %-15s", number, name);
    for (size_t i = 0; i < probes; i++)
        if (hop->rtt_ns[i] < 0)
            fputs("            *", out);
        else
            fprintf(out, "  %8.3f ms", (double)hop->rtt_ns[i] / NS_PER_MS);
    fputs(hop->refused ? "  (does not forward)\n" : "\n", out);
    fflush(out);
}

static void put_hop(struct json *json, unsigned number, const struct hop *hop, size_t probes) {
    char name[ADDRESS_SIZE] = "";
    if (hop->router.address.sa_family)
        endpoint_name(&hop->router, name);
    json_open(json, NULL, '{');
    json_count(json, "ttl", number);
    json_text(json, "address", *name ? name : NULL);
    json_open(json, "rtt_ns", '[');
    for (size_t i = 0; i < probes; i++)
        json_count(json, NULL, hop->rtt_ns[i]);
    json_close(json, ']');
    json_close(json, '}');
}

/* Walks until the host, a router that does not forward, or the limit. Returns the number of hops.
 */
static unsigned walk(int fd, int family, const struct path_options *options, struct hop *hops) {
    unsigned silent = 0, count = 0;
    while (count < options->hops && silent < SILENT_HOPS) {
        struct hop *hop = &hops[count++];
        set_hops(fd, family, (int)count);
        for (uint32_t i = 0; i < options->probes; i++)
            hop->rtt_ns[i] = send_probe(fd, count << 8 | (i + 1), options->wait_ns, hop);
        silent = hop->router.address.sa_family ? 0 : silent + 1;
        if (!options->json)
            print_hop(stdout, count, hop, options->probes);
        if (hop->reached || hop->refused)
            break;
    }
    return count;
}

static int open_probes(const struct path_options *options, union endpoint *to) {
    char error[ERROR_SIZE];
    union endpoint list[MOST_ADDRESSES];
    if (endpoint_find(list, options->host, (uint16_t)options->port, (int)options->family, 0,
                      error) < 0)
        fail(EXIT_IO, "%s", error);
    *to = list[0];
    int fd = endpoint_connect_udp(to, &(struct local_plan){0}, NULL, error), yes = 1;
    if (fd < 0)
        fail(EXIT_IO, "%s", error);
    if (to->address.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &yes, sizeof yes);
    else
        setsockopt(fd, IPPROTO_IP, IP_RECVERR, &yes, sizeof yes);
    return fd;
}

int path_main(int argc, char **argv) {
    struct path_options options = {
        .family = AF_UNSPEC, .port = 33434, .hops = 30, .probes = 3, .wait_ns = NS_PER_S};
    if (!options_read(&command, &options, argc, argv, &options.host, 1))
        fail(EXIT_USAGE, "expected the host; see `%s --help`", program_name());
    union endpoint to;
    char name[ADDRESS_SIZE];
    int fd = open_probes(&options, &to);
    endpoint_name(&to, name);
    if (!options.json)
        printf("to %s (%s), UDP port %u\n", options.host, name, (unsigned)options.port);
    struct hop hops[MOST_HOPS] = {0};
    unsigned count = walk(fd, to.address.sa_family, &options, hops);
    close(fd);
    bool reached = hops[count - 1].reached;
    if (options.json) {
        struct json json = {.out = stdout};
        json_open(&json, NULL, '{');
        json_text(&json, "schema", "wiretale.path/1");
        json_text(&json, "host", options.host);
        json_text(&json, "address", name);
        json_count(&json, "port", (int64_t)options.port);
        json_bool(&json, "reached", reached);
        json_open(&json, "hops", '[');
        for (unsigned i = 0; i < count; i++)
            put_hop(&json, i + 1, &hops[i], options.probes);
        json_close(&json, ']');
        json_close(&json, '}');
        putchar('\n');
    }
    if (fflush(stdout) || ferror(stdout))
        fail(EXIT_IO, "standard output: %s", strerror(errno));
    return reached ? EXIT_DONE : EXIT_TRUNCATED;
}
