/* SPDX-License-Identifier: Apache-2.0 */
/* The most frequent pairs of ports are named by the link addresses that were seen there. */
#include <stdlib.h>

#include "common/test/check.h"
#include "update/capture_ports.h"

static const uint8_t frames[3][14] = {
    {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0},
    {2, 0, 0, 0, 0, 3, 2, 0, 0, 0, 0, 1, 8, 0},
    {2, 0, 0, 0, 0, 4, 2, 0, 0, 0, 0, 5, 8, 0},
};

static void note(struct capture_ports *ports, uint16_t port, unsigned frame, uint32_t interface) {
    struct packet packet = {.data = frames[frame], .captured = 14, .link_type = 1};
    struct headers headers = {.link_hash = frame};
    struct packet_info info = {.port = port, .capture = interface};
    capture_ports_note(ports, &packet, &headers, &info);
}

static struct port_pairs *pairs; /* of the test at hand */

static void add(uint16_t first, uint16_t second, uint8_t ttl, int64_t delay_ns, unsigned packets) {
    struct segment_effect effect = {.second_port = true,
                                    .first_port = first,
                                    .first_ttl = (uint8_t)(ttl + 1),
                                    .port_delay_ns = delay_ns};
    struct packet_info info = {.port = second, .ttl = ttl};
    for (unsigned i = 0; i < packets; i++)
        CHECK(port_pairs_add(&pairs, &info, &effect));
}

/* The pairs so far are joined, as at the end of an analysis. */
static struct second_ports sum_of(struct capture_ports *ports, uint32_t interface) {
    struct second_ports sum;
    capture_ports_join(ports, pairs);
    free(pairs);
    pairs = NULL;
    capture_ports_sum(ports, interface, PORT_PAIRS_NAMED, &sum);
    return sum;
}

static void close_ports(struct capture_ports *ports) {
    capture_ports_close(ports);
    free(pairs);
    pairs = NULL;
}

static void check_port(const struct port_of_pair *port, unsigned source, unsigned destination,
                       unsigned ttl_min, unsigned ttl_max) {
    CHECK(port->named && port->addressed);
    CHECK_INT(port->source[5], source);
    CHECK_INT(port->destination[5], destination);
    CHECK_INT(port->ttl_min, ttl_min);
    CHECK_INT(port->ttl_max, ttl_max);
}

static void check_pair(void) {
    struct capture_ports *ports = capture_ports_open();
    note(ports, 7, 0, 0);
    note(ports, 7, 0, 0);
    note(ports, 8, 1, 0);
    add(7, 8, 63, 5000, 2);
    add(7, 8, 60, 9000, 1);
    add(NO_PORT, 8, 63, 0, 9); /* the original is forgotten: counted, without a name */
    struct second_ports sum = sum_of(ports, 0);
    CHECK_INT(sum.packets, 12);
    CHECK_INT(sum.delay_ns_max, 9000);
    CHECK_INT(sum.count, 1);
    CHECK_INT(sum.pairs[0].packets, 3);
    check_port(&sum.pairs[0].ports[0], 2, 1, 61, 64);
    check_port(&sum.pairs[0].ports[1], 1, 3, 60, 63);
    CHECK_INT(sum_of(ports, 1).packets, 0);
    close_ports(ports);
}

/* Other addresses at the same port, and interfaces that differ. */
static void check_names(void) {
    struct capture_ports *ports = capture_ports_open();
    note(ports, 7, 0, 0);
    note(ports, 7, 2, 0);
    note(ports, 8, 1, 1);
    add(7, 8, 63, 0, 1);
    struct second_ports sum = sum_of(ports, 0);
    CHECK(!sum.pairs[0].ports[0].named && !sum.pairs[0].ports[0].addressed);
    CHECK_INT(sum.pairs[0].ports[0].ttl_min, 64);
    check_port(&sum.pairs[0].ports[1], 1, 3, 63, 63);
    note(ports, 9, 2, 0);
    add(9, 8, 63, 0, 2);
    sum = sum_of(ports, 0);
    CHECK_INT(sum.count, 2);
    check_port(&sum.pairs[0].ports[0], 5, 4, 64, 64);
    CHECK_INT(sum.pairs[0].ports[0].interface, 0);
    CHECK_INT(sum.pairs[0].ports[1].interface, 1);
    CHECK(!sum.pairs[1].ports[0].named);
    close_ports(ports);
}

static void check_bound(void) {
    struct capture_ports *ports = capture_ports_open();
    for (unsigned i = 0; i < 4000; i++)
        add((uint16_t)i, (uint16_t)(4000 - i), 63, 0, 1);
    add(3, 3997, 63, 0, 1);
    CHECK_INT(sum_of(ports, 0).packets, 1025);
    close_ports(ports);
}

/* Two workers that saw parts of the packets have the same result as one. */
static void check_join(void) {
    struct capture_ports *ports = capture_ports_open();
    add(7, 8, 63, 5000, 2);
    add(9, 8, 63, 0, 1);
    struct port_pairs *other = pairs;
    pairs = NULL;
    capture_ports_join(ports, NULL);
    add(7, 8, 60, 9000, 1);
    capture_ports_join(ports, other);
    struct second_ports sum = sum_of(ports, 0);
    CHECK_INT(sum.packets, 4);
    CHECK_INT(sum.delay_ns_max, 9000);
    CHECK_INT(sum.pairs[0].ports[0].ttl_min, 61);
    CHECK_INT(sum.pairs[0].ports[0].ttl_max, 64);
    CHECK_INT(sum.pairs[0].ports[1].ttl_min, 60);
    CHECK_INT(sum.pairs[0].ports[1].ttl_max, 63);
    free(other);
    close_ports(ports);
}

int main(void) {
    check_pair();
    check_names();
    check_bound();
    check_join();
    capture_ports_close(NULL);
    return 0;
}
