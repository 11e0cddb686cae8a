/* SPDX-License-Identifier: Apache-2.0 */
#include "loss_model.h"

#include "random_draw.h"

void loss_model_init(struct loss_model *model, const struct link_spec *spec, uint64_t seed) {
    *model = (struct loss_model){.spec = spec, .seed = seed};
}

const struct time_span *span_list_find(const struct span_list *list, int64_t since_ns) {
    for (uint32_t i = 0; i < list->count; i++)
        if (since_ns >= list->spans[i].start_ns && since_ns < list->spans[i].end_ns)
            return &list->spans[i];
    return NULL;
}

static bool drawn(const struct loss_model *model, enum draw_purpose purpose, uint64_t index,
                  double share) {
    return share > 0 && random_share(model->seed, purpose, index) < share;
}

static bool is_listed(struct loss_model *model, uint64_t index) {
    const struct link_spec *spec = model->spec;
    while (model->range < spec->listed_count && spec->listed[model->range].last < index)
        model->range++;
    return model->range < spec->listed_count && spec->listed[model->range].first <= index;
}

/* Gilbert-Elliott: the state moves with every packet, then decides (Elliott 1963). */
static bool gilbert_loses(struct loss_model *model, uint64_t index) {
    const struct link_spec *spec = model->spec;
    if (spec->gilbert_to_bad <= 0)
        return false;
    double change = model->gilbert_bad ? spec->gilbert_to_good : spec->gilbert_to_bad;
    model->gilbert_bad ^= drawn(model, DRAW_GILBERT_STATE, index, change);
    double loss = model->gilbert_bad ? spec->gilbert_loss_bad : spec->gilbert_loss_good;
    return drawn(model, DRAW_GILBERT_LOSS, index, loss);
}

static bool span_loses(const struct loss_model *model, const struct span_list *list, uint64_t index,
                       int64_t since_ns) {
    const struct time_span *span = span_list_find(list, since_ns);
    return span && drawn(model, DRAW_SPAN, index, span->share);
}

enum fate loss_model_judge(struct loss_model *model, uint64_t index, int64_t since_ns) {
    const struct link_spec *spec = model->spec;
    bool gilbert = gilbert_loses(model, index); /* its state goes on whatever else happens */
    if (is_listed(model, index))
        return FATE_LISTED;
    if (span_list_find(&spec->outages, since_ns))
        return FATE_OUTAGE;
    if (span_loses(model, &spec->lost_spans, index, since_ns))
        return FATE_SPAN;
    if (spec->periodic && index % spec->periodic == 0)
        return FATE_PERIODIC;
    if (gilbert)
        return FATE_GILBERT;
    return drawn(model, DRAW_LOSS, index, spec->loss) ? FATE_RANDOM : FATE_DELIVERED;
}
