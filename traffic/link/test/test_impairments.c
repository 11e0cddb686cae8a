/* SPDX-License-Identifier: Apache-2.0 */
/* Losses, copies, flipped bits, reordered packets and the MTU: each occurs as the settings ask, and
 * again with the same seed. */
#include "packet/packet_headers.h"
#include "test/link_trial.h"

static struct trial *send_many(const char *settings, uint64_t seed, uint32_t count) {
    struct trial *trial = trial_new(settings, seed);
    for (uint32_t i = 0; i < count; i++)
        trial_send(trial, (1 + i) * MS, 200);
    trial_run(trial, 1000000 * MS);
    return trial;
}

static void check_exact_packets(void) {
    struct trial *trial = send_many("drop=17,90-95,100", 1, 200);
    CHECK_INT(trial_fates(trial, FATE_LISTED), 8);
    for (uint32_t i = 0; i < trial->count; i++) {
        uint64_t index = trial->records[i].index;
        bool listed = index == 17 || (index >= 90 && index <= 95) || index == 100;
        CHECK_INT(trial->records[i].fate, listed ? FATE_LISTED : FATE_DELIVERED);
    }
    trial_free(trial);
}

static void check_shares(void) {
    struct trial *trial = send_many("loss=5% duplicate=10% corrupt=20% bits=3", 7, 10000);
    uint64_t lost = trial_fates(trial, FATE_RANDOM), corrupted = 0, copied = 0;
    CHECK(lost > 420 && lost < 580);
    for (uint32_t i = 0; i < trial->count; i++) {
        corrupted += trial->records[i].corrupted_bits == 3;
        copied += trial->records[i].copies == 2;
        CHECK(trial->records[i].corrupted_bits == 0 || trial->records[i].corrupted_bits == 3);
    }
    CHECK(copied > 850 && copied < 1050);
    CHECK(corrupted > 1780 && corrupted < 2020);
    CHECK_INT(trial->left_count, 10000 - lost + copied);
    trial_free(trial);
}

static void check_gilbert(void) {
    struct trial *trial = send_many("gilbert=1%,25%", 3, 20000 - 1);
    uint64_t lost = trial_fates(trial, FATE_GILBERT), bursts = 0, last = 0;
    CHECK(lost > 560 && lost < 980); /* 1 / 26 of all */
    for (uint32_t i = 0; i < trial->count; i++)
        if (trial->records[i].fate == FATE_GILBERT) {
            bursts += trial->records[i].index != last + 1;
            last = trial->records[i].index;
        }
    CHECK((double)lost / (double)bursts > 3 && (double)lost / (double)bursts < 5); /* 1 / 25% */
    trial_free(trial);
}

static void check_periodic_and_spans(void) {
    struct trial *trial = send_many("periodic=10 loss-span=20ms-30ms outage=50ms-52ms", 1, 100);
    CHECK_INT(trial_fates(trial, FATE_SPAN), 10);
    CHECK_INT(trial_fates(trial, FATE_OUTAGE), 2);
    CHECK_INT(trial_fates(trial, FATE_PERIODIC), 9); /* one of ten is lost by the span */
    trial_free(trial);
}

static void check_the_same_again(void) {
    static const char settings[] = "loss=3% gilbert=1%,30%,80% duplicate=2% corrupt=5% reorder=4% "
                                   "distance=3 jitter=1ms delay=5ms";
    struct trial *first = send_many(settings, 11, 3000), *again = trial_new(settings, 11);
    struct trial *other = send_many(settings, 12, 3000);
    for (uint32_t i = 0; i < 3000; i++) /* other times, the same packets */
        trial_send(again, (1 + i) * 7 * MS + i % 5, 200);
    trial_run(again, 1000000 * MS);
    CHECK_INT(first->count, again->count);
    uint8_t fates[2][3001] = {0};
    for (uint32_t i = 0; i < first->count; i++) {
        fates[0][first->records[i].index] =
            (uint8_t)(first->records[i].fate * 8 + first->records[i].copies);
        fates[1][again->records[i].index] =
            (uint8_t)(again->records[i].fate * 8 + again->records[i].copies);
    }
    CHECK(!memcmp(fates[0], fates[1], sizeof fates[0]));
    CHECK(first->direction.fates[FATE_RANDOM] != other->direction.fates[FATE_RANDOM] ||
          first->left_count != other->left_count);
    trial_free(first);
    trial_free(again);
    trial_free(other);
}

static void check_reordering(void) {
    struct trial *trial = send_many("reorder=2% distance=4 delay=3ms", 2, 5000);
    uint32_t held = 0;
    CHECK_INT(trial->left_count, 5000);
    for (uint32_t i = 0; i < trial->count; i++)
        if (trial->records[i].bits & TRUTH_REORDERED) {
            uint64_t index = trial->records[i].index;
            uint32_t place = 0;
            while (trial->left[place] != index)
                place++;
            held++;
            if (index < 4900)
                CHECK(place - (index - 1) >= 3 &&
                      place - (index - 1) <= 6); /* others may be held back too */
        }
    CHECK(held > 70 && held < 130);
    trial_free(trial);
}

static void check_held_packet_leaves_alone(void) {
    struct trial *trial = trial_new("reorder=100% distance=3 delay=5ms reorder-wait=20ms", 1);
    trial_send(trial, 1 * MS, 100);
    CHECK_INT(link_direction_next_ns(&trial->direction), 26 * MS);
    trial_run(trial, 26 * MS);
    CHECK_INT(trial->left_count, 1);
    trial_free(trial);
}

static void check_mtu(void) {
    struct trial *trial = trial_new("mtu=500", 1), *hole = trial_new("mtu=500 black-hole=yes", 1);
    trial_send(trial, MS, 500);
    trial_send(trial, MS, 501);
    trial_send(hole, MS, 501);
    CHECK_INT(trial_fates(trial, FATE_MTU), 1);
    CHECK_INT(trial->answers, 1);
    CHECK_INT(trial_fates(hole, FATE_MTU), 1);
    CHECK_INT(hole->answers, 0);
    trial_free(trial);
    trial_free(hole);
}

static void check_answer(void) {
    uint8_t frame[MAX_FRAME], answer[MAX_TOO_BIG_FRAME];
    uint32_t size = make_frame(frame, 1400), sum = 0;
    struct link_packet *packet = link_packet_new(frame, size);
    struct link_addresses from = {.ip4 = {192, 0, 0, 8}};
    CHECK(packet && packet_identify(frame, size, &packet->truth, &packet->ip_at));
    CHECK_INT(icmp_too_big(packet, 1300, &from, answer), ETHERNET_BYTES + 576);
    CHECK_INT(block_load(answer + ETHERNET_BYTES + 26, 2), 1300);
    for (unsigned i = 0; i < 20; i += 2)
        sum += (uint32_t)block_load(answer + ETHERNET_BYTES + i, 2);
    CHECK_INT((sum & 0xffff) + (sum >> 16), 0xffff);
    packet->truth.fragment_offset = 8;
    CHECK_INT(icmp_too_big(packet, 1300, &from, answer),
              0); /* RFC 1122: never about later fragments */
    free(packet);
}

static void check_what_is_left_inside(void) {
    struct trial *trial = trial_new("rate=1Mbit delay=1s reorder=10% duplicate=10%", 1);
    for (uint32_t i = 0; i < 50; i++)
        trial_send(trial, MS, 1000);
    link_direction_end(&trial->direction);
    CHECK_INT(trial_fates(trial, FATE_UNFINISHED), 50);
    CHECK_INT(trial->direction.held_bytes, 0);
    link_spec_free(&trial->spec);
    free(trial);
}

int main(void) {
    check_exact_packets();
    check_shares();
    check_gilbert();
    check_periodic_and_spans();
    check_the_same_again();
    check_reordering();
    check_held_packet_leaves_alone();
    check_mtu();
    check_answer();
    check_what_is_left_inside();
    return 0;
}
