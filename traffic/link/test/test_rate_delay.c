/* SPDX-License-Identifier: Apache-2.0 */
/* Rate, delay and queue: times are those of an ideal link, to the nanosecond. */
#include "test/link_trial.h"

static void check_lone_packet(void) {
    struct trial *trial = trial_new("rate=2Mbit delay=10ms queue=20", 1);
    trial_send(trial, 1 * MS, 1000);
    CHECK_INT(link_direction_next_ns(&trial->direction), 15 * MS); /* 4 ms to send, 10 to travel */
    trial_run(trial, 15 * MS - 1);
    CHECK_INT(trial->left_count, 0);
    trial_run(trial, 15 * MS);
    CHECK_INT(trial->left_count, 1);
    trial_free(trial);
}

static void check_late_waking_adds_nothing(void) {
    struct trial *trial = trial_new("rate=3Mbit delay=1ms queue=1000", 1);
    for (unsigned i = 0; i < 900; i++)
        trial_send(trial, 1, 1000);
    trial_run(trial, 7000 * MS); /* late by seconds */
    CHECK_INT(trial->left_count, 900);
    /* 900 packets of 8000 bits at 3 Mb/s: 2.4 s; the fractions of each 2666666.67 ns are kept */
    CHECK(llabs(trial->left_ns[899] - (1 + 2400 * MS + 1 * MS)) <= 1);
    trial_free(trial);
}

static void check_tail_drop(void) {
    struct trial *trial = trial_new("rate=1Mbit queue=20", 1);
    for (unsigned i = 0; i < 30; i++)
        trial_send(trial, 1 * MS, 1000);
    CHECK_INT(trial_fates(trial, FATE_QUEUE), 10); /* 19 wait, 1 is being sent */
    CHECK_INT(trial->records[0].index, 21);
    CHECK_INT(trial->records[0].queue_packets, 20);
    CHECK_INT(trial->records[0].queue_bytes, 20000);
    trial_send(trial, 9 * MS, 1000); /* one is out */
    CHECK_INT(trial_fates(trial, FATE_QUEUE), 10);
    trial_free(trial);
}

static void check_queue_in_bytes(void) {
    struct trial *trial = trial_new("rate=1Mbit queue=10000B overhead=38", 1);
    for (unsigned i = 0; i < 30; i++)
        trial_send(trial, 1 * MS, 962);
    CHECK_INT(trial_fates(trial, FATE_QUEUE), 20);
    trial_free(trial);
}

/* The study's narrow link: 2352 packets of 1000 bytes at 1.9 Mb/s into 1 Mb/s and a queue of 20. */
static void check_study(void) {
    struct trial *trial = trial_new("rate=1Mbit delay=10ms queue=20", 1);
    for (int64_t i = 0; i < 2352; i++)
        trial_send(trial, 100 * MS + i * 80000000 / 19, 1000);
    trial_run(trial, 20000 * MS);
    CHECK_INT(trial->left_count, 1257);
    CHECK_INT(trial_fates(trial, FATE_QUEUE), 2352 - 1257);
    trial_free(trial);
}

static void check_jitter_keeps_order(void) {
    struct trial *trial = trial_new("delay=20ms jitter=10ms", 5);
    for (int64_t i = 0; i < 5000; i++)
        trial_send(trial, i * MS, 100);
    trial_run(trial, 10000 * MS);
    int64_t least = INT64_MAX, most = 0;
    for (uint32_t i = 0; i < 5000; i++) {
        CHECK_INT(trial->left[i], i + 1);
        int64_t took = trial->left_ns[i] - i * MS;
        least = took < least ? took : least;
        most = took > most ? took : most;
    }
    CHECK(least >= 10 * MS && least < 15 * MS);
    CHECK(most <= 30 * MS && most > 28 * MS);
    trial_free(trial);
}

static void check_jitter_reorders_if_set(void) {
    struct trial *trial =
        trial_new("delay=20ms jitter=10ms distribution=normal jitter-reorders=yes", 5);
    for (int64_t i = 0; i < 5000; i++)
        trial_send(trial, i * MS, 100);
    trial_run(trial, 10000 * MS);
    unsigned late = 0;
    for (uint32_t i = 1; i < 5000; i++)
        late += trial->left[i] < trial->left[i - 1];
    CHECK(late > 1000);
    CHECK_INT(trial->left_count, 5000);
    trial_free(trial);
}

static void check_exponential_jitter(void) {
    struct trial *trial =
        trial_new("delay=1ms jitter=10ms distribution=exponential jitter-reorders=yes", 9);
    double sum = 0;
    for (int64_t i = 0; i < 10000; i++)
        trial_send(trial, i * MS, 100);
    trial_run(trial, 100000 * MS);
    for (uint32_t i = 0; i < 10000; i++)
        sum += (double)(trial->left_ns[i] - (int64_t)(trial->left[i] - 1) * MS - 1 * MS) / MS;
    CHECK(sum / 10000 > 9.6 && sum / 10000 < 10.4);
    trial_free(trial);
}

static void check_stall(void) {
    struct trial *trial = trial_new("rate=8Mbit stall=10ms-50ms queue=5", 1);
    trial_send(trial, 100 * MS, 1000);
    for (int64_t i = 1; i < 30; i++)
        trial_send(trial, (100 + i) * MS, 1000);
    trial_run(trial, 1000 * MS);
    for (uint32_t i = 0; i < trial->left_count; i++)
        CHECK(trial->left_ns[i] <= 111 * MS || trial->left_ns[i] >= 151 * MS);
    CHECK(trial_fates(trial, FATE_QUEUE) > 10);
    trial_free(trial);
}

/* 8 Mb/s, after 10 ms 0.8 Mb/s, after 30 ms 4 Mb/s: packets of 1000 bytes take 1, 10 and 2 ms. One
 * that is being sent when the rate changes continues at the new rate. */
static void check_scheduled_rate(void) {
    struct trial *trial = trial_new("rate=8Mbit queue=100 "
                                    "schedule=9.5ms:rate=800kbit,29.5ms:rate=4Mbit",
                                    1);
    for (unsigned i = 0; i < 20; i++)
        trial_send(trial, 100 * MS, 1000);
    trial_run(trial, 1000 * MS);
    CHECK_INT(trial->left_count, 20);
    for (int64_t i = 0; i < 9; i++)
        CHECK_INT(trial->left_ns[i], (101 + i) * MS);
    CHECK_INT(trial->left_ns[9], 114500000); /* half at 8 Mb/s, half at 0.8 */
    CHECK_INT(trial->left_ns[10], 124500000);
    CHECK_INT(trial->left_ns[11], 130500000); /* 5 of 10 ms, the other half at 4 Mb/s */
    for (int64_t i = 12; i < 20; i++)
        CHECK_INT(trial->left_ns[i], 130500000 + (i - 11) * 2 * MS);
    trial_free(trial);
}

/* A step changes what it names; a packet keeps its order when the delay falls. */
static void check_scheduled_delay_and_loss(void) {
    struct trial *trial =
        trial_new("delay=5ms schedule=100ms:delay=50ms,200ms:loss=100%,300ms:delay=1ms:loss=0", 1);
    for (int64_t i = 0; i < 400; i++)
        trial_send(trial, i * MS + 1, 100);
    trial_run(trial, 1000 * MS);
    CHECK_INT(trial_fates(trial, FATE_RANDOM), 100);
    CHECK_INT(trial->left_count, 300);
    for (uint32_t i = 0; i < 300; i++) {
        int64_t index = (int64_t)trial->left[i] - 1, took = trial->left_ns[i] - index * MS - 1;
        CHECK(index < 200 || index >= 300);
        CHECK_INT(took, (index < 100 ? 5 : index < 200 ? 50 : 1) * MS);
    }
    trial_free(trial);
}

static void check_schedule_keeps_order(void) {
    struct trial *trial = trial_new("delay=50ms schedule=10ms:delay=1ms", 1);
    for (int64_t i = 0; i < 100; i++)
        trial_send(trial, i * MS + 1, 100);
    trial_run(trial, 1000 * MS);
    for (uint32_t i = 0; i < 100; i++)
        CHECK_INT(trial->left[i], i + 1);
    CHECK_INT(trial->left_ns[20], 59 * MS + 1);
    trial_free(trial);
}

int main(void) {
    check_scheduled_rate();
    check_scheduled_delay_and_loss();
    check_schedule_keeps_order();
    check_lone_packet();
    check_late_waking_adds_nothing();
    check_tail_drop();
    check_queue_in_bytes();
    check_study();
    check_jitter_keeps_order();
    check_jitter_reorders_if_set();
    check_exponential_jitter();
    check_stall();
    return 0;
}
