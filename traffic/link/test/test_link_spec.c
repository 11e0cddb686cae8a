/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: those that must be accepted, and those that must be refused. */
#include <string.h>

#include "common/test/check.h"
#include "packet/link_spec.h"
#include "packet/packet_headers.h"

static bool is_taken(const char *settings) {
    char text[512], problem[256];
    struct link_spec spec;
    link_spec_init(&spec);
    snprintf(text, sizeof text, "%s", settings);
    const char *wrong = link_spec_parse(&spec, text, problem, sizeof problem);
    link_spec_free(&spec);
    return !wrong;
}

static void check_taken(void) {
    static const char *const right[] = {
        "",
        "  rate=2Mbit   delay=0 ",
        "rate=1.5Gbit",
        "rate=384kbit",
        "rate=9600",
        "queue=1",
        "queue=64KiB",
        "queue=20p",
        "drop=1",
        "drop=17,90-95,18446744073709551615",
        "loss=0",
        "loss=100%",
        "loss=0.5",
        "gilbert=1%,25%",
        "gilbert=1%,25%,90%,0.1%",
        "outage=1s-2s,3s-4s",
        "loss-span=0-1ms:50%",
        "overhead=-4",
        "mtu=68",
        "jitter=.5ms",
        "distribution=normal",
        "discipline=codel target=5ms interval=100ms",
        "red-min=5 red-max=15",
        "discipline=fq_codel flows=1 quantum=300 ecn=yes",
        "ecn=yes discipline=pie target=20ms",
        "schedule=0:rate=1Mbit",
        "schedule=1s:rate=1Mbit:delay=5ms:loss=1%,2s:loss=0",
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        if (!is_taken(right[i]))
            fprintf(stderr, "refused: %s\n", right[i]);
        CHECK(is_taken(right[i]));
    }
}

static const char *const wrong[] = {
    "schedule=",
    "schedule=1s",
    "schedule=1s:",
    "schedule=1s:rate",
    "schedule=1s:rate=0",
    "schedule=1s:mtu=500",
    "schedule=1s:loss=1%,1s:loss=2%",
    "schedule=2s:loss=1%,1s:loss=2%",
    "schedule=2s:loss=1%,",
    "schedule=1s:rate=1Mbit trace=file",
    "ecn=yes",
    "ecn=maybe discipline=pie",
    "discipline=fq_pie",
    "flows=0",
    "flows=65537",
    "quantum=67",
    "rate",
    "rate=",
    "rate=0",
    "rate=-1",
    "rate=nan",
    "rate=inf",
    "rate=1e400",
    "rate=0x10",
    "rate=2Mbitx",
    "rate= 2",
    "rate=2T",
    "rate=99999Gbit",
    "delay=-1ms",
    "delay=1e300s",
    "delay=ms",
    "queue=0",
    "queue=-5",
    "queue=1.5",
    "queue=99999999999999999999",
    "drop=0",
    "drop=5-3",
    "drop=3,2",
    "drop=3,3",
    "drop=",
    "drop=1,,2",
    "drop=1-",
    "drop=99999999999999999999",
    "loss=101%",
    "loss=-1%",
    "loss=1.01",
    "gilbert=1%",
    "gilbert=1%,0%",
    "gilbert=1,2,3,4,5",
    "periodic=1",
    "periodic=0",
    "outage=2s-1s",
    "outage=1s",
    "outage=1s-1s",
    "overhead=1.5",
    "overhead=5000",
    "mtu=67",
    "mtu=65536",
    "bits=65",
    "bits=0",
    "distance=0",
    "distribution=pareto",
    "discipline=fq",
    "jitter-reorders=maybe",
    "color=blue",
    "=5",
    "rate=1M trace=/x",
    "red-min=15 red-max=5",
    "red-probability=0",
    "trace=",
    "target=0ms",
    "black-hole=1",
};

static void check_refused(void) {
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (is_taken(wrong[i]))
            fprintf(stderr, "taken: %s\n", wrong[i]);
        CHECK(!is_taken(wrong[i]));
    }
}

static void check_bounds(void) {
    static char text[60000];
    char problem[64];
    struct link_spec spec;
    link_spec_init(&spec);
    strcpy(text, "drop=");
    for (unsigned i = 1; i <= MAX_RANGES + 1; i++)
        sprintf(text + strlen(text), "%u,", i * 2);
    text[strlen(text) - 1] = 0;
    CHECK(link_spec_parse(&spec, text, problem, sizeof problem));
    strcpy(text, "outage=");
    for (unsigned i = 0; i <= MAX_SPANS; i++)
        sprintf(text + strlen(text), "%us-%us,", 2 * i, 2 * i + 1);
    text[strlen(text) - 1] = 0;
    CHECK(link_spec_parse(&spec, text, problem, sizeof problem));
    memset(text, 'x', 300);
    text[300] = 0;
    CHECK(link_spec_parse(&spec, text, problem,
                          sizeof problem)); /* the text is truncated to the buffer */
    link_spec_free(&spec);
}

/* Returns the spec of one setting, which must be valid. */
static struct link_spec spec_of(const char *settings) {
    char text[64], error[256];
    struct link_spec spec;
    link_spec_init(&spec);
    snprintf(text, sizeof text, "%s", settings);
    CHECK(!link_spec_parse(&spec, text, error, sizeof error));
    return spec;
}

static void check_queue(const char *setting, uint64_t packets, uint64_t bytes) {
    struct link_spec spec = spec_of(setting);
    CHECK_INT(spec.queue_packets, packets);
    CHECK_INT(spec.queue_bytes, bytes);
}

static void check_queues(void) {
    check_queue("queue=64KiB", 0, 65536);
    check_queue("queue=20", 20, 0);
    check_queue("queue=20p", 20, 0);
    check_queue("queue=2k", 2000, 0);
    check_queue("queue=2kB", 0, 2000);
    CHECK(!is_taken("queue=2x") && !is_taken("queue="));
}

static void check_values(void) {
    double rate = spec_of("rate=1.9Mbit").rate_bps;
    CHECK(rate > 1899999 && rate < 1900001);
    CHECK_INT(spec_of("delay=1.5ms").delay_ns, 1500000);
    CHECK_INT(spec_of("delay=10").delay_ns, INT64_C(10000000000)); /* seconds, as everywhere */
    CHECK(spec_of("rate=10mbit/s").rate_bps == 1e7);
    CHECK(!is_taken("rate=10MB"));
}

/* Random frames, truncated at every length, must not be read past their end (run under ASan). */
static void check_any_frame(void) {
    uint32_t state = 7, ip_at;
    for (unsigned round = 0; round < 200000; round++) {
        uint8_t frame[128];
        struct truth_record truth = {0};
        uint32_t size = round % sizeof frame;
        for (uint32_t i = 0; i < size; i++)
            frame[i] = (uint8_t)((state = state * 1664525u + 1013904223u) >> 24);
        if (size > 14 && round % 3) {
            frame[12] = round % 3 == 1 ? 0x08 : 0x86;
            frame[13] = round % 3 == 1 ? 0x00 : 0xdd;
            frame[14] = (uint8_t)(round % 3 == 1 ? 0x45 : 0x60);
        }
        uint8_t *exact = malloc(size ? size : 1);
        CHECK(exact);
        memcpy(exact, frame, size);
        if (packet_identify(exact, size, &truth, &ip_at))
            CHECK(ip_at + truth.ip_bytes <= size);
        free(exact);
    }
}

int main(void) {
    check_taken();
    check_refused();
    check_bounds();
    check_values();
    check_queues();
    check_any_frame();
    return 0;
}
