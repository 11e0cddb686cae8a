/* SPDX-License-Identifier: Apache-2.0 */
/* What all flows together may take beyond their fixed part: the bound of every growing list. */
#ifndef WIRETALE_ALLOWANCE_H
#define WIRETALE_ALLOWANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct allowance {
    size_t used, most; /* bytes */
};

/* Doubles a list from `*room` elements (from `first` when it has none) up to `most_room`. Returns
 * false, with the list as it was, when it may not or cannot grow. */
static inline bool allowance_grow(struct allowance *allowance, void **list, uint32_t *room,
                                  size_t element, uint32_t first, uint32_t most_room) {
    uint32_t wanted = *room ? *room * 2 : first;
    if (wanted > most_room)
        wanted = most_room;
    size_t more = (size_t)(wanted - *room) * element;
    if (wanted <= *room || more > allowance->most - allowance->used)
        return false;
    void *grown = realloc(*list, wanted * element);
    if (!grown)
        return false;
    *list = grown;
    *room = wanted;
    allowance->used += more;
    return true;
}

static inline void allowance_release(struct allowance *allowance, void *list, size_t room,
                                     size_t element) {
    free(list);
    allowance->used -= room * element;
}

#endif
