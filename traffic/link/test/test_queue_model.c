/* SPDX-License-Identifier: Apache-2.0 */
/* RED and CoDel must drop exactly the packets that independent models drop, which were written from
 * the papers. */
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
            trial_send(trial, time, ++number % 5 ? 1500 : 300);
        }
        time += phase->silence_ns;
    }
    trial_run(trial, INT64_MAX / 2);
    CHECK_INT(trial->count, number);
    return trial;
}

static void check_drops(const struct trial *trial, enum fate fate, const uint32_t *expected,
                        const char *settings) {
    uint8_t dropped[TRIAL_MOST] = {0};
    for (uint32_t i = 0; i < trial->count; i++)
        dropped[trial->records[i].index] = trial->records[i].fate == fate;
    for (uint32_t number = 1; number <= trial->count; number++) {
        bool wanted = *expected == number;
        if (dropped[number] != wanted)
            fprintf(stderr, "%s: packet %u: %s\n", settings, number, fate_names[fate]);
        CHECK(dropped[number] == wanted);
        expected += wanted;
    }
    CHECK_INT(*expected, 0);
}

int main(void) {
    for (size_t i = 0; i < sizeof model_cases / sizeof *model_cases; i++) {
        const struct model_case *model = &model_cases[i];
        struct trial *trial = send_phases(model);
        check_drops(trial, FATE_CODEL, model->codel, model->settings);
        check_drops(trial, FATE_RED, model->red, model->settings);
        check_drops(trial, FATE_QUEUE, model->queue, model->settings);
        trial_free(trial);
    }
    return 0;
}
