/* SPDX-License-Identifier: Apache-2.0 */
/* Bins in an ascending array of indices from the first bin on the grid. Most packets fall into the
 * last bin (time_bins_at()) or into the next one; both cost O(1). An earlier packet is searched
 * from the end, because files step back by little.
 *
 * If the span would exceed BINS_MOST, or a bin finds no room, the width doubles: pairs of the grid,
 * even and odd, become one. Sums add up, extremes are compared, so the result is that of bins of
 * this width from the beginning. Without memory bins become coarser instead of being lost; only a
 * direction without any bin returns NULL.
 *
 * A small series becomes an array for each change but a next bin, and small again if it still can:
 * so all other changes are made in arrays only. */
#include "flow/time_bins.h"
#include "base/bytes.h"

#include <string.h>

_Static_assert(BINS_MOST <= UINT16_MAX, "count and room fit");

#define DOUBLINGS_MAX 43 /* 1 ms << 43: any int64 in ns is within 2 bins then */

/* Returns the number of the bin on the grid, rounded down also below 0, where all bits are
 * inverted before and after: a division by a constant and a shift. */
static inline int64_t bin_number(int64_t time_ns, uint8_t doublings) {
    uint64_t turn = (uint64_t)(time_ns >> 63);
    uint64_t least = (((uint64_t)time_ns ^ turn) / BIN_WIDTH_LEAST_NS) ^ turn;
    return (int64_t)least >> doublings;
}

int64_t time_bins_start_ns(const struct time_bins *series, uint32_t index) {
    return (series->first + index) * time_bins_width_ns(series);
}

static uint32_t least_of(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

/* BIN_BYTES_NONE is the greatest number, so that any known value is less. */
static uint32_t most_known(uint32_t a, uint32_t b) {
    if (a == BIN_BYTES_NONE)
        return b;
    return b != BIN_BYTES_NONE && b > a ? b : a;
}

static void add_bin(struct time_bin *sum, const struct time_bin *bin) {
    sum->packets += bin->packets;
    sum->wire_bytes += bin->wire_bytes;
    sum->ip_bytes += bin->ip_bytes;
    sum->payload_bytes += bin->payload_bytes;
    sum->unique_bytes += bin->unique_bytes;
    sum->retransmitted_bytes += bin->retransmitted_bytes;
    sum->lost += bin->lost;
    sum->rtt_us = least_of(sum->rtt_us, bin->rtt_us);
    sum->flight = most_known(sum->flight, bin->flight);
    sum->window = least_of(sum->window, bin->window);
}

/* Returns the index of a bin after the width doubled; `within` is the place of the first bin in
 * the wider one. */
static inline uint32_t doubled_index(const struct time_bin *bin, uint32_t within) {
    return (within + bin->index) >> 1;
}

/* Merges bins that fall into one, in place; those before the first pair only get new indexes. */
static NOINLINE void double_width(struct time_bins *series) {
    struct time_bin *bin = series->bins, *end = bin + series->count;
    uint32_t within = series->first & 1, index = UINT32_MAX;
    for (; bin < end && doubled_index(bin, within) != index; bin++)
        bin->index = index = doubled_index(bin, within);
    struct time_bin *last = bin - 1;
    for (; bin < end; bin++) {
        if (doubled_index(bin, within) == index) {
            add_bin(last, bin);
            continue;
        }
        index = doubled_index(bin, within);
        *++last = *bin;
        last->index = index;
    }
    series->count = (uint16_t)(last - series->bins + 1);
    series->first >>= 1;
    series->doublings++;
}

/* Returns the greatest number of bins of a direction with so many packets. */
static uint32_t bins_allowed(uint64_t packets) {
    uint64_t allowed = packets / PACKETS_A_BIN;
    return allowed < BINS_LEAST ? BINS_LEAST : allowed > BINS_MOST ? BINS_MOST : (uint32_t)allowed;
}

static NOINLINE bool move_first(struct time_bins *series, int64_t number) {
    int64_t shift = series->first - number;
    if (series->bins[series->count - 1].index + shift >= BINS_MOST)
        return false;
    for (uint32_t i = 0; i < series->count; i++)
        series->bins[i].index += (uint32_t)shift;
    series->first = number;
    return true;
}

/* Returns whether the span from the first bin to the one at `number` fits; an earlier bin becomes
 * the first. */
static inline bool spans(struct time_bins *series, int64_t number) {
    return number >= series->first ? number - series->first < BINS_MOST
                                   : move_first(series, number);
}

/* Returns the index in the array of the first bin that is not before `index`. */
static uint32_t place_of(const struct time_bins *series, uint32_t index) {
    uint32_t place = series->count;
    while (place && series->bins[place - 1].index >= index)
        place--;
    return place;
}

/* The list grows by half, because most flows are small and bins are most of their memory. */
static NOINLINE bool make_room(struct time_bins *series, uint64_t packets, struct pool *pool) {
    uint32_t allowed = bins_allowed(packets), room = series->room;
    uint32_t wanted = room + (room + 1) / 2;
    if (series->count >= allowed ||
        !pool_grow_to(pool, (void **)&series->bins, &room, sizeof *series->bins,
                      wanted < allowed ? wanted : allowed))
        return false;
    series->room = (uint16_t)room;
    return true;
}

static inline bool has_room(struct time_bins *series, uint64_t packets, struct pool *pool) {
    return series->count < series->room || make_room(series, packets, pool);
}

static inline struct time_bin empty_bin(uint32_t index) {
    return (struct time_bin){
        .index = index, .rtt_us = BIN_RTT_NONE, .flight = BIN_BYTES_NONE, .window = BIN_BYTES_NONE};
}

static inline struct time_bin *open_bin(struct time_bins *series, uint32_t place, uint32_t index) {
    struct time_bin *bin = &series->bins[place];
    if (place < series->count)
        memmove(bin + 1, bin, (series->count - place) * sizeof *bin);
    *bin = empty_bin(index);
    series->count++;
    return bin;
}

/* Each turn of the loop returns or doubles the width, so there are at most DOUBLINGS_MAX. */
static NOINLINE struct time_bin *find_or_open(struct time_bins *series, int64_t time_ns,
                                              uint64_t packets, struct pool *pool) {
    for (;;) {
        int64_t number = bin_number(time_ns, series->doublings);
        if (spans(series, number)) {
            uint32_t index = (uint32_t)(number - series->first);
            struct time_bin *newest = &series->bins[series->count - 1];
            if (newest->index == index)
                return newest;
            uint32_t place = place_of(series, index);
            if (place < series->count && series->bins[place].index == index)
                return &series->bins[place];
            if (has_room(series, packets, pool))
                return open_bin(series, place, index);
        }
        if (series->doublings == DOUBLINGS_MAX)
            return &series->bins[series->count - 1];
        double_width(series);
    }
}

/* --- small series ---------------------------------------------------------------------------- */

const struct time_bin *time_bins_list(const struct time_bins *series,
                                      struct time_bin small[BINS_SMALL_MOST]) {
    if (!series->small)
        return series->bins;
    const struct bin_pair *pair = series->pairs;
    uint32_t place = series->count - 1u;
    small[place] = *series->newest;
    while (place--) {
        small[place] = BIN_AS(struct time_bin, &pair->bins[place & 1]);
        if (!(place & 1))
            pair = pair->before;
    }
    return small;
}

static bool begin(struct time_bins *series, int64_t number, struct pool *pool) {
    struct time_bin *bin = pool_alloc(pool, sizeof *bin);
    if (!bin)
        return false;
    *bin = empty_bin(0);
    *series = (struct time_bins){.newest = bin, .first = number, .count = 1, .small = true};
    return true;
}

/* Adds a bin to the pairs, which hold `count` others. Returns false if it does not fit, or without
 * memory. */
static inline bool add_to_pairs(struct bin_pair **pairs, uint32_t count, const struct time_bin *bin,
                                struct pool *pool) {
    if (bin_extent(bin) > UINT16_MAX)
        return false;
    if (!(count & 1)) {
        struct bin_pair *pair = pool_alloc(pool, sizeof *pair);
        if (!pair)
            return false;
        pair->before = *pairs;
        *pairs = pair;
    }
    (*pairs)->bins[count & 1] = BIN_AS(struct small_bin, bin);
    return true;
}

static void free_pairs(struct bin_pair *pair, struct pool *pool) {
    while (pair) {
        struct bin_pair *before = pair->before;
        pool_free(pool, pair, sizeof *pair);
        pair = before;
    }
}

/* Makes the series small again if all bins, which are not in the pool, fit. `own` is the block of
 * its newest bin. */
static bool make_small(struct time_bins *series, struct time_bin *own, struct pool *pool) {
    struct bin_pair *pairs = NULL;
    uint32_t last = series->count - 1u, done = 0;
    while (done < last && add_to_pairs(&pairs, done, &series->bins[done], pool))
        done++;
    if (done < last || series->count > BINS_SMALL_MOST) {
        free_pairs(pairs, pool);
        return false;
    }
    *own = series->bins[last];
    series->newest = own;
    series->pairs = pairs;
    series->room = 0;
    return series->small = true;
}

/* Moves the bins into an array of the pool. Without memory for all of them, the width doubles until
 * they fit, or only one is left. */
static void make_array(struct time_bins *series, struct time_bin *own, struct pool *pool) {
    struct time_bin *array = NULL;
    while (series->count > 1 && !(array = pool_alloc(pool, series->count * sizeof *array)))
        double_width(series);
    if (array)
        pool_free(pool, own, sizeof *own);
    else
        array = own;
    memcpy(array, series->bins, series->count * sizeof *array);
    series->bins = array;
    series->room = series->count;
}

/* --- packets --------------------------------------------------------------------------------- */

/* Opens a bin after the last one, as most are, if it has room. */
static inline bool open_next(struct time_bins *series, int64_t index, struct pool *pool) {
    if (index <= series->newest->index || index >= BINS_MOST)
        return false;
    if (series->count < series->room) {
        series->newest = open_bin(series, series->count, (uint32_t)index);
        return true;
    }
    if (!series->small || series->count == BINS_SMALL_MOST ||
        !add_to_pairs(&series->pairs, series->count - 1u, series->newest, pool))
        return false;
    *series->newest = empty_bin((uint32_t)index);
    series->count++;
    return true;
}

/* Sets where the last bin starts and its width, for time_bins_at(). */
static inline void note_newest(struct time_bins *series) {
    int64_t width = time_bins_width_ns(series), end;
    int64_t number = series->first + series->newest->index;
    series->newest_span_ns = 0;
    if (!__builtin_mul_overflow(number, width, &series->newest_ns) &&
        !__builtin_add_overflow(series->newest_ns, width, &end))
        series->newest_span_ns = (uint64_t)width;
}

static struct time_bin *search_array(struct time_bins *series, int64_t time_ns, uint64_t packets,
                                     struct pool *pool) {
    struct time_bin *bin = find_or_open(series, time_ns, packets, pool);
    series->newest = &series->bins[series->count - 1];
    return bin;
}

/* The series is an array on the stack meanwhile, with room for a bin more. */
static NOINLINE struct time_bin *search_small(struct time_bins *series, int64_t time_ns,
                                              uint64_t packets, struct pool *pool) {
    struct time_bin bins[BINS_SMALL_MOST + 1], *own = series->newest;
    time_bins_list(series, bins);
    free_pairs(series->pairs, pool);
    series->bins = bins;
    series->room = BINS_SMALL_MOST + 1;
    series->small = false;
    if (search_array(series, time_ns, packets, pool) == series->newest &&
        make_small(series, own, pool))
        return own;
    make_array(series, own, pool);
    return search_array(series, time_ns, packets, pool);
}

struct time_bin *time_bins_search(struct time_bins *series, int64_t time_ns, uint64_t packets,
                                  struct pool *pool) {
    int64_t number = bin_number(time_ns, series->doublings);
    struct time_bin *bin;
    if (!series->count && !begin(series, number, pool))
        return NULL;
    if (number == series->first + series->newest->index ||
        open_next(series, number - series->first, pool))
        bin = series->newest;
    else
        bin = (series->small ? search_small : search_array)(series, time_ns, packets, pool);
    note_newest(series);
    return bin;
}

void time_bins_free(struct time_bins *series, struct pool *pool) {
    if (series->small) {
        free_pairs(series->pairs, pool);
        pool_free(pool, series->newest, sizeof *series->newest);
    } else {
        pool_release(pool, series->bins, series->room, sizeof *series->bins);
    }
    *series = (struct time_bins){0};
}
