/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads that are taken for a stream, whatever stands beside it, and those that must not be. */
#include "sequence/test/sequence_flow.h"

/* --- streams ---------------------------------------------------------------------------------- */

/* STUN, DTLS and RTCP first and between. */
static void check_call(void) {
    struct probe probe;
    uint8_t payload[100] = {0, 1, 0, 8};
    begin(&probe, RTP);
    block_store(payload + 4, 0x2112a442, 4);
    for (int64_t i = 0; i < 30; i++)
        take(&probe, payload, 28, START + i * MILLISECOND);
    memcpy(payload, "\x16\xfe\xfd", 3);
    for (int64_t i = 30; i < 40; i++)
        take(&probe, payload, 100, START + i * MILLISECOND);
    for (uint64_t i = 1; i <= 50; i++) {
        send_next(&probe, i);
        memcpy(payload, "\x80\xc8\x00\x06", 4);
        take(&probe, payload, 28, START + (int64_t)i * 20 * MILLISECOND);
    }
    check_counts(&probe, 50, 50, 0, 0, 0);
    CHECK_INT(summary_of(&probe).other_packets, 90);
    end(&probe);
}

/* iperf3 begins with a word of 4 bytes to the server. */
static void check_iperf3_greeting(void) {
    struct probe probe;
    begin(&probe, IPERF3_32);
    take(&probe, (const uint8_t *)"6789", 4, START);
    send_all(&probe, 1, 50);
    check_counts(&probe, 50, 50, 0, 0, 0);
    CHECK_INT(summary_of(&probe).other_packets, 1);
    end(&probe);
}

/* The sender counts from its start, the capture does not know times, and both at once. */
static void check_other_clocks(void) {
    for (unsigned i = 0; i < 2; i++) {
        struct probe probe;
        uint8_t payload[64];
        begin(&probe, IPERF3_32);
        for (uint64_t sequence = 1; sequence <= 50; sequence++) {
            put(&probe, payload, sequence, 1000 * SECOND + (int64_t)sequence * MILLISECOND);
            int64_t time_ns = START + (int64_t)sequence * MILLISECOND;
            struct sequence_packet packet =
                packet_of(payload, 64, 64, sequence, i ? INT64_MIN : time_ns);
            packet.time_known = !i;
            sequence_take(&probe.track, &packet, &probe.pool, NULL);
        }
        struct sequence_summary summary = summary_of(&probe);
        CHECK_INT(summary.application, WORD_IPERF3);
        CHECK_INT(summary.received, 50);
        CHECK_INT(summary.jitter_known, !i);
        end(&probe);
    }
}

static void check_clock_that_is_set_back(void) {
    struct probe probe;
    uint8_t payload[64];
    begin(&probe, IPERF2_64);
    for (int64_t i = 0; i < 2000; i++) {
        int64_t time_ns = START + i * 10 * MILLISECOND;
        put(&probe, payload, (uint64_t)i, i < 500 ? time_ns : time_ns - 3600 * SECOND);
        take(&probe, payload, 64, time_ns);
    }
    check_counts(&probe, 2000, 2000, 0, 0, 0);
    end(&probe);
}

/* --- nearly a stream -------------------------------------------------------------------------- */

static void check_unbelieved(struct probe *probe) {
    CHECK(probe->track.given_up);
    CHECK_INT(probe->pool.used, 0);
    end(probe);
}

/* ESP in UDP: the SPI, a counter and, with AES-GCM, another; some packets lost. */
static void check_counters_are_no_clock(void) {
    struct probe probe;
    uint8_t payload[64] = {0xde, 0xad, 0xbe, 0xef};
    begin(&probe, IPERF3_64);
    for (uint64_t i = 0; i < 16; i++) {
        block_store(payload + 4, i + i / 3, 4);
        block_store(payload + 8, i, 8);
        take(&probe, payload, 64, START + (int64_t)i * 10 * MILLISECOND);
    }
    check_unbelieved(&probe);
}

static void check_no_seconds(void) {
    struct probe probe;
    begin(&probe, IPERF2_32);
    for (uint64_t i = 0; i < 16; i++)
        send_at(&probe, i, (int64_t)i * 20 * MILLISECOND);
    check_unbelieved(&probe);
}

static void check_rtp_without_two_in_sequence(void) {
    struct probe probe;
    begin(&probe, RTP);
    for (uint64_t i = 0; i < 16; i++)
        send_next(&probe, 2 * i);
    check_unbelieved(&probe);
}

static void check_rtp_that_does_not_rise(void) {
    struct probe probe;
    begin(&probe, RTP);
    for (uint64_t i = 0; i < 16; i++)
        send_at(&probe, 5 + i % 2, START + (int64_t)i * 20 * MILLISECOND);
    check_unbelieved(&probe);
}

/* RFC 5761 section 4 */
static void check_payload_types_of_rtcp(void) {
    for (uint8_t kind = 64; kind <= 95; kind++) {
        struct probe probe;
        uint8_t payload[64] = {0};
        begin(&probe, RTP);
        for (uint64_t i = 0; i < 16; i++) {
            put_rtp(payload, 5, kind, i, i * 160);
            take(&probe, payload, 64, START + (int64_t)i * 20 * MILLISECOND);
        }
        check_unbelieved(&probe);
    }
}

static void check_clocks_apart(void) {
    struct probe probe;
    uint8_t payload[64];
    begin(&probe, IPERF2_64);
    for (uint64_t i = 0; i < 16; i++) {
        put(&probe, payload, 2 * i, START + (int64_t)i * 20 * MILLISECOND);
        take(&probe, payload, 64, START + (int64_t)i * 3 * SECOND);
        CHECK_INT(probe.counts[WORD_BLOCK_LOST], 0); /* one is lost every time */
    }
    check_unbelieved(&probe);
}

/* --- noise ------------------------------------------------------------------------------------ */

enum noise {
    RANDOM,
    ZEROS,
    SAME,
    DNS,
    DNS_BY_COUNT,
    QUIC,
    STUN,
    RTCP,
    DTLS,
    WIREGUARD,
    ESP,
    ESP_SALTED,
    NTP,
    COUNTER,
    COUNTER_IN_RANDOM,
    TEXT,
    NOISES
};

/* The part that stays the same in a flow. */
struct noise_flow {
    enum noise noise;
    uint8_t fixed[64];
    uint64_t counter;
    uint32_t at; /* of the counter */
};

static void fill_random(uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)(random_bits() >> 56);
}

static void put_dns(uint8_t *payload, uint64_t id) {
    block_store(payload, id, 2);
    block_store(payload + 2, random_below(2) ? 0x0100 : 0x8180, 2);
    block_store(payload + 4, 1, 2);
    block_store(payload + 6, random_below(3), 2);
    block_store(payload + 8, 0, 2);
    block_store(payload + 10, random_below(2), 2);
}

static void put_esp(uint8_t *payload, const struct noise_flow *flow) {
    memcpy(payload, flow->fixed, 4);
    payload[0] |= 1; /* the first 255 SPIs are reserved; 0 is IKE */
    block_store(payload + 4, flow->counter, 4);
    uint64_t salt = flow->noise == ESP_SALTED ? block_load(flow->fixed + 8, 8) : 0;
    block_store(payload + 8, flow->counter ^ salt, 8);
}

/* Protocols of the Internet. Returns false when the flow has none of these. */
static bool put_protocol(uint8_t *payload, const struct noise_flow *flow) {
    switch (flow->noise) {
    case DNS: put_dns(payload, random_bits()); return true;
    case DNS_BY_COUNT: put_dns(payload, flow->counter); return true;
    case QUIC:
        memcpy(payload, flow->fixed, 20); /* RFC 9000 section 17: form, connection ID, number */
        payload[0] = (uint8_t)(flow->counter < 4 ? 0xc0 : 0x40 | random_below(64));
        fill_random(payload + 9, 20);
        return true;
    case STUN: memcpy(payload, "\x00\x01\x00\x08\x21\x12\xa4\x42", 8); return true;
    case RTCP:
        memcpy(payload, "\x80\xc9\x00\x07", 4);
        memcpy(payload + 4, flow->fixed, 4);
        return true;
    case DTLS:
        memcpy(payload, "\x17\xfe\xfd\x00\x01", 5);
        block_store(payload + 5, flow->counter, 6);
        return true;
    case WIREGUARD:
        memcpy(payload, "\x04\x00\x00\x00", 4);
        memcpy(payload + 4, flow->fixed, 4);
        memcpy(payload + 8, &flow->counter, 8); /* the lowest byte first */
        return true;
    case ESP:
    case ESP_SALTED: put_esp(payload, flow); return true;
    default: return false;
    }
}

static uint32_t put_other(uint8_t *payload, const struct noise_flow *flow, uint32_t length) {
    switch (flow->noise) {
    case RANDOM: fill_random(payload, 12); return length;
    case SAME: memcpy(payload, flow->fixed, 60); return 60;
    case NTP:
        memcpy(payload, "\x23\x02\x06\xe8", 4);
        memcpy(payload + 4, flow->fixed, 8);
        return 48;
    case COUNTER:
        memcpy(payload, flow->fixed, 64);
        block_store(payload + flow->at, flow->counter, 4);
        return 64;
    case COUNTER_IN_RANDOM:
        fill_random(payload, 12);
        block_store(payload + flow->at, flow->counter, 4);
        return length;
    case TEXT: return (uint32_t)sprintf((char *)payload, "<14>host %u: text", random_below(99));
    default: return length;
    }
}

static uint32_t put_noise(uint8_t *payload, struct noise_flow *flow) {
    uint32_t length = 1 + random_below(200);
    memset(payload, 0, 300);
    if (flow->noise != ZEROS)
        fill_random(payload + 12, 188);
    flow->counter++;
    if (put_protocol(payload, flow)) /* ESP has an inner header and its own */
        return flow->noise == ESP || flow->noise == ESP_SALTED ? length + 32 : length;
    return put_other(payload, flow, length);
}

static void check_noise(unsigned flows) {
    struct probe probe;
    begin(&probe, RTP);
    for (unsigned i = 0; i < flows; i++) {
        struct noise_flow flow = {.noise = i % NOISES, .at = 4 * random_below(5)};
        uint8_t payload[300];
        int64_t time_ns = START, gap = 1 << random_below(30);
        unsigned packets = 1 + random_below(24);
        fill_random(flow.fixed, sizeof flow.fixed);
        flow.counter = random_below(2) ? 0 : random_below(1000000);
        for (unsigned j = 0; j < packets; j++) {
            time_ns += random_below((uint32_t)gap);
            uint32_t length = put_noise(payload, &flow);
            take(&probe, payload, length, time_ns);
            if (probe.track.layout)
                fprintf(stderr, "noise %d is taken for a format\n", flow.noise);
            CHECK(!probe.track.layout);
        }
        sequence_free(&probe.track, &probe.pool);
        CHECK_INT(probe.pool.used, 0);
    }
    end(&probe);
}

/* Noise that passes for iperf3 at first: its clock does not go on. */
static void check_belief_is_given_up(void) {
    struct probe probe;
    uint8_t payload[64];
    begin(&probe, IPERF3_32);
    for (int64_t i = 1; i < 400; i++) {
        put(&probe, payload, (uint64_t)i, 1000 * SECOND + i * 3000);
        take(&probe, payload, 64, START + i * 30 * MILLISECOND);
        if (i == 300) /* 9 s */
            CHECK_INT(summary_of(&probe).application, WORD_IPERF3);
    }
    CHECK(probe.track.given_up);
    CHECK_INT(probe.pool.used, 0);
    end(&probe);
}

int main(void) {
    check_call();
    check_iperf3_greeting();
    check_other_clocks();
    check_clock_that_is_set_back();
    check_counters_are_no_clock();
    check_no_seconds();
    check_rtp_without_two_in_sequence();
    check_rtp_that_does_not_rise();
    check_payload_types_of_rtcp();
    check_clocks_apart();
    check_noise(100000);
    check_belief_is_given_up();
    return 0;
}
