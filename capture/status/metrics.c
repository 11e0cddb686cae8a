/* SPDX-License-Identifier: Apache-2.0 */
/* A row is one number: its key in the JSON, and its name, labels and help in Prometheus, which has
 * base units (seconds, bytes). Rows with one name stand together. Keys and names are public:
 * programs, alerts and dashboards rely on them. */
#include "status/metrics.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/utf8.h"

enum metric_kind {
    METRIC_COUNTER,
    METRIC_GAUGE,
    METRIC_TRUTH,  /* 0 or 1 */
    METRIC_OFFSET, /* ns, of either sign */
    METRIC_TIME,   /* ns in memory and JSON, seconds in Prometheus; NEVER_NS: null, +Inf */
};

struct metric {
    const char *object; /* in the JSON: of which object it is a member; NULL: of the line */
    const char *key;
    const char *name;   /* in Prometheus, behind METRICS_PREFIX; NULL: only in the JSON */
    const char *labels; /* or NULL */
    enum metric_kind kind;
    size_t offset;
    const char *help;
};

#define NUMBER_OF(structure, member)                                                               \
    offsetof(structure, member) +                                                                  \
        0 * sizeof(char[sizeof(((structure *)0)->member) == sizeof(int64_t) ? 1 : -1])
#define OF_COUNTS(member) NUMBER_OF(struct counts, member)
#define OF_STATUS(member) NUMBER_OF(struct status, member)
#define DROPS             "Packets that were dropped, by cause."
#define ROWS_OF(table)    table, sizeof table / sizeof *table

/* Of the sum in the JSON, and of each interface in both. */
static const struct metric packet_rows[] = {
    {NULL, "received", "received_packets_total", NULL, METRIC_COUNTER, OF_COUNTS(received),
     "Packets that were read, or lost behind the kernel."},
    {NULL, "written", "written_packets_total", NULL, METRIC_COUNTER, OF_COUNTS(written),
     "Packets in files."},
    {NULL, "queued", "queued_packets", NULL, METRIC_GAUGE, OF_COUNTS(queued),
     "Packets that wait to be written."},
    {NULL, "dropped_kernel", "dropped_packets_total", "cause=\"kernel\"", METRIC_COUNTER,
     OF_COUNTS(dropped_kernel), DROPS},
    {NULL, "dropped_interface", "dropped_packets_total", "cause=\"interface\"", METRIC_COUNTER,
     OF_COUNTS(dropped_interface), DROPS},
    {NULL, "dropped_queue", "dropped_packets_total", "cause=\"queue\"", METRIC_COUNTER,
     OF_COUNTS(dropped_queue), DROPS},
    {NULL, "dropped_disk", "dropped_packets_total", "cause=\"disk\"", METRIC_COUNTER,
     OF_COUNTS(dropped_disk), DROPS},
    {NULL, "received_bytes", "received_bytes_total", NULL, METRIC_COUNTER,
     OF_COUNTS(received_bytes), "Length on the wire of the packets that were read."},
    {NULL, "kernel_received", "kernel_packets_total", NULL, METRIC_COUNTER,
     OF_COUNTS(kernel_received), "Packets that passed the filter in the kernel, dropped or not."},
};

static const struct metric interface_rows[] = {
    {NULL, NULL, "interface_up", NULL, METRIC_GAUGE, NUMBER_OF(struct interface_status, is_read),
     "Whether the interface is read (1), or is waited for (0)."},
    {NULL, "last_packet_ns", "last_packet_timestamp_seconds", NULL, METRIC_TIME,
     NUMBER_OF(struct interface_status, last_packet_ns), "When packets came last."},
    {NULL, "carrier", "interface_carrier", NULL, METRIC_TRUTH,
     NUMBER_OF(struct interface_status, has_carrier), "Whether the link is up."},
    {NULL, "carrier_losses", "interface_carrier_losses_total", NULL, METRIC_COUNTER,
     NUMBER_OF(struct interface_status, carrier_losses), "How often the link went down."},
    {NULL, "promiscuous", NULL, NULL, METRIC_TRUTH,
     NUMBER_OF(struct interface_status, is_promiscuous), NULL},
    {NULL, "mtu", NULL, NULL, METRIC_GAUGE, NUMBER_OF(struct interface_status, mtu), NULL},
    {NULL, "speed_bps", NULL, NULL, METRIC_GAUGE, NUMBER_OF(struct interface_status, speed_bps),
     NULL},
};

static const struct metric status_rows[] = {
    {NULL, "started_ns", "start_timestamp_seconds", NULL, METRIC_TIME, OF_STATUS(started_ns),
     "When the capture began."},
    {NULL, "last_loss_ns", "last_loss_timestamp_seconds", NULL, METRIC_TIME,
     OF_STATUS(last_loss_ns), "When a packet was lost last; absent before the first."},
    {NULL, "lag_ns", "lag_seconds", NULL, METRIC_TIME, OF_STATUS(lag_ns),
     "How long the oldest packet has waited to be written."},
    {NULL, "bytes", "written_bytes_total", NULL, METRIC_COUNTER, OF_STATUS(bytes),
     "Bytes of packets in files, before compression."},
    {NULL, "files", "files_total", NULL, METRIC_COUNTER, OF_STATUS(files),
     "Files that were begun."},
    {NULL, "unreadable_leftovers", "unreadable_files_total", NULL, METRIC_COUNTER,
     OF_STATUS(unreadable), "Files of earlier runs with a read error."},
    {NULL, "removed_files", "removed_files_total", NULL, METRIC_COUNTER, OF_STATUS(removed),
     "Files that a bound of the ring removed."},
    {NULL, "kept_spans", "kept_spans_total", NULL, METRIC_COUNTER, OF_STATUS(kept_spans),
     "Spans that were kept from removal."},
    {"buffer", "bytes", "buffer_bytes", NULL, METRIC_GAUGE, OF_STATUS(buffer_bytes),
     "Memory for packets that wait, without the kernel's rings."},
    {"buffer", "used_bytes", "buffer_used_bytes", NULL, METRIC_GAUGE, OF_STATUS(buffer_used_bytes),
     "The part of it that is in use."},
    {"disk", "bytes", "disk_bytes", NULL, METRIC_GAUGE, OF_STATUS(disk_bytes),
     "Size of the disk of the files."},
    {"disk", "free_bytes", "disk_free_bytes", NULL, METRIC_GAUGE, OF_STATUS(disk_free_bytes),
     "Free bytes of that disk."},
    {"disk", "full_ns", "disk_full_seconds", NULL, METRIC_TIME, OF_STATUS(disk_full_ns),
     "Time until the disk is full at the present rate; +Inf if a bound of the ring comes first."},
    {"ring", "files", "ring_files", NULL, METRIC_GAUGE, OF_STATUS(ring_files),
     "Finished files of the ring."},
    {"ring", "bytes", "ring_bytes", NULL, METRIC_GAUGE, OF_STATUS(ring_bytes), "Their bytes."},
    {"ring", "oldest_ns", "ring_oldest_timestamp_seconds", NULL, METRIC_TIME,
     OF_STATUS(ring_oldest_ns), "Begin of the oldest file of the ring."},
    {"ring", "full_ns", "ring_full_seconds", NULL, METRIC_TIME, OF_STATUS(ring_full_ns),
     "Time until a bound of the ring removes a file, at the present rate."},
    {"finishing", "done", "finishing_done_total", NULL, METRIC_COUNTER, OF_STATUS(finishing_done),
     "Files that are synced, compressed and indexed."},
    {"finishing", "waiting", "finishing_waiting", NULL, METRIC_GAUGE, OF_STATUS(finishing_waiting),
     "Files that are written, and wait for that."},
    {"finishing", "failed", "finishing_failed_total", NULL, METRIC_COUNTER,
     OF_STATUS(finishing_failed), "Attempts to compress or index that failed."},
    {"finishing", "given_up", "finishing_given_up_total", NULL, METRIC_COUNTER,
     OF_STATUS(finishing_given_up), "Files that stay without compression, index or name."},
    {"commands", "done", "commands_done_total", NULL, METRIC_COUNTER, OF_STATUS(commands_done),
     "Files whose on-close command succeeded."},
    {"commands", "waiting", "commands_waiting", NULL, METRIC_GAUGE, OF_STATUS(commands_waiting),
     "Files whose on-close command has not succeeded yet."},
    {"commands", "failed", "commands_failed_total", NULL, METRIC_COUNTER,
     OF_STATUS(commands_failed), "Runs of on-close commands that failed."},
    {"commands", "failing", "commands_failing", NULL, METRIC_GAUGE, OF_STATUS(commands_failing),
     "Whether the last run of an on-close command failed."},
    {"commands", "given_up", "commands_given_up_total", NULL, METRIC_COUNTER,
     OF_STATUS(commands_given_up), "Files whose on-close command was given up."},
    {"commands", "removed_early", "commands_removed_early_total", NULL, METRIC_COUNTER,
     OF_STATUS(removed_pending), "Files that were removed before their command succeeded."},
    {"clock", "synchronized", "clock_synchronized", NULL, METRIC_TRUTH,
     OF_STATUS(clock_is_synchronized), "Whether a program keeps the clock synchronized."},
    {"clock", "error_ns", "clock_error_seconds", NULL, METRIC_TIME, OF_STATUS(clock_error_ns),
     "Greatest error of the clock that this program states."},
    {"clock", "offset_ns", "clock_offset_seconds", NULL, METRIC_OFFSET, OF_STATUS(clock_offset_ns),
     "Offset of the clock that is being corrected."},
    {"clock", "steps", "clock_steps_total", NULL, METRIC_COUNTER, OF_STATUS(clock_steps),
     "How often the clock was set."},
    {"clock", "last_step_ns", "clock_last_step_seconds", NULL, METRIC_OFFSET,
     OF_STATUS(clock_step_ns), "By how much it was set last."},
    {"tcp", "segments", "tcp_segments_total", NULL, METRIC_COUNTER, OF_STATUS(tcp_segments),
     "TCP segments with data, as --keep-on retransmissions counts them."},
    {"tcp", "repeated", "tcp_repeated_segments_total", NULL, METRIC_COUNTER,
     OF_STATUS(tcp_repeated), "Of them, those that were sent again or came out of order."},
    {"mirror", "good", "mirror_good", NULL, METRIC_TRUTH, OF_STATUS(mirror_is_good),
     "Whether the mirror port delivers both directions, once, with their tags."},
    {"mirror", "packets", NULL, NULL, METRIC_COUNTER, OF_STATUS(mirror.packets), NULL},
    {"mirror", "foreign_packets", "mirror_foreign_packets_total", NULL, METRIC_COUNTER,
     OF_STATUS(mirror.foreign), "Packets between two other hosts."},
    {"mirror", "segments", "mirror_segments_total", NULL, METRIC_COUNTER,
     OF_STATUS(mirror.segments), "TCP segments."},
    {"mirror", "copies", "mirror_copies_total", NULL, METRIC_COUNTER, OF_STATUS(mirror.copies),
     "Segments that came again."},
    {"mirror", "connections", "mirror_connections_total", NULL, METRIC_COUNTER,
     OF_STATUS(mirror.judged), "TCP connections that were judged, long ones several times."},
    {"mirror", "one_sided", "mirror_one_sided_total", NULL, METRIC_COUNTER,
     OF_STATUS(mirror.one_sided), "Of them, those with one direction."},
    {"mirror", "split_tags", "mirror_split_tags_total", NULL, METRIC_COUNTER,
     OF_STATUS(mirror.split_tags), "Of them, those with VLAN tags in one direction."},
};

/* Words of enum status_state in the JSON lines; programs depend on them. */
static const char *const states[] = {"starting", "waiting",  "capturing", "holding",
                                     "dropping", "stopping", "ended"};

static int64_t number_at(const struct metric *row, const void *of) {
    int64_t number;
    memcpy(&number, (const char *)of + row->offset, sizeof number);
    return number;
}

/* A stream has no disk; not each capture has a ring or commands. */
static bool is_there(const struct metric *row, const struct status *status) {
    if (!row->object)
        return true;
    return !strcmp(row->object, "commands")    ? status->has_commands
           : !strcmp(row->object, "ring")      ? status->has_ring
           : !strcmp(row->object, "finishing") ? status->has_finishing
           : !strcmp(row->object, "disk")      ? status->disk_free_bytes >= 0
           : !strcmp(row->object, "mirror")    ? status->has_mirror
           : !strcmp(row->object, "tcp")       ? status->has_tcp
                                               : true;
}

static void put_number(struct json *json, const struct metric *row, const void *of) {
    int64_t number = number_at(row, of);
    if (!row->key)
        return;
    if (row->kind == METRIC_OFFSET)
        json_decimal(json, row->key, (double)number, number != INT64_MIN);
    else if (row->kind == METRIC_TRUTH && number >= 0)
        json_bool(json, row->key, number);
    else
        json_count(json, row->key, number == NEVER_NS ? -1 : number);
}

static void put_numbers(struct json *json, const struct metric *rows, size_t count,
                        const void *of) {
    for (size_t i = 0; i < count; i++)
        put_number(json, &rows[i], of);
}

static void put_status(struct json *json, const struct status *status) {
    const char *object = NULL;
    for (size_t i = 0; i < sizeof status_rows / sizeof *status_rows; i++) {
        const struct metric *row = &status_rows[i];
        if (!is_there(row, status))
            continue;
        if (object && object != row->object)
            json_close(json, '}');
        if (row->object && object != row->object)
            json_open(json, row->object, '{');
        if (row->object && object != row->object && !strcmp(row->object, "mirror"))
            json_text(json, "fault", status->mirror_fault);
        object = row->object;
        put_number(json, row, status);
    }
    if (object)
        json_close(json, '}');
}

static void put_interface(struct json *json, const struct interface_status *interface) {
    static const char *const words[] = {"waiting", "reading", "ended"};
    json_open(json, NULL, '{');
    json_text(json, "name", interface->name);
    json_text(json, "state", words[interface->state]);
    put_numbers(json, ROWS_OF(packet_rows), &interface->counts);
    put_numbers(json, ROWS_OF(interface_rows), interface);
    json_close(json, '}');
}

/* Closes a stream into memory. Returns the length of its text, or 0 if it did not fit. */
static size_t end_text(FILE *out) {
    long length = ftell(out);
    return fclose(out) || length < 0 || length >= METRICS_SIZE - 1 ? 0 : (size_t)length;
}

size_t metrics_json(const struct status *status, char text[METRICS_SIZE]) {
    struct json json = {.out = fmemopen(text, METRICS_SIZE, "w")};
    if (!json.out)
        return 0;
    json_open(&json, NULL, '{');
    json_text(&json, "schema", "wiretale.capture/1");
    json_text(&json, "wiretale", WIRETALE_VERSION);
    json_text(&json, "state", states[status->state]);
    json_count(&json, "time_ns", realtime_ns());
    put_numbers(&json, ROWS_OF(packet_rows), &status->all);
    json_text(&json, "file", *status->file ? status->file : NULL);
    put_status(&json, status);
    json_open(&json, "interfaces", '[');
    for (uint32_t i = 0; i < status->interface_count; i++)
        put_interface(&json, &status->interfaces[i]);
    json_close(&json, ']');
    json_close(&json, '}');
    fputc('\n', json.out);
    return end_text(json.out);
}

static void put_head(FILE *out, const char *name, enum metric_kind kind, const char *help) {
    fprintf(out, "# HELP " METRICS_PREFIX "%s %s\n# TYPE " METRICS_PREFIX "%s %s\n", name, help,
            name, kind == METRIC_COUNTER ? "counter" : "gauge");
}

/* Label values are UTF-8, in which quotation marks and backslashes are escaped. */
static void put_interface_label(FILE *out, const char *name) {
    char text[64]; /* names of Linux have up to 15 bytes */
    utf8_copy_printable(text, sizeof text, name, strlen(name));
    fputs("interface=\"", out);
    for (const char *at = text; *at; at++)
        fprintf(out, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
    fputc('"', out);
}

static void put_sample(FILE *out, const struct metric *row, const void *of, const char *interface) {
    int64_t number = number_at(row, of);
    if (row->kind == METRIC_OFFSET ? number == INT64_MIN : number < 0)
        return;
    fprintf(out, METRICS_PREFIX "%s", row->name);
    if (interface || row->labels)
        fputc('{', out);
    if (interface)
        put_interface_label(out, interface);
    if (row->labels)
        fprintf(out, "%s%s", interface ? "," : "", row->labels);
    if (interface || row->labels)
        fputc('}', out);
    if (row->kind == METRIC_OFFSET)
        fprintf(out, " %.9f\n", (double)number / NS_PER_S);
    else if (row->kind != METRIC_TIME)
        fprintf(out, " %lld\n", (long long)number);
    else if (number == NEVER_NS)
        fputs(" +Inf\n", out);
    else
        fprintf(out, " %lld.%09lld\n", (long long)(number / NS_PER_S),
                (long long)(number % NS_PER_S));
}

/* `at` is the offset of the rows' numbers in struct interface_status. */
static void put_interfaces(FILE *out, const struct metric *rows, size_t count,
                           const struct status *status, size_t at) {
    for (size_t i = 0; i < count; i++) {
        if (!rows[i].name)
            continue;
        if (!i || strcmp(rows[i].name, rows[i - 1].name) != 0)
            put_head(out, rows[i].name, rows[i].kind, rows[i].help);
        for (uint32_t j = 0; j < status->interface_count; j++)
            put_sample(out, &rows[i], (const char *)&status->interfaces[j] + at,
                       status->interfaces[j].name);
    }
}

static void put_state(FILE *out, const struct status *status) {
    put_head(out, "build_info", METRIC_GAUGE, "The version that runs.");
    fprintf(out, METRICS_PREFIX "build_info{version=\"%s\"} 1\n", WIRETALE_VERSION);
    put_head(out, "state", METRIC_GAUGE, "What the capture does: 1 for one of the states.");
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        fprintf(out, METRICS_PREFIX "state{state=\"%s\"} %d\n", states[i],
                i == (size_t)status->state);
}

size_t metrics_prometheus(const struct status *status, char text[METRICS_SIZE]) {
    FILE *out = fmemopen(text, METRICS_SIZE, "w");
    if (!out)
        return 0;
    put_state(out, status);
    for (size_t i = 0; i < sizeof status_rows / sizeof *status_rows; i++) {
        const struct metric *row = &status_rows[i];
        if (!row->name || !is_there(row, status))
            continue;
        put_head(out, row->name, row->kind, row->help);
        put_sample(out, row, status, NULL);
    }
    put_interfaces(out, ROWS_OF(packet_rows), status, offsetof(struct interface_status, counts));
    put_interfaces(out, ROWS_OF(interface_rows), status, 0);
    fputs(METRICS_END, out);
    return end_text(out);
}
