/* SPDX-License-Identifier: Apache-2.0 */
/* Gaps against a map of one flag a byte, through random fills. */
#include "base/range_set.h"

#include <string.h>

#include "common/test/check.h"

#define SPAN 4000

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t bound) {
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % bound;
}

static int64_t missing(const uint8_t *seen, int64_t start, int64_t end) {
    int64_t bytes = 0;
    for (int64_t i = start; i < end; i++)
        bytes += !seen[i];
    return bytes;
}

static void check_random_fills(void) {
    struct pool pool = {.own.most = 1 << 20};
    struct range_set list = {0};
    uint8_t seen[SPAN];
    int64_t highest = 0, given_up = 0;
    memset(seen, 0, sizeof seen);
    for (unsigned i = 0; i < 2000; i++) {
        int64_t start = random_below(SPAN - 100), end = start + 1 + random_below(100);
        if (start > highest)
            CHECK_INT(range_set_open(&list, (struct gap){.start = highest, .end = start}, &pool),
                      0);
        int64_t old_end = end < highest ? end : highest;
        if (start < highest) {
            int64_t expected = missing(seen, start, old_end);
            struct gap_fill fill = range_set_fill(&list, start, old_end, &pool, &given_up);
            CHECK_INT(fill.bytes, expected);
            CHECK_INT(given_up, 0);
        }
        memset(seen + start, 1, (size_t)(end - start));
        highest = end > highest ? end : highest;
        CHECK_INT(range_set_bytes(&list), missing(seen, 0, highest));
    }
    range_set_free(&list, &pool);
    CHECK_INT(pool.own.used, 0);
}

static void check_bound(void) {
    struct pool pool = {.own.most = 1 << 20};
    struct range_set list = {0};
    int64_t given_up = 0;
    for (int64_t i = 0; i < 2 * GAPS_MOST; i++)
        given_up += range_set_open(&list, (struct gap){.start = 10 * i, .end = 10 * i + 5}, &pool);
    CHECK(list.count <= GAPS_MOST);
    CHECK_INT(range_set_bytes(&list) + given_up, 5 * 2 * GAPS_MOST);
    range_set_free(&list, &pool);
}

/* Gaps of a list with little memory ascend and hold no byte that was seen, in whatever order they
 * open, close and split. The pool has room for 32 of them while 16 are moved. */
static void check_bounded_fills(void) {
    struct pool pool = {.own.most = 48 * sizeof(struct gap)};
    struct range_set list = {0};
    static uint8_t seen[50 * SPAN];
    int64_t highest = 0, given_up = 0;
    for (unsigned i = 0; i < 20000; i++) {
        bool above = random_below(2) || highest < 100;
        int64_t start = highest + 1 + random_below(9);
        if (!above) {
            start = highest - 1 - random_below(i % 3 ? 99 : 20);
            if (!(i % 5) && list.count)
                start = list.gaps[0].start;
        }
        int64_t end = start + 1 + random_below(6);
        if (above)
            given_up += range_set_open(&list, (struct gap){.start = highest, .end = start}, &pool);
        else if (end > highest)
            continue;
        else
            range_set_fill(&list, start, end, &pool, &given_up);
        memset(seen + start, 1, (size_t)(end - start));
        highest = end > highest ? end : highest;
        CHECK(list.head + list.count <= list.room && list.room <= 32);
        for (uint32_t at = 0; at < list.count; at++) {
            const struct gap *gap = &list.gaps[at];
            CHECK(gap->start < gap->end && (!at || list.gaps[at - 1].end < gap->start));
            CHECK_INT(missing(seen, gap->start, gap->end), gap->end - gap->start);
            CHECK_INT(range_set_first_above(&list, gap->start), at);
        }
    }
    CHECK(given_up > 0);
    range_set_free(&list, &pool);
    CHECK_INT(pool.own.used, 0);
}

/* A window of losses that the sender repairs in order moves few gaps. */
static void check_lowest_first(void) {
    struct pool pool = {.own.most = 1 << 20};
    struct range_set list = {0};
    int64_t given_up = 0;
    for (int64_t i = 0; i < GAPS_MOST; i++)
        CHECK_INT(range_set_open(&list, (struct gap){.start = 10 * i, .end = 10 * i + 5}, &pool),
                  0);
    for (int64_t i = 0; i < 3 * GAPS_MOST; i++) {
        int64_t above = 10 * (i + GAPS_MOST);
        CHECK_INT(range_set_fill(&list, 10 * i, 10 * i + 5, &pool, &given_up).closed, 1);
        CHECK_INT(range_set_open(&list, (struct gap){.start = above, .end = above + 5}, &pool), 0);
    }
    CHECK_INT(given_up, 0);
    CHECK_INT(range_set_bytes(&list), 5 * GAPS_MOST);
    range_set_free(&list, &pool);
}

/* Without memory to grow, the gaps move down at most once in an eighth of their number. */
static void check_moves_without_memory(void) {
    struct pool pool = {.own.most = 3 * 256 * sizeof(struct gap)}; /* 512 while 256 are moved */
    struct range_set list = {0};
    int64_t above = 0, given_up = 0, opened = 0;
    unsigned moves = 0;
    for (unsigned i = 0; i < 8192; i++, above += 10) {
        uint32_t before = list.count;
        given_up += range_set_open(&list, (struct gap){.start = above, .end = above + 5}, &pool);
        opened += 5;
        moves += list.count < before; /* an eighth is dropped before a move */
        CHECK_INT(range_set_bytes(&list), opened - given_up);
        CHECK(i < 512 || list.count >= 512 - 512 / 8);
        if (i % 3) /* a middle part arrives: no gap is lost while entries are unused */
            continue;
        uint32_t at = i % 2 ? list.count - 1u : list.count / 4u, unused = list.head;
        int64_t lost = 0, start = list.gaps[at].start;
        if (list.gaps[at].end - start == 5) {
            opened -= range_set_fill(&list, start + 2, start + 3, &pool, &lost).bytes;
            CHECK(!lost || !unused);
            given_up += lost;
        }
    }
    CHECK_INT(list.room, 512);
    CHECK(moves > 0 && moves <= 8192 * 4 / 3 / (512 / 8) + 1);
    range_set_free(&list, &pool);
    CHECK_INT(pool.own.used, 0);
}

static void check_acknowledged_gaps(void) {
    struct pool pool = {.own.most = 1 << 20};
    struct range_set list = {0};
    int64_t given_up = 0;
    range_set_open(&list, (struct gap){.start = 100, .end = 200, .opener_frame = 7}, &pool);
    range_set_open(&list, (struct gap){.start = 300, .end = 400, .opener_frame = 8}, &pool);
    CHECK_INT(range_set_acknowledge(&list, 350, 9, &pool), 150);
    CHECK_INT(range_set_acknowledge(&list, 350, 9, &pool), 0);
    CHECK_INT(range_set_bytes(&list), 50);
    struct gap_fill fill = range_set_fill(&list, 150, 360, &pool, &given_up);
    CHECK_INT(fill.bytes, 50 + 60);
    CHECK_INT(fill.acked_bytes, 50 + 50);
    CHECK_INT(fill.gap.opener_frame, 7);
    range_set_free(&list, &pool);
}

static void check_no_pool(void) {
    struct pool pool = {.own.most = 0};
    struct range_set list = {0};
    CHECK_INT(range_set_open(&list, (struct gap){.start = 0, .end = 10, .opener_frame = 0}, &pool),
              10);
    CHECK_INT(range_set_bytes(&list), 0);
    range_set_free(&list, &pool);
}

int main(void) {
    check_random_fills();
    check_bound();
    check_bounded_fills();
    check_lowest_first();
    check_moves_without_memory();
    check_acknowledged_gaps();
    check_no_pool();
    return 0;
}
