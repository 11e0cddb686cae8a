/* SPDX-License-Identifier: Apache-2.0 */
/* The purposes of the disciplines: short queues, without loss in bursts; equal shares; marks in
 * place of drops. */
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

/* A second after an overload the average is low again, wherever the rate comes from. */
static void check_red_forgets(const char *settings) {
    struct trial *trial = trial_new(settings, 1);
    int64_t at = MS;
    for (int i = 0; i < 3000; i++, at += 8 * MS)
        trial_send(trial, at, 1250);
    CHECK(trial_fates(trial, FATE_RED) > 0 && trial->direction.queue.red.average > 5);
    for (int i = 0; i < 20; i++, at += 1000 * MS)
        trial_send(trial, at + 60000 * MS, 1250);
    CHECK(trial->direction.queue.red.average < 1);
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

/* RFC 8033, 3: the delay of a standing queue stays near its target, 15 ms. */
static void check_pie_holds_the_target(void) {
    struct trial *trial = trial_new("rate=10Mbit discipline=pie queue=10000", 1);
    double sum = 0;
    unsigned late = 0;
    for (int64_t i = 0; i < 18000; i++) /* 10 % more than the link carries, for 20 s */
        trial_send(trial, 1 + i * 1090909, 1500);
    trial_run(trial, 100000 * MS);
    CHECK(trial_fates(trial, FATE_PIE) > 1000 && trial_fates(trial, FATE_QUEUE) == 0);
    for (uint32_t i = 0; i < trial->count; i++)
        if (trial->records[i].fate == FATE_DELIVERED && trial->records[i].index > 9000) {
            sum += (double)(trial->records[i].out_ns - trial->records[i].in_ns) / MS;
            late++;
        }
    CHECK(sum / late > 10 && sum / late < 22);
    trial_free(trial);
}

static void check_pie_lets_a_burst_through(void) {
    struct trial *trial = trial_new("rate=10Mbit discipline=pie queue=1000", 1);
    for (unsigned i = 0; i < 70; i++)
        trial_send(trial, 1, 1500); /* 84 ms of queue, within MAX_BURST */
    trial_run(trial, 100000 * MS);
    CHECK_INT(trial->left_count, 70);
    trial_free(trial);
}

/* RFC 8290, 1.3: flows of 8 and 16 Mb/s have equal shares of 10 Mb/s, and one of 0.1 Mb/s waits for
 * the packet that is being sent alone. */
static void check_fq_codel_shares(void) {
    struct trial *trial = trial_new("rate=10Mbit discipline=fq_codel queue=1000", 1);
    uint64_t delivered[4] = {0};
    int64_t worst = 0;
    for (int64_t i = 0; i < 6000; i++) {
        trial_send_flow(trial, 1 + i * 500000, 1000, i % 3 ? 2 : 1, 0);
        if (i % 240 == 0)
            trial_send_flow(trial, 2 + i * 500000, 1000, 3, 0);
    }
    for (uint32_t i = 0; i < trial->count; i++) {
        const struct truth_record *truth = &trial->records[i];
        if (truth->fate != FATE_DELIVERED)
            continue;
        delivered[truth->source_port]++;
        if (truth->source_port == 3 && truth->out_ns - truth->in_ns > worst)
            worst = truth->out_ns - truth->in_ns;
    }
    double ratio = (double)delivered[2] / (double)delivered[1];
    CHECK(ratio > 0.97 && ratio < 1.03);
    CHECK(delivered[1] + delivered[2] > 3600);
    CHECK_INT(delivered[3], 25);
    CHECK(worst <= 2 * 800000); /* 1000 bytes take 0.8 ms */
    trial_free(trial);
}

/* RFC 8290, 4.1: an overload drops from the longest queue, so a short one loses nothing. */
static void check_fq_codel_spares_short_queues(void) {
    struct trial *trial = trial_new("rate=1Mbit discipline=fq_codel queue=100", 1);
    for (unsigned i = 0; i < 50; i++)
        trial_send_flow(trial, 1, 1000, 1, 0);
    for (unsigned i = 0; i < 500; i++)
        trial_send_flow(trial, 2, 1000, 2, 0);
    for (uint32_t i = 0; i < trial->count; i++)
        CHECK(trial->records[i].fate != FATE_QUEUE || trial->records[i].source_port == 2);
    CHECK(trial_fates(trial, FATE_QUEUE) >= 450);
    trial_free(trial);
}

/* RFC 3168: what would be dropped is marked, and nothing is lost before the queue is full. PIE
 * marks up to a probability of 10% (RFC 8033, 5.1); this flow does not slow down, so drops begin.
 */
static void check_marks(const char *settings, enum fate fate) {
    struct trial *trial = trial_new(settings, 1);
    for (int64_t i = 0; i < 4000; i++)
        trial_send_flow(trial, 1 + i * 1150000, 1500, 1, 2); /* 4 % too much */
    trial_run(trial, 100000 * MS);
    uint64_t marked = 0;
    for (uint32_t i = 0; i < trial->count; i++)
        marked += trial->records[i].marked == fate;
    CHECK(marked > 20 && marked == trial->direction.marked);
    CHECK_INT(trial->left_count, 4000 - trial_fates(trial, FATE_PIE));
    trial_free(trial);
}

/* Returns the ones' complement sum of an IPv4 header: 0xffff if its checksum is right. */
static uint32_t header_sum(const uint8_t *ip) {
    uint32_t sum = 0;
    for (unsigned i = 0; i < 20; i += 2)
        sum += (uint32_t)block_load(ip + i, 2);
    return (sum & 0xffff) + (sum >> 16);
}

static void check_mark(uint8_t version, uint8_t before, bool is_marked) {
    uint8_t frame[ETHERNET_BYTES + 60];
    uint8_t *ip = frame + ETHERNET_BYTES;
    uint32_t size = make_frame(frame, 60);
    if (version == 6) {
        memset(ip, 0, 60);
        frame[12] = 0x86;
        frame[13] = 0xdd;
        ip[0] = 0x6a; /* traffic class 0xa., flow label 0xf.... */
        ip[1] = (uint8_t)(before << 4 | 0xf);
        block_store(ip + 4, 20, 2);
        ip[6] = 17;
    } else {
        ip[1] = (uint8_t)(0xb8 | before);
        block_store(ip + 10, (uint16_t)~header_sum(ip), 2);
    }
    struct link_packet *packet = link_packet_new(frame, size);
    CHECK(packet && packet_identify(frame, size, &packet->truth, &packet->ip_at));
    CHECK(packet_mark(packet) == is_marked);
    const uint8_t *after = packet->frame + ETHERNET_BYTES;
    uint8_t ecn = is_marked ? 3 : before;
    CHECK_INT(after[1], version == 6 ? ecn << 4 | 0xf : 0xb8 | ecn);
    CHECK(version == 6 || header_sum(after) == 0xffff);
    free(packet);
}

static void check_mark_in_headers(void) {
    for (uint8_t ecn = 0; ecn < 4; ecn++) {
        check_mark(4, ecn, ecn > 0);
        check_mark(6, ecn, ecn > 0);
    }
}

int main(void) {
    check_pie_holds_the_target();
    check_pie_lets_a_burst_through();
    check_fq_codel_shares();
    check_fq_codel_spares_short_queues();
    check_marks("rate=10Mbit discipline=codel ecn=yes queue=2000", FATE_CODEL);
    check_marks("rate=10Mbit discipline=fq_codel ecn=yes queue=2000", FATE_CODEL);
    check_marks("rate=10Mbit discipline=red ecn=yes queue=2000 red-min=20 red-max=500", FATE_RED);
    check_marks("rate=10Mbit discipline=pie ecn=yes queue=2000", FATE_PIE);
    check_mark_in_headers();
    check_codel_ends_a_standing_queue();
    check_codel_lets_a_burst_through();
    check_red_drops_before_it_is_full();
    check_red_leaves_an_idle_link_alone();
    check_red_forgets("rate=1Mbit queue=30 discipline=red");
    check_red_forgets("queue=30 discipline=red schedule=0s:rate=1Mbit");
    check_red_forgets("rate=100Mbit queue=30 discipline=red schedule=0s:rate=1Mbit");
    return 0;
}
