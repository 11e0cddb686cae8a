/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a running transfer. One table per kind of line describes its fields, all members of one
 * struct, so that parsing, bounds and formatting are common (control.h). Each line is accepted only
 * from the end and at the time at which it makes sense: a peer must not be able to report about a
 * direction that this end reports about, or to move a port after the start.
 *
 * A peer's figures are stored as they are: each is at most INT64_MAX, and sums saturate
 * (bounded_add()), so a peer that exaggerates cannot cause an overflow. No number of a line is used
 * as an index before its table or find_stream() has bounded it. */
#include "session/exchange_lines.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"
#include "stream/stream.h"

/* Reasons for an early end; both ends print them. */
static const char *const stop_reasons[] = {"signal", "idle", "limit", "error", "peer gone"};
#define STOP_REASONS (sizeof stop_reasons / sizeof *stop_reasons)

#define LINES_ROOM 4000u /* of lines of a pattern, in a line of LINE_SIZE */

/* The members of all lines; each kind of line uses those that its table lists. */
struct message {
    uint64_t direction, stream, port, reason;
    struct stream_report report;
    char checksum[CONTENT_DIGEST_HEX];
    struct host_losses losses;
    struct clock_answer clock;
    uint64_t ahead_ns, behind_ns, error_ns, is_same, is_known, busy;
    char text[200];
    char lines[LINES_ROOM];
};

#define OF_REPORT(name)                                                                            \
    { #name, offsetof(struct message, report.name), FIELD_NUMBER, INT64_MAX, NULL }
#define WAY                                                                                        \
    { "way", offsetof(struct message, direction), FIELD_WORD, DIRECTIONS, direction_names }
#define STREAM                                                                                     \
    { "stream", offsetof(struct message, stream), FIELD_NUMBER, MAX_STREAMS - 1, NULL }

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
    OF_REPORT(missing_in_catch_up),
    OF_REPORT(foreign),
    OF_REPORT(first_ns),
    OF_REPORT(last_ns),
    OF_REPORT(elapsed_ns),
    OF_REPORT(jitter_ns_plus_1),
    OF_REPORT(dropped_plus_1),
    OF_REPORT(cpu_user_ns),
    OF_REPORT(cpu_system_ns),
    OF_REPORT(delay_p50_ns_plus_1),
    OF_REPORT(delay_p99_ns_plus_1),
    OF_REPORT(delay_max_ns_plus_1),
    OF_REPORT(responses),
    OF_REPORT(response_bytes),
    OF_REPORT(turn_p50_ns),
    OF_REPORT(turn_p99_ns),
    OF_REPORT(turn_max_ns),
    OF_REPORT(late_p50_ns),
    OF_REPORT(late_p99_ns),
    OF_REPORT(late_max_ns),
    OF_REPORT(largest_burst),
    OF_REPORT(moved_ns),
    OF_REPORT(real_time),
    OF_REPORT(paused_ns),
    OF_REPORT(blocks_offloaded),
    {"errors", offsetof(struct message, report.errors), FIELD_TEXT, 256, NULL},
};
static const struct line_field end_fields[] = {
    WAY,
    {"checksum", offsetof(struct message, checksum), FIELD_TEXT, CONTENT_DIGEST_HEX, NULL},
    {"queue_drops_plus_1", offsetof(struct message, losses.queue_plus_1), FIELD_NUMBER, INT64_MAX,
     NULL},
    {"interface_drops_plus_1", offsetof(struct message, losses.interface_plus_1), FIELD_NUMBER,
     INT64_MAX, NULL},
};
static const struct line_field port_fields[] = {
    WAY, STREAM, {"port", offsetof(struct message, port), FIELD_NUMBER, 65535, NULL}};
static const struct line_field lines_fields[] = {
    {"list", offsetof(struct message, lines), FIELD_TEXT, LINES_ROOM, NULL}};
#define CLOCK(name, member, max)                                                                   \
    { #name, offsetof(struct message, member), FIELD_NUMBER, max, NULL }

static const struct line_field clock_fields[] = {
    CLOCK(sent_ns, clock.sent_ns, MAX_TIME_NS),
    CLOCK(received_ns, clock.received_ns, MAX_TIME_NS),
    CLOCK(replied_ns, clock.replied_ns, MAX_TIME_NS),
    {"host", offsetof(struct message, clock.host), FIELD_TEXT, HOST_NAME_SIZE, NULL},
};
static const struct line_field offset_fields[] = {
    CLOCK(ahead_ns, ahead_ns, MAX_OFFSET_NS),
    CLOCK(behind_ns, behind_ns, MAX_OFFSET_NS),
    CLOCK(error_ns, error_ns, MAX_OFFSET_NS),
    {"is_same", offsetof(struct message, is_same), FIELD_NUMBER, 1, NULL},
    {"is_known", offsetof(struct message, is_known), FIELD_NUMBER, 1, NULL},
};
static const struct line_field refusal_fields[] = {
    {"busy", offsetof(struct message, busy), FIELD_NUMBER, 1, NULL},
    {"text", offsetof(struct message, text), FIELD_TEXT, 200, NULL}};
static const struct line_field stop_fields[] = {
    {"reason", offsetof(struct message, reason), FIELD_WORD, STOP_REASONS, stop_reasons},
    {"text", offsetof(struct message, text), FIELD_TEXT, 200, NULL}};

/* Sets `*stream`, or returns the reason why the message names none of this transfer. */
static const char *find_stream(struct transfer *transfer, const struct message *message,
                               struct stream **stream) {
    struct direction *direction = &transfer->directions[message->direction];
    if (!direction->is_active || message->stream >= direction->count)
        return "a stream that the test does not have";
    *stream = &direction->streams[message->stream];
    return NULL;
}

/* "sent" (`by_sender`) is accepted until "end" and "received" until "done", so that counts cannot
 * change afterwards. */
static const char *take_report(struct transfer *transfer, const struct message *message,
                               bool by_sender) {
    struct stream *stream;
    const char *error = find_stream(transfer, message, &stream);
    if (error)
        return error;
    const struct direction *direction = stream->direction;
    if (direction->is_sending == by_sender || (by_sender ? direction->ended : direction->peer_done))
        return by_sender ? "a report about blocks that the peer does not send"
                         : "a report about blocks that the peer does not receive";
    stream->peer = message->report;
    return NULL;
}

/* The stream reports came before "end", so receivers know how many blocks to wait for. `ended` is
 * set under the lock, because threads that wait for a connection derive their deadline from it.
 * After "done", blocks that are still sent would not be counted, so the threads stop. Without a
 * file the checksum is ignored; the table bounds its length. */
static const char *take_end(struct transfer *transfer, const struct message *message,
                            bool by_sender) {
    struct direction *direction = &transfer->directions[message->direction];
    if (!direction->is_active || direction->is_sending == by_sender)
        return by_sender ? "an end of blocks that the peer does not send"
                         : "an end of blocks that the peer does not receive";
    if (transfer->content.is_used)
        strcpy(transfer->content.peer, message->checksum);
    direction->peer_losses = message->losses;
    if (!by_sender) {
        direction->peer_done = true;
        direction->stop = true;
        return NULL;
    }
    direction->ended_ns = monotonic_ns();
    pthread_mutex_lock(&transfer->lock);
    direction->ended = true;
    pthread_cond_broadcast(&transfer->arrived);
    pthread_mutex_unlock(&transfer->lock);
    return NULL;
}

/* Accepted only before the start: the UDP sockets are connected then. */
static const char *take_port(struct transfer *transfer, const struct message *message,
                             bool by_sender) {
    (void)by_sender;
    struct stream *stream;
    const char *error = find_stream(transfer, message, &stream);
    if (!error && (!stream->direction->is_sending || transfer->start_ns || !message->port))
        error = "a port that was not requested";
    if (!error)
        stream->port = (uint16_t)message->port;
    return error;
}

/* Accepted only before the start, from the end that asks. */
static const char *take_lines(struct transfer *transfer, const struct message *message,
                              bool by_sender) {
    (void)by_sender;
    if (transfer->is_initiator || transfer->start_ns)
        return "a pattern that was not requested";
    return transfer_plan_take_lines(&transfer->plan, message->lines);
}

/* The peer's text is kept only if this end has no error of its own, and without characters that
 * could steer a terminal. */
static void keep_text(struct transfer *transfer, const char *from, const char *text) {
    pthread_mutex_lock(&transfer->lock); /* a stream's thread may report an error meanwhile */
    if (text[0] && !transfer->error_text[0]) {
        size_t used = (size_t)sprintf(transfer->error_text, "%s: ", from);
        utf8_copy_printable(transfer->error_text + used, sizeof transfer->error_text - used, text,
                            strlen(text));
    }
    pthread_mutex_unlock(&transfer->lock);
}

/* After "ready", the end that was asked may still refuse, for example lines that only later
 * versions have. */
static const char *take_refusal(struct transfer *transfer, const struct message *message,
                                bool by_sender) {
    (void)by_sender;
    if (!transfer->is_initiator)
        return "a refusal of a test that it asked for";
    keep_text(transfer, "refused", message->text);
    transfer_stop(transfer, "error", false);
    return NULL;
}

/* FIELD_WORD has refused unknown reasons. */
static const char *take_stop(struct transfer *transfer, const struct message *message,
                             bool by_sender) {
    (void)by_sender;
    keep_text(transfer, "the other end", message->text);
    transfer_stop(transfer, stop_reasons[message->reason], false);
    return NULL;
}

#define FIELDS(list) list, sizeof list / sizeof *list

static bool send_message(struct transfer *transfer, const char *word,
                         const struct line_field *fields, size_t count,
                         const struct message *message) {
    char line[LINE_SIZE];
    line_write(line, word, fields, count, message);
    return control_send(&transfer->control, "%s", line);
}

/* The initiator keeps the answer; the other end answers at once. */
static const char *take_clock(struct transfer *transfer, const struct message *message,
                              bool by_sender) {
    struct message answer = {.clock = message->clock};
    (void)by_sender;
    if (transfer->is_initiator) {
        transfer->clock_answer = message->clock;
        return NULL;
    }
    answer.clock.received_ns = realtime_ns();
    host_name_kernel(transfer->plan.run, answer.clock.host);
    answer.clock.replied_ns = realtime_ns();
    return send_message(transfer, "clock", FIELDS(clock_fields), &answer)
               ? NULL
               : "an answer about the clock could not be sent";
}

/* The offset at the begin must not change while threads collect delays with it. */
static const char *take_offset(struct transfer *transfer, const struct message *message,
                               bool by_sender) {
    (void)by_sender;
    if (transfer->is_initiator || !transfer_is_udp(transfer))
        return "an offset of clocks that was not requested";
    transfer->has_offset = true;
    transfer->clock = (struct clock_offset){
        .is_known = message->is_known,
        .is_same = message->is_same,
        .ns = (int64_t)message->ahead_ns - (int64_t)message->behind_ns,
        .error_ns = message->error_ns,
    };
    if (!transfer->start_ns)
        transfer->clock_begin = transfer->clock;
    return NULL;
}

struct verb {
    const char *word;
    const struct line_field *fields;
    size_t count;
    const char *(*take)(struct transfer *transfer, const struct message *message, bool by_sender);
    bool by_sender; /* of the direction that the line is about */
};

static const struct verb verbs[] = {
    {"sent", FIELDS(report_fields), take_report, true},
    {"end", FIELDS(end_fields), take_end, true},
    {"received", FIELDS(report_fields), take_report, false},
    {"done", FIELDS(end_fields), take_end, false},
    {"port", FIELDS(port_fields), take_port, false},
    {"lines", FIELDS(lines_fields), take_lines, false},
    {"clock", FIELDS(clock_fields), take_clock, false},
    {"offset", FIELDS(offset_fields), take_offset, false},
    {"stop", FIELDS(stop_fields), take_stop, false},
    {"refused", FIELDS(refusal_fields), take_refusal, false},
    {"progress", NULL, 0, NULL, false}, /* as any line, it renews last_heard_ns */
};

/* Each line is parsed into a new message, so that absent fields are 0 and not those of the line
 * before. */
const char *exchange_take_line(struct transfer *transfer, const char *line) {
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        struct message message = {0};
        if (!line_is(line, verbs[i].word))
            continue;
        const char *error = line_read(line, verbs[i].fields, verbs[i].count, &message);
        if (error || !verbs[i].take)
            return error;
        return verbs[i].take(transfer, &message, verbs[i].by_sender);
    }
    return "an unknown word";
}

void exchange_explain_end(struct transfer *transfer, char error[ERROR_SIZE]) {
    char line[LINE_SIZE];
    uint64_t deadline = (uint64_t)monotonic_ns() + NS_PER_S;
    while (!transfer->stopped_by &&
           control_wait(&transfer->control, line, deadline) == CONTROL_LINE)
        if (exchange_take_line(transfer, line))
            break;
    snprintf(error, ERROR_SIZE, "%s",
             transfer->error_text[0]
                 ? transfer->error_text
                 : "the receiver was ready, but ended the test before its start");
}

bool exchange_send_clock(struct transfer *transfer) {
    const struct clock_offset *clock = &transfer->clock;
    const struct message message = {.ahead_ns = clock->ns > 0 ? (uint64_t)clock->ns : 0,
                                    .behind_ns = clock->ns < 0 ? (uint64_t)-clock->ns : 0,
                                    .error_ns = clock->error_ns,
                                    .is_same = clock->is_same,
                                    .is_known = clock->is_known};
    return send_message(transfer, "offset", FIELDS(offset_fields), &message);
}

/* Ends at the first line that could not be sent: the peer then counts as gone. Versions that send
 * no "offset" refuse the fields of losses, so such an initiator gets none. */
bool exchange_send_reports(struct transfer *transfer, struct direction *direction) {
    bool right = true;
    struct message message = {.direction = direction->name};
    for (uint32_t i = 0; right && i < direction->count; i++) {
        message.stream = i;
        message.report = direction->streams[i].own;
        right = send_message(transfer, direction->is_sending ? "sent" : "received",
                             FIELDS(report_fields), &message);
    }
    strcpy(message.checksum, transfer->content.own);
    if (transfer->is_initiator || transfer->has_offset)
        message.losses = direction->own_losses;
    return right && send_message(transfer, direction->is_sending ? "end" : "done",
                                 FIELDS(end_fields), &message);
}

bool exchange_send_stop(struct transfer *transfer, const char *reason) {
    struct message message = {0};
    for (size_t i = 0; i < STOP_REASONS; i++)
        if (!strcmp(stop_reasons[i], reason))
            message.reason = i;
    snprintf(message.text, sizeof message.text, "%.190s", transfer->error_text);
    return send_message(transfer, "stop", FIELDS(stop_fields), &message);
}

/* Sockets stay in their streams, so transfer_end() closes them even if a later one fails. The port
 * is read back, because the system may have chosen it. */
bool exchange_bind_udp(struct transfer *transfer, enum direction_name name,
                       char error[ERROR_SIZE]) {
    struct direction *direction = &transfer->directions[name];
    struct message message = {.direction = name};
    for (uint32_t i = 0; transfer_is_udp(transfer) && i < direction->count; i++) {
        union endpoint own = transfer->own;
        socklen_t size = sizeof own;
        int fd = endpoint_bind_udp(&own, &transfer->local, &transfer->plan.socket, error);
        direction->streams[i].fd = fd;
        if (fd < 0)
            return false;
        getsockname(fd, &own.address, &size);
        message.stream = i;
        message.port = endpoint_port(&own);
        if (!send_message(transfer, "port", FIELDS(port_fields), &message))
            return false;
    }
    return true;
}

bool exchange_connect_udp(struct transfer *transfer, enum direction_name name,
                          char error[ERROR_SIZE]) {
    struct direction *direction = &transfer->directions[name];
    for (uint32_t i = 0; transfer_is_udp(transfer) && i < direction->count; i++) {
        struct stream *stream = &direction->streams[i];
        union endpoint to = transfer->peer;
        endpoint_set_port(&to, stream->port);
        stream->fd = endpoint_connect_udp(&to, &transfer->local, &transfer->plan.socket, error);
        if (stream->fd < 0 ||
            (transfer->plan.kernel_pacing && !host_time_datagrams(stream->fd, error)))
            return false;
    }
    return true;
}

/* The path may be slow. The peer runs the transfer once it has read them all; until then it gives
 * no sign of life and answers no "clock", so this end does not go on before. */
bool exchange_send_lines(struct transfer *transfer) {
    const struct transfer_plan *plan = &transfer->plan;
    struct message message = {0};
    char line[LINE_SIZE];
    uint64_t deadline = (uint64_t)monotonic_ns() + LINES_NS;
    if (!transfer_plan_needs_lines(plan))
        return true;
    for (uint64_t next = 0; next < plan->line_count;) {
        next = transfer_plan_write_lines(plan, next, message.lines, sizeof message.lines);
        line_write(line, "lines", FIELDS(lines_fields), &message);
        if (!control_send_until(&transfer->control, line, deadline))
            return false;
    }
    return control_flush(&transfer->control, deadline);
}
