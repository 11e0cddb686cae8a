/* SPDX-License-Identifier: Apache-2.0 */
/* The disciplines must drop and mark exactly the packets that independent models do, which were
 * written from the papers. */
#include "test/link_trial.h"
#include "test/queue_model.h"

#define SEED 9

static struct trial *send_phases(const struct model_case *model) {
    struct trial *trial = trial_new(model->settings, SEED);
    int64_t time = 1000 * MS;
    uint32_t number = 0;
    for (size_t i = 0; i < sizeof model_phases / sizeof *model_phases; i++) {
        const struct model_phase *phase = &model_phases[i];
        for (uint32_t k = 0; k < phase->packets; k++) {
            time += phase->gap_ns * model->slower;
            uint16_t flow = ++number % 7 ? 1 + number % 2 : 3;
            trial_send_flow(trial, time, number % 5 ? 1500 : 300, flow, number % 4 ? 2 : 0);
        }
        time += phase->silence_ns;
    }
    trial_run(trial, INT64_MAX / 2);
    CHECK_INT(trial->count, number);
    return trial;
}

static uint64_t fnv_1a(const char *text) {
    uint64_t digest = UINT64_C(0xcbf29ce484222325);
    while (*text)
        digest = (digest ^ (uint8_t)*text++) * UINT64_C(0x100000001b3);
    return digest;
}

/* If a drop differs, it prints all drops, which `python tests/support/models/queue_model.py` prints
 * too.
 */
static void check_drops(const struct trial *trial, const struct model_case *model) {
    const char *fates[TRIAL_MOST] = {NULL};
    for (uint32_t i = 0; i < trial->count; i++) {
        const struct truth_record *truth = &trial->records[i];
        if (truth->fate != FATE_DELIVERED || truth->marked)
            fates[truth->index] = truth->marked ? "marked" : fate_names[truth->fate];
    }
    uint32_t drops = 0;
    char *lines = calloc(trial->count, 32), *end = lines;
    CHECK(lines);
    for (uint32_t number = 1; number <= trial->count; number++) {
        if (fates[number]) {
            end += sprintf(end, "%u %s\n", number, fates[number]);
            drops++;
        }
    }
    uint64_t digest = fnv_1a(lines);
    if (drops != model->drops || digest != model->digest)
        fprintf(stderr, "%s\n%s", model->settings, lines);
    CHECK_INT(drops, model->drops);
    CHECK(digest == model->digest);
    free(lines);
}

int main(void) {
    for (size_t i = 0; i < sizeof model_cases / sizeof *model_cases; i++) {
        struct trial *trial = send_phases(&model_cases[i]);
        check_drops(trial, &model_cases[i]);
        trial_free(trial);
    }
    return 0;
}
