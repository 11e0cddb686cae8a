/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "report/report.h"
#include "report/totals.h"
#include "transfer/program_name.h"
#include "transfer/units.h"

static void format_rate(char *text, size_t room, const struct report_style *style, double rate) {
    const struct rate_unit *unit = units_rate_unit(style->format);
    if (rate <= 0) /* one datagram, or one batch, has no time */
        snprintf(text, room, "rate unknown");
    else if (unit)
        snprintf(text, room, "%.2f %s", rate / unit->bytes, unit->name);
    else
        snprintf(text, room, "%.3f Mbit/s = %.1f KB/s", rate * 8 / 1e6, rate / 1e3);
}

static void put_line(const struct report_style *style, const struct test *test, const char *who,
                     const struct stream_report *report, bool sender) {
    char rate[80];
    format_rate(rate, sizeof rate, style, report_bytes_per_s(test, report, sender));
    fprintf(style->out, "  %-9s %12llu blocks %15llu bytes in %10.6f s  %s  cpu %.3f s\n", who,
            (unsigned long long)(sender ? report->blocks_sent : report->blocks_received),
            (unsigned long long)(sender ? report->bytes_sent : report->bytes_received),
            (double)report->elapsed_ns / 1e9, rate,
            ((double)report->cpu_user_ns + (double)report->cpu_system_ns) / 1e9);
}

static void put_loss(const struct report_style *style, const struct way_totals *totals) {
    const struct stream_report *got = &totals->receiver;
    int64_t lost = blocks_lost(totals->sender_known, &totals->sender, got);
    fprintf(style->out, "  of which  ");
    if (lost < 0)
        fprintf(style->out, "%llu missing (how many were sent is unknown)",
                (unsigned long long)got->missing);
    else
        fprintf(style->out, "%lld lost (%.3f%%)", (long long)lost,
                totals->sender.blocks_sent
                    ? 100.0 * (double)lost / (double)totals->sender.blocks_sent
                    : 0);
    fprintf(style->out, ", %llu out of order, %llu duplicate, %llu corrupt",
            (unsigned long long)got->out_of_order, (unsigned long long)got->duplicate,
            (unsigned long long)got->corrupt);
    if (got->jitter_ns_plus_1)
        fprintf(style->out, ", jitter %.3f ms", (double)(got->jitter_ns_plus_1 - 1) / 1e6);
    if (got->dropped_plus_1 > 1)
        fprintf(style->out, "; the receiving host itself dropped %llu",
                (unsigned long long)got->dropped_plus_1 - 1);
    fputc('\n', style->out);
}

static void put_streams(const struct report_style *style, const struct way *way) {
    char who[24];
    for (uint32_t i = 0; way->count > 1 && i < way->count; i++) {
        const struct stream_report *got = stream_told(&way->streams[i], false);
        const struct stream_report *sent = stream_told(&way->streams[i], true);
        snprintf(who, sizeof who, "stream %u", i);
        if (got || sent)
            put_line(style, way->test, who, got ? got : sent, !got);
    }
}

static void put_way(const struct report_style *style, const struct way *way) {
    struct way_totals totals = way_totals_of(way);
    put_streams(style, way);
    if (totals.sender_known)
        put_line(style, way->test, "sent", &totals.sender, true);
    if (totals.sender_known && totals.sender.errors[0])
        fprintf(style->out, "  sends that failed: %s\n", totals.sender.errors);
    if (!totals.receiver_known) {
        fprintf(style->out, "  received  unknown: the receiver did not say\n");
        return;
    }
    put_line(style, way->test, "received", &totals.receiver, false);
    put_loss(style, &totals);
}

static void put_content(const struct report_style *style, const struct content *content) {
    const char *same = !content->mine[0] || !content->theirs[0]  ? "not compared"
                       : !strcmp(content->mine, content->theirs) ? "same at both ends"
                                                                 : "DIFFERENT at the ends";
    fprintf(style->out, "  file %s, %llu bytes, checksum %s%s\n", content->name,
            (unsigned long long)content->bytes, same, content->kept ? ", written" : "");
}

static void put_warnings(const struct report_style *style, const struct test *test) {
    double link = (double)test->link_bps / 1e6;
    if (test_exceeds_link(test, false) > 0)
        fprintf(style->out,
                "  warning: the received rate is above the link's %.12g Mbit/s: too short a test, "
                "or not this link\n",
                link);
    if (test_exceeds_link(test, true) > 0)
        fprintf(style->out,
                "  note: the sent rate is above the link's %.12g Mbit/s: buffers took the blocks "
                "faster\n",
                link);
}

void report_table(const struct test *test, const struct report_style *style) {
    const struct test_plan *plan = &test->plan;
    char address[ADDRESS_ROOM];
    endpoint_name(&test->peer, address);
    fprintf(style->out, "%s %s %s: %s, blocks of %s bytes, %llu stream%s, run %llu\n",
            protocol_names[plan->protocol], test->asks ? "to" : "from", address,
            direction_names[plan->direction], plan->sizes_text, (unsigned long long)plan->streams,
            plan->streams == 1 ? "" : "s", (unsigned long long)plan->run);
    for (unsigned name = 0; name < WAYS; name++) {
        if (!test->ways[name].is_active)
            continue;
        if (plan->direction == DIRECTION_BOTH)
            fprintf(style->out, " %s\n", way_names[name]);
        put_way(style, &test->ways[name]);
    }
    if (plan->content)
        put_content(style, &test->content);
    put_warnings(style, test);
    if (test->stopped_by)
        fprintf(style->out, "  STOPPED EARLY at the %s: %s%s%s\n", test->stopped_at,
                test->stopped_by, test->trouble[0] ? ": " : "", test->trouble);
}

static bool is_written(FILE *out) {
    errno = 0;
    if ((!fflush(out) && !ferror(out)) || errno == EPIPE)
        return true;
    program_say("the report cannot be written: %s",
                errno ? strerror(errno) : "the output failed before");
    return false;
}

bool report_test(const struct test *test, const struct report_style *style) {
    if (style->quiet && !style->json)
        return true;
    (style->json ? report_json : report_table)(test, style);
    return is_written(style->out);
}
