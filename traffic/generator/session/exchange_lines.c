/* SPDX-License-Identifier: Apache-2.0 */
#include "session/exchange_lines.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "transfer/clock.h"

/* Why a test ends early, as the other end may say. */
static const char *const stop_reasons[] = {"signal", "idle", "limit", "error", "peer gone"};
#define STOP_REASONS (sizeof stop_reasons / sizeof *stop_reasons)

/* What any of the lines may say; each has its own fields of these. */
struct said {
    uint64_t way, stream, port, reason;
    struct stream_report report;
    char checksum[CONTENT_DIGEST_HEX];
    char text[200];
};

#define OF_REPORT(name)                                                                            \
    { #name, offsetof(struct said, report.name), FIELD_NUMBER, INT64_MAX, NULL }
#define WAY                                                                                        \
    { "way", offsetof(struct said, way), FIELD_WORD, WAYS, way_names }
#define STREAM                                                                                     \
    { "stream", offsetof(struct said, stream), FIELD_NUMBER, STREAMS_MOST - 1, NULL }

static const struct line_field report_fields[] = {
    WAY,
    STREAM,
    OF_REPORT(blocks_sent),
    OF_REPORT(bytes_sent),
    OF_REPORT(blocks_received),
    OF_REPORT(bytes_received),
    OF_REPORT(out_of_order),
    OF_REPORT(duplicate),
    OF_REPORT(corrupt),
    OF_REPORT(late),
    OF_REPORT(missing),
    OF_REPORT(foreign),
    OF_REPORT(first_ns),
    OF_REPORT(last_ns),
    OF_REPORT(elapsed_ns),
    OF_REPORT(jitter_ns_plus_1),
    OF_REPORT(dropped_plus_1),
    OF_REPORT(cpu_user_ns),
    OF_REPORT(cpu_system_ns),
    {"errors", offsetof(struct said, report.errors), FIELD_TEXT, 256, NULL},
};
static const struct line_field end_fields[] = {
    WAY, {"checksum", offsetof(struct said, checksum), FIELD_TEXT, CONTENT_DIGEST_HEX, NULL}};
static const struct line_field port_fields[] = {
    WAY, STREAM, {"port", offsetof(struct said, port), FIELD_NUMBER, 65535, NULL}};
static const struct line_field stop_fields[] = {
    {"reason", offsetof(struct said, reason), FIELD_WORD, STOP_REASONS, stop_reasons},
    {"text", offsetof(struct said, text), FIELD_TEXT, 200, NULL}};

static const char *find_stream(struct test *test, const struct said *said, struct stream **stream) {
    struct way *way = &test->ways[said->way];
    if (!way->is_active || said->stream >= way->count)
        return "a stream that the test does not have";
    *stream = &way->streams[said->stream];
    return NULL;
}

static const char *take_sent(struct test *test, const struct said *said) {
    struct stream *stream;
    const char *why = find_stream(test, said, &stream);
    if (!why && (stream->way->is_sending || stream->way->ended))
        why = "a report of what the other end does not send";
    if (!why)
        stream->theirs = said->report;
    return why;
}

static const char *take_received(struct test *test, const struct said *said) {
    struct stream *stream;
    const char *why = find_stream(test, said, &stream);
    if (!why && (!stream->way->is_sending || stream->way->peer_is_done))
        why = "a report of what the other end does not receive";
    if (!why)
        stream->theirs = said->report;
    return why;
}

static void keep_checksum(struct test *test, const struct said *said) {
    if (test->content.is_used)
        strcpy(test->content.theirs, said->checksum);
}

/* All is sent: receivers know what to wait for. */
static const char *take_end(struct test *test, const struct said *said) {
    struct way *way = &test->ways[said->way];
    if (!way->is_active || way->is_sending)
        return "the end of what the other end does not send";
    keep_checksum(test, said);
    way->ended_ns = monotonic_ns();
    pthread_mutex_lock(&test->lock);
    way->ended = true;
    pthread_cond_broadcast(&test->arrived);
    pthread_mutex_unlock(&test->lock);
    return NULL;
}

/* All is received that will be: what is still being sent is for nobody. */
static const char *take_done(struct test *test, const struct said *said) {
    struct way *way = &test->ways[said->way];
    if (!way->is_active || !way->is_sending)
        return "the end of what the other end does not receive";
    keep_checksum(test, said);
    way->peer_is_done = true;
    way->stop = true;
    return NULL;
}

static const char *take_port(struct test *test, const struct said *said) {
    struct stream *stream;
    const char *why = find_stream(test, said, &stream);
    if (!why && (!stream->way->is_sending || test->start_ns || !said->port))
        why = "a port that nobody asked for";
    if (!why)
        stream->port = (uint16_t)said->port;
    return why;
}

static const char *take_stop(struct test *test, const struct said *said) {
    if (said->text[0] && !test->trouble[0])
        snprintf(test->trouble, sizeof test->trouble, "the other end: %s", said->text);
    test_stop(test, stop_reasons[said->reason], false);
    return NULL;
}

static const char *take_progress(struct test *test, const struct said *said) {
    (void)test, (void)said;
    return NULL;
}

struct verb {
    const char *word;
    const struct line_field *fields;
    size_t count;
    const char *(*take)(struct test *test, const struct said *said);
};

#define FIELDS(list) list, sizeof list / sizeof *list

static const struct verb verbs[] = {
    {"sent", FIELDS(report_fields), take_sent},
    {"end", FIELDS(end_fields), take_end},
    {"received", FIELDS(report_fields), take_received},
    {"done", FIELDS(end_fields), take_done},
    {"port", FIELDS(port_fields), take_port},
    {"stop", FIELDS(stop_fields), take_stop},
    {"progress", NULL, 0, take_progress},
};

const char *exchange_take_line(struct test *test, const char *line) {
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        struct said said = {0};
        if (!line_is(line, verbs[i].word))
            continue;
        const char *why = line_read(line, verbs[i].fields, verbs[i].count, &said);
        return why ? why : verbs[i].take(test, &said);
    }
    return "an unknown word";
}

static bool say(struct test *test, const char *word, const struct line_field *fields, size_t count,
                const struct said *said) {
    char line[LINE_MOST];
    line_write(line, word, fields, count, said);
    return control_say(&test->control, "%s", line);
}

bool exchange_say_reports(struct test *test, struct way *way) {
    bool right = true;
    struct said said = {.way = way->name};
    for (uint32_t i = 0; right && i < way->count; i++) {
        said.stream = i;
        said.report = way->streams[i].mine;
        right = say(test, way->is_sending ? "sent" : "received", FIELDS(report_fields), &said);
    }
    strcpy(said.checksum, test->content.mine);
    return right && say(test, way->is_sending ? "end" : "done", FIELDS(end_fields), &said);
}

bool exchange_say_stop(struct test *test, const char *reason) {
    struct said said = {0};
    for (size_t i = 0; i < STOP_REASONS; i++)
        if (!strcmp(stop_reasons[i], reason))
            said.reason = i;
    snprintf(said.text, sizeof said.text, "%.190s", test->trouble);
    return say(test, "stop", FIELDS(stop_fields), &said);
}

bool exchange_say_ports(struct test *test, struct way *way, const int *ports) {
    bool right = true;
    struct said said = {.way = way->name};
    for (uint32_t i = 0; right && i < way->count; i++) {
        said.stream = i;
        said.port = (uint64_t)ports[i];
        right = say(test, "port", FIELDS(port_fields), &said);
    }
    return right;
}
