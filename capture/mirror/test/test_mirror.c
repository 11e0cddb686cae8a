/* SPDX-License-Identifier: Apache-2.0 */
/* Known conversations, as a good mirror port and as faulty ones would deliver them. */
#include <string.h>

#include "common/clock.h"
#include "common/test/check.h"
#include "mirror/mirror.h"

enum { SYN = 2, ACK = 16, DOWN = 1, UP = 2, BOTH = 3 };

static const uint8_t own[6] = {2, 0, 0, 0, 0, 9};
static struct mirror mirror;
static struct mirror_counts before;
static int64_t now_ns;
static uint16_t next_id;

/* One segment of connection `number`, client to server or back; `tag` adds a VLAN tag. */
static void put(unsigned number, bool is_back, uint8_t flags, bool tag, unsigned times) {
    uint8_t frame[64] = {2, 0, 0, 0, 0, is_back ? 1 : 2, 2, 0, 0, 0, 0, is_back ? 2 : 1};
    uint8_t *at = frame + 12;
    if (tag) {
        memcpy(at, (uint8_t[]){0x81, 0, 0, 10}, 4);
        at += 4;
    }
    memcpy(at, (uint8_t[]){8, 0, 0x45, 0, 0, 40}, 6);
    uint8_t *ip = at + 2, *tcp = ip + 20;
    ip[4] = (uint8_t)(++next_id >> 8);
    ip[5] = (uint8_t)next_id;
    ip[9] = 6;
    memcpy(ip + 12, (uint8_t[]){10, 0, 0, is_back ? 2 : 1, 10, 0, 0, is_back ? 1 : 2}, 8);
    uint8_t client[2] = {(uint8_t)(0xc0 | number >> 8), (uint8_t)number}, server[2] = {1, 187};
    memcpy(tcp, is_back ? server : client, 2);
    memcpy(tcp + 2, is_back ? client : server, 2);
    tcp[12] = 0x50;
    tcp[13] = flags;
    while (times--)
        mirror_take(&mirror, frame, 60, now_ns += 1000, own);
}

static void settle(void) {
    mirror_settle(&mirror);
    mirror_settle(&mirror);
}

/* Connections of a handshake and two more segments, of which these directions are mirrored. */
static enum mirror_fault after(unsigned count, unsigned seen, unsigned tagged, unsigned times) {
    static unsigned first;
    before = mirror_counts_of(&mirror);
    for (unsigned i = first; i < first + count; i++) {
        static const struct {
            bool is_back;
            uint8_t flags;
        } talk[] = {{false, SYN}, {true, SYN | ACK}, {false, ACK}, {false, ACK}, {true, ACK}};
        for (unsigned n = 0; n < sizeof talk / sizeof *talk; n++)
            if (seen & (talk[n].is_back ? UP : DOWN))
                put(i, talk[n].is_back, talk[n].flags, tagged & (talk[n].is_back ? UP : DOWN),
                    times);
    }
    first += count;
    settle();
    struct mirror_counts counts = mirror_counts_of(&mirror);
    return mirror_judge(&before, &counts);
}

/* Whoever chose ports that share a place in one capture would miss it in the next. */
static void test_places_differ_between_captures(void) {
    unsigned places[8], different = 0;
    for (unsigned i = 0; i < 8; i++) {
        mirror_open(&mirror);
        put(1, false, SYN, false, 1);
        for (places[i] = 0; !mirror.flows[places[i]].key;)
            places[i]++;
        different += i && places[i] != places[0];
    }
    CHECK(different);
}

int main(void) {
    test_places_differ_between_captures();
    mirror_open(&mirror);
    CHECK_INT(mirror_judge(&before, &before), MIRROR_SILENT);
    uint8_t broadcast[60] = {255, 255, 255, 255, 255, 255, 2};
    mirror_take(&mirror, broadcast, sizeof broadcast, 1, own);
    CHECK_INT(after(0, BOTH, 0, 1), MIRROR_OWN);
    CHECK_INT(after(3, BOTH, 0, 1), MIRROR_UNKNOWN);
    CHECK_INT(after(40, BOTH, 0, 1), MIRROR_GOOD);
    CHECK_INT(after(40, BOTH, BOTH, 1), MIRROR_GOOD);
    CHECK_INT(after(40, DOWN, 0, 1), MIRROR_ONE_DIRECTION);
    CHECK_INT(after(40, UP, 0, 1), MIRROR_ONE_DIRECTION);
    CHECK_INT(after(40, BOTH, DOWN, 1), MIRROR_TAGS);
    CHECK_INT(after(40, BOTH, 0, 2), MIRROR_COPIES);
    CHECK_INT(after(40, BOTH, 0, 1), MIRROR_GOOD);
    /* The second port of a tap is read a moment after the first; later than that is another fault.
     */
    for (unsigned rounds = 1; rounds <= 2; rounds++) {
        before = mirror_counts_of(&mirror);
        for (unsigned i = 0; i < 40; i++)
            for (unsigned n = 0; n < 3; n++)
                put(3000 + 40 * rounds + i, false, n ? ACK : SYN, false, 1);
        for (unsigned n = 0; n < rounds; n++)
            mirror_settle(&mirror);
        for (unsigned i = 0; i < 40; i++)
            for (unsigned n = 0; n < 2; n++)
                put(3000 + 40 * rounds + i, true, n ? ACK : SYN | ACK, false, 1);
        settle();
        struct mirror_counts late = mirror_counts_of(&mirror);
        CHECK_INT(mirror_judge(&before, &late), rounds == 1 ? MIRROR_GOOD : MIRROR_ONE_DIRECTION);
    }
    /* SYNs that nobody answers, repeated, are no sign. */
    before = mirror_counts_of(&mirror);
    for (unsigned i = 0; i < 60; i++)
        put(1000 + i / 3, false, SYN, false, 1);
    settle();
    struct mirror_counts counts = mirror_counts_of(&mirror);
    CHECK_INT(mirror_judge(&before, &counts), MIRROR_UNKNOWN);
    /* Long connections whose beginnings were before: with few acknowledgments, and with none. */
    before = counts;
    for (unsigned i = 0; i < 8 * 512; i++)
        put(2000 + i % 8, i / 8 % 100 == 99, ACK, false, 1);
    settle();
    counts = mirror_counts_of(&mirror);
    CHECK_INT(mirror_judge(&before, &counts), MIRROR_GOOD);
    before = counts;
    for (unsigned i = 0; i < 8 * 512; i++)
        put(2000 + i % 8, false, ACK, false, 1);
    settle();
    counts = mirror_counts_of(&mirror);
    CHECK_INT(mirror_judge(&before, &counts), MIRROR_ONE_DIRECTION);
    return 0;
}
