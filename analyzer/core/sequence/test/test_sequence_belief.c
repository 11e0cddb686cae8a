/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads that are taken for a stream, also beside others, and those that must not be. */
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
    check_counts(&probe, 50, 50, 0, 0, 0, 0);
    CHECK_INT(summary_of(&probe).other_packets, 90);
    end(&probe);
}

/* iperf3 begins with a word of 4 bytes to the server. */
static void check_iperf3_greeting(void) {
    struct probe probe;
    begin(&probe, IPERF3_32);
    take(&probe, (const uint8_t *)"6789", 4, START);
    send_list(&probe, "1-50");
    check_counts(&probe, 50, 50, 0, 0, 0, 0);
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
    check_counts(&probe, 2000, 2000, 0, 0, 0, 0);
    end(&probe);
}

/* --- nearly a stream -------------------------------------------------------------------------- */

static void check_unbelieved(struct probe *probe) {
    CHECK(probe->track.given_up);
    CHECK_INT(probe->pool.own.used, 0);
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

/* Sixteen packets: iperf2 without seconds, RTP without two in sequence, RTP that does not rise. */
static void check_no_stream(enum form form, int64_t start_ns, uint64_t step, uint64_t modulus) {
    struct probe probe;
    begin(&probe, form);
    for (uint64_t i = 0; i < 16; i++)
        send_at(&probe, 5 + step * i % modulus, start_ns + (int64_t)i * 20 * MILLISECOND);
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

/* The beginning of each payload: bytes of the protocol, then bytes of the flow, else zeros. */
static const struct {
    const char *bytes;
    uint8_t count, fixed;
    uint32_t length; /* of the payload, 0 for any */
} beginnings[NOISES] = {
    [SAME] = {.fixed = 60, .length = 60},
    [QUIC] = {.fixed = 20}, /* RFC 9000 section 17: form, connection ID, number */
    [STUN] = {"\x00\x01\x00\x08\x21\x12\xa4\x42", .count = 8},
    [RTCP] = {"\x80\xc9\x00\x07", .count = 4, .fixed = 4},
    [DTLS] = {"\x17\xfe\xfd\x00\x01", .count = 5},
    [WIREGUARD] = {"\x04\x00\x00\x00", .count = 4, .fixed = 4},
    [ESP] = {.fixed = 4},
    [ESP_SALTED] = {.fixed = 4},
    [NTP] = {"\x23\x02\x06\xe8", .count = 4, .fixed = 8, .length = 48},
    [COUNTER] = {.fixed = 64, .length = 64},
};

/* The bytes that change from packet to packet. */
static void put_changing(uint8_t *payload, const struct noise_flow *flow) {
    uint64_t salt = flow->noise == ESP_SALTED ? block_load(flow->fixed + 8, 8) : 0;
    switch (flow->noise) {
    case DNS: put_dns(payload, random_bits()); break;
    case DNS_BY_COUNT: put_dns(payload, flow->counter); break;
    case QUIC:
        payload[0] = (uint8_t)(flow->counter < 4 ? 0xc0 : 0x40 | random_below(64));
        fill_random(payload + 9, 20);
        break;
    case DTLS: block_store(payload + 5, flow->counter, 6); break;
    case WIREGUARD: memcpy(payload + 8, &flow->counter, 8); break; /* the lowest byte first */
    case ESP:
    case ESP_SALTED:
        payload[0] |= 1; /* the first 255 SPIs are reserved; 0 is IKE */
        block_store(payload + 4, flow->counter, 4);
        block_store(payload + 8, flow->counter ^ salt, 8);
        break;
    case COUNTER:
    case COUNTER_IN_RANDOM: block_store(payload + flow->at, flow->counter, 4); break;
    default: break;
    }
}

static uint32_t put_noise(uint8_t *payload, struct noise_flow *flow) {
    enum noise noise = flow->noise;
    uint8_t count = beginnings[noise].count;
    uint32_t length = 1 + random_below(200);
    memset(payload, 0, 300);
    if (noise != ZEROS)
        fill_random(payload + 12, 188);
    if (noise == RANDOM || noise == COUNTER_IN_RANDOM)
        fill_random(payload, 12);
    if (count)
        memcpy(payload, beginnings[noise].bytes, count);
    memcpy(payload + count, flow->fixed, beginnings[noise].fixed);
    flow->counter++;
    put_changing(payload, flow);
    if (noise == TEXT)
        return (uint32_t)sprintf((char *)payload, "<14>host %u: text", random_below(99));
    if (noise == ESP || noise == ESP_SALTED)
        return length + 32; /* an inner header and its own */
    return beginnings[noise].length ? beginnings[noise].length : length;
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
        CHECK_INT(probe.pool.own.used, 0);
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
    CHECK_INT(probe.pool.own.used, 0);
    end(&probe);
}

int main(void) {
    check_call();
    check_iperf3_greeting();
    check_other_clocks();
    check_clock_that_is_set_back();
    check_counters_are_no_clock();
    check_no_stream(IPERF2_32, 0, 1, 100);
    check_no_stream(RTP, START, 2, 100);
    check_no_stream(RTP, START, 1, 2);
    check_payload_types_of_rtcp();
    check_clocks_apart();
    check_noise(100000);
    check_belief_is_given_up();
    return 0;
}
