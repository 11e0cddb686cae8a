/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that are sent again, beside what only looks like it. */
#include "device/repeats.h"

#include <pcap/dlt.h>
#include <stdbool.h>
#include <string.h>

#include "common/test/check.h"

static uint8_t packet[200];

static void put_16(uint8_t *at, unsigned number) {
    at[0] = (uint8_t)(number >> 8);
    at[1] = (uint8_t)number;
}

/* Returns the size of an Ethernet frame with a VLAN tag: a segment of IPv4, or of IPv6. */
static size_t make(bool is_six, unsigned id, uint32_t seq, unsigned length, uint8_t flags) {
    uint8_t *ip = packet + 18, *tcp = ip + (is_six ? 40 : 20);
    memset(packet, 0, sizeof packet);
    put_16(packet + 12, 0x8100);
    put_16(packet + 16, is_six ? 0x86dd : 0x0800);
    ip[0] = is_six ? 0x60 : 0x45;
    put_16(is_six ? ip + 4 : ip + 2, 20 + length + (is_six ? 0 : 20));
    put_16(ip + 4, is_six ? 20 + length : id);
    ip[is_six ? 6 : 9] = 6;
    ip[is_six ? 8 : 12] = 10;
    put_16(tcp, 443);
    put_16(tcp + 4, seq >> 16);
    put_16(tcp + 6, seq & 0xffff);
    tcp[12] = 5 << 4;
    tcp[13] = flags;
    return (size_t)(tcp + 20 - packet);
}

static struct repeats repeats;

static void check(bool is_six, unsigned id, uint32_t seq, unsigned length, unsigned segments,
                  unsigned repeated) {
    size_t size = make(is_six, id, seq, length, 16);
    repeats_take(&repeats, DLT_EN10MB, packet, size);
    CHECK_INT(repeats.segments, segments);
    CHECK_INT(repeats.repeated, repeated);
}

static void test_a_direction(bool is_six) {
    repeats_open(&repeats);
    repeats_take(&repeats, DLT_EN10MB, packet, make(is_six, 1, 0xfffffff0, 0, 2)); /* SYN */
    check(is_six, 2, 0xfffffff1, 100, 1, 0); /* over the end of the numbers */
    check(is_six, 3, 85, 100, 2, 0);
    check(is_six, 4, 85, 100, 3, 1);
    check(is_six, 5, 0xfffffff1, 100, 4, 2);
    check(is_six, 6, 184, 1, 4, 2);   /* a keep-alive */
    check(is_six, 7, 185, 0, 4, 2);   /* an ACK */
    check(is_six, 8, 485, 100, 5, 2); /* behind a gap */
    check(is_six, 9, 85, 600, 6, 2);  /* again, and new data */
    if (!is_six)
        check(is_six, 9, 85, 600, 6, 2); /* a copy of a mirror port has the same ID */
    repeats_take(&repeats, DLT_EN10MB, packet, make(is_six, 10, 5, 0, 2)); /* the ports again */
    check(is_six, 11, 6, 100, 7, 2);
}

static void test_cut_packets_are_passed_over(void) {
    repeats_open(&repeats);
    for (unsigned is_six = 0; is_six < 2; is_six++)
        for (size_t size = 0, whole = make(is_six, 2, 5, 100, 16); size < whole; size++)
            repeats_take(&repeats, DLT_EN10MB, packet, size);
    repeats_take(&repeats, DLT_PPI, packet, make(false, 2, 5, 100, 16));
    for (unsigned i = 0; i < REPEATS_FLOWS; i++)
        CHECK(!repeats.flows[i].key);
    memmove(packet + 20, packet + 18, 100); /* cooked, as of `any` */
    put_16(packet, 0x0800);
    repeats_take(&repeats, DLT_LINUX_SLL2, packet, 60);
    repeats_take(&repeats, DLT_LINUX_SLL2, packet, 60);
    CHECK_INT(repeats.segments, 0); /* with one ID: a copy */
    put_16(packet + 24, 3);
    repeats_take(&repeats, DLT_LINUX_SLL2, packet, 60);
    CHECK_INT(repeats.repeated, 1);
}

/* Whoever chose ports that share a place in one capture would miss it in the next. */
static void test_places_differ_between_captures(void) {
    size_t size = make(false, 2, 5, 100, 16);
    unsigned places[8], different = 0;
    for (unsigned i = 0; i < 8; i++) {
        repeats_open(&repeats);
        repeats_take(&repeats, DLT_EN10MB, packet, size);
        for (places[i] = 0; !repeats.flows[places[i]].key;)
            places[i]++;
        different += i && places[i] != places[0];
    }
    CHECK(different);
}

int main(void) {
    test_a_direction(false);
    test_a_direction(true);
    test_cut_packets_are_passed_over();
    test_places_differ_between_captures();
    return 0;
}
