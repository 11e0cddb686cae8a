/* SPDX-License-Identifier: Apache-2.0 */
/* The purposes of RED and CoDel: short queues, without loss in bursts. */
#include "test/link_trial.h"

/* RFC 8289, 3: a standing queue falls to the target within seconds; a burst passes without loss. */
static void check_codel_ends_a_standing_queue(void) {
    struct trial *trial = trial_new("rate=10Mbit discipline=codel queue=10000", 1);
    int64_t late = 0;
    for (int64_t i = 0; i < 8000; i++) /* 10 % more than the link carries */
        trial_send(trial, 1 + i * 1090909, 1500);
    trial_run(trial, 100000 * MS);
    CHECK(trial_fates(trial, FATE_CODEL) > 300);
    for (uint32_t i = 0; i < trial->count; i++)
        if (trial->records[i].fate == FATE_DELIVERED && trial->records[i].index > 7000) {
            int64_t waited = trial->records[i].out_ns - trial->records[i].in_ns;
            late = waited > late ? waited : late;
        }
    CHECK(late < 60 * MS); /* with tail drop it would be seconds */
    trial_free(trial);
}

static void check_codel_lets_a_burst_through(void) {
    struct trial *trial = trial_new("rate=10Mbit discipline=codel queue=1000", 1);
    for (unsigned i = 0; i < 70; i++)
        trial_send(trial, 1, 1500); /* 84 ms of queue, which drain within the interval */
    for (int64_t i = 0; i < 500; i++)
        trial_send(trial, 200 * MS + i * 2 * MS, 1500);
    trial_run(trial, 100000 * MS);
    CHECK_INT(trial_fates(trial, FATE_CODEL), 0);
    CHECK_INT(trial->left_count, 570);
    trial_free(trial);
}

static void check_red_drops_before_it_is_full(void) {
    struct trial *trial = trial_new("rate=10Mbit discipline=red queue=300 red-weight=0.02", 4);
    uint32_t most = 0;
    for (int64_t i = 0; i < 6000; i++)
        trial_send(trial, 1 + i * 1142857, 1500); /* 5 % too much */
    trial_run(trial, 100000 * MS);
    uint64_t early = trial_fates(trial, FATE_RED);
    CHECK_INT(trial_fates(trial, FATE_QUEUE), 0);
    CHECK(early > 150 && early < 450);
    for (uint32_t i = 0; i < trial->count; i++)
        if (trial->records[i].queue_packets > most)
            most = trial->records[i].queue_packets;
    CHECK(most < 200); /* the upper threshold is 150 */
    trial_free(trial);
}

static void check_red_leaves_an_idle_link_alone(void) {
    struct trial *trial = trial_new("rate=10Mbit discipline=red queue=50", 4);
    for (int64_t i = 0; i < 3000; i++)
        trial_send(trial, 1 + i * 2 * MS, 1500);
    trial_run(trial, 100000 * MS);
    CHECK_INT(trial_fates(trial, FATE_RED), 0);
    trial_free(trial);
}

int main(void) {
    check_codel_ends_a_standing_queue();
    check_codel_lets_a_burst_through();
    check_red_drops_before_it_is_full();
    check_red_leaves_an_idle_link_alone();
    return 0;
}
