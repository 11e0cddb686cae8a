/* SPDX-License-Identifier: Apache-2.0 */
/* What a file tells of an interface. One is made each time that a device has been opened as
 * something new; its place in the list is the interface number in the packets. The list only grows,
 * so that readers need no lock. */
#ifndef WIRETALE_DESCRIPTION_H
#define WIRETALE_DESCRIPTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "counts.h"

#define DESCRIPTIONS_MAX 256

struct description {
    uint32_t device;
    char name[64];
    char text[128];     /* the adapter's own name for itself */
    char hardware[96];  /* driver, firmware, bus */
    char comment[512];  /* time source, offloads */
    char *filter;       /* NULL for none */
    uint32_t link_type; /* LINKTYPE_, as in files */
    uint32_t snaplen;
    uint64_t speed_bps; /* 0: not known */
    uint8_t mac[6];
    bool has_mac;
    struct interface_counts counts; /* of packets that came under this description */
};

struct description_list {
    struct description *items[DESCRIPTIONS_MAX];
    _Atomic uint32_t count;
};

/* The number of an equal one, or of a copy that is added; -1 when the list is full. */
int description_add(struct description_list *list, const struct description *description);
/* All that was counted of a device, under each of its descriptions. */
struct counts description_counts(const struct description_list *list, uint32_t device);
void description_list_free(struct description_list *list);

#endif
