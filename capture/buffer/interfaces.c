/* SPDX-License-Identifier: Apache-2.0 */
/* A description is compared field by field, because a device is opened again each time that its
 * interface returns, mostly unchanged. Only the addition takes a lock: an item never changes or
 * moves once `count` includes it. */
#include "buffer/interfaces.h"

#include <pthread.h>
#include <string.h>

/* Reads packets that left before packets that came, so that `queued` cannot become negative. */
struct counts counts_of(const struct interface_counts *of) {
    struct counts now = {.written = counter_get(&of->written),
                         .dropped_disk =
                             counter_get(&of->dropped_disk) + counter_get(&of->dropped_held),
                         .dropped_queue = counter_get(&of->dropped_queue),
                         .dropped_kernel = counter_get(&of->dropped_kernel),
                         .dropped_interface = counter_get(&of->dropped_interface),
                         .received_bytes = counter_get(&of->received_bytes),
                         .kernel_received = counter_get(&of->kernel_received)};
    atomic_thread_fence(memory_order_acquire);
    now.received = counter_get(&of->received);
    uint64_t left = now.written + now.dropped_disk + now.dropped_queue;
    now.queued = now.received > left ? now.received - left : 0;
    return now;
}

void counts_add(struct counts *sum, const struct counts *more) {
    for (size_t i = 0; i < sizeof *sum / sizeof(uint64_t); i++)
        ((uint64_t *)sum)[i] += ((const uint64_t *)more)[i];
}

void counts_subtract(struct counts *from, const struct counts *less) {
    for (size_t i = 0; i < sizeof *from / sizeof(uint64_t); i++)
        ((uint64_t *)from)[i] -= ((const uint64_t *)less)[i];
}

static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

/* Texts that only describe the adapter, such as its driver, are not compared; the filter is the
 * same for all. */
static bool is_same(const struct description *a, const struct description *b) {
    return a->device == b->device && a->link_type == b->link_type && a->snaplen == b->snaplen &&
           a->speed_bps == b->speed_bps && a->has_mac == b->has_mac &&
           !memcmp(a->mac, b->mac, sizeof a->mac) && !strcmp(a->name, b->name) &&
           !strcmp(a->comment, b->comment) && !strcmp(a->facts, b->facts);
}

/* A linear search suffices, because descriptions are only added if an interface is opened. */
int description_add(struct description_list *list, const struct description *description) {
    uint32_t number = 0;
    pthread_mutex_lock(&adding);
    while (number < list->count && !is_same(&list->items[number], description))
        number++;
    if (number == list->count && number < DESCRIPTIONS_MAX) {
        list->items[number] = *description;
        atomic_store(&list->count, number + 1);
    }
    pthread_mutex_unlock(&adding);
    return number < DESCRIPTIONS_MAX ? (int)number : -1;
}

struct counts description_counts(const struct description_list *list, uint32_t device) {
    struct counts sum = {0};
    for (uint32_t i = 0, count = atomic_load(&list->count); i < count; i++) {
        if (list->items[i].device != device)
            continue;
        struct counts one = counts_of(&list->items[i].counts);
        counts_add(&sum, &one);
    }
    return sum;
}
