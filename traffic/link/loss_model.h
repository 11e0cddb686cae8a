/* SPDX-License-Identifier: Apache-2.0 */
/* Which packets the link loses on purpose: by number and chance, or by time where the user said a
 * time. */
#ifndef WIRETALE_LINK_LOSS_MODEL_H
#define WIRETALE_LINK_LOSS_MODEL_H

#include "link_spec.h"
#include "truth_record.h"

struct loss_model {
    const struct link_spec *spec;
    uint64_t seed;    /* of the direction */
    uint32_t range;   /* the first of spec->listed that is not over */
    bool gilbert_bad; /* state */
};

void loss_model_init(struct loss_model *model, const struct link_spec *spec, uint64_t seed);

/* FATE_DELIVERED, or why packet `index` is lost. To be asked once for each packet, in order;
 * `since_ns` is the time since the link's first packet. */
enum fate loss_model_judge(struct loss_model *model, uint64_t index, int64_t since_ns);

/* The span that holds the time, or NULL. */
const struct time_span *span_list_find(const struct span_list *list, int64_t since_ns);

#endif
