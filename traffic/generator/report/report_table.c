/* SPDX-License-Identifier: Apache-2.0 */
/* The report as a table for people, on standard output.
 *
 * A figure that is unknown is named so or left out, never printed as 0. Warnings about rates stand
 * below the figures to which they refer. */
#include <string.h>

#include "common/log.h"
#include "common/units_text.h"
#include "common/utf8.h"
#include "report/report.h"

/* Formats bytes per second in the unit of -f, else in the one that fits. */
static void format_rate(char *text, size_t room, const struct report_style *style, double rate) {
    const struct rate_unit *unit = rate_unit_of(style->format);
    if (rate <= 0) /* a single datagram or batch has no duration */
        snprintf(text, room, "rate unknown");
    else if (unit)
        snprintf(text, room, "%.2f %s/s", rate / unit->bytes, unit->name);
    else
        snprintf(text, room, "%s", UNITS_SHOW(SHOWN_RATE, rate * 8));
}

/* Right-aligned in so many columns; a byte that continues a character has none. */
static void put_cell(FILE *out, const char *text, int columns) {
    for (const char *at = text; *at; at++)
        columns -= ((unsigned char)*at & 0xc0) != 0x80;
    fprintf(out, "%*s%s", columns > 0 ? columns : 0, "", text);
}

/* `sender` chooses between the counts of sent and received blocks. */
static void put_line(const struct report_style *style, const struct transfer *transfer,
                     const char *who, const struct stream_report *report, bool sender) {
    char rate[80];
    format_rate(rate, sizeof rate, style, report_bytes_per_s(transfer, report, sender));
    fprintf(style->out, "  %-9s", who);
    put_cell(style->out,
             UNITS_SHOW(SHOWN_COUNT, sender ? report->blocks_sent : report->blocks_received), 12);
    fputs(" blocks", style->out);
    put_cell(style->out,
             UNITS_SHOW(SHOWN_BYTES, sender ? report->bytes_sent : report->bytes_received), 10);
    put_cell(style->out, UNITS_SHOW(SHOWN_DURATION, report->elapsed_ns), 13);
    put_cell(style->out, rate, 16);
    fputc('\n', style->out);
}

static double cpu_ns(const struct stream_report *report) {
    return (double)report->cpu_user_ns + (double)report->cpu_system_ns;
}

/* What came of it, in one sentence. */
static void put_answer(const struct report_style *style, const struct direction *direction) {
    struct direction_totals totals = direction_totals_of(direction);
    uint64_t sent = totals.sender.blocks_sent;
    const char *over = transfer_is_udp(direction->transfer) ? "UDP" : "TCP";
    char rate[80];
    if (!totals.receiver_known && !totals.sender_known) {
        fputs("Neither end reported its blocks.\n", style->out);
        return;
    }
    if (!totals.receiver_known) {
        fprintf(style->out, "%s blocks were sent over %s; whether they arrived is unknown.\n",
                UNITS_SHOW(SHOWN_COUNT, sent), over);
        return;
    }
    if (totals.lost < 0)
        fprintf(style->out, "%s blocks arrived over %s",
                UNITS_SHOW(SHOWN_COUNT, totals.receiver.blocks_received), over);
    else
        fprintf(style->out, "%s of %s block%s arrived over %s",
                UNITS_SHOW(SHOWN_COUNT, (int64_t)sent - totals.lost), UNITS_SHOW(SHOWN_COUNT, sent),
                sent == 1 ? "" : "s", over);
    if (totals.lost > 0)
        fprintf(style->out, " (%s lost)", UNITS_SHOW_SHARE(totals.lost, sent));
    double bytes_per_s = report_bytes_per_s(direction->transfer, &totals.receiver, false);
    format_rate(rate, sizeof rate, style, bytes_per_s);
    if (bytes_per_s > 0)
        fprintf(style->out, ": %s for %s", rate,
                UNITS_SHOW(SHOWN_DURATION, totals.receiver.elapsed_ns));
    fputs(totals.receiver.corrupt ? "; some were damaged.\n" : ".\n", style->out);
}

/* Without the sender's report, only blocks below the highest number are known to be missing. */
static void put_loss(const struct report_style *style, const struct direction_totals *totals) {
    const struct stream_report *got = &totals->receiver;
    int64_t lost = totals->lost;
    fprintf(style->out, "  of which  ");
    if (lost < 0)
        fprintf(style->out, "%llu missing (how many were sent is unknown)",
                (unsigned long long)got->missing);
    else
        fprintf(style->out, "%lld lost (%s)", (long long)lost,
                UNITS_SHOW_SHARE(lost, totals->sender.blocks_sent));
    fprintf(style->out, ", %llu out of order, %llu duplicate, %llu corrupt",
            (unsigned long long)got->out_of_order, (unsigned long long)got->duplicate,
            (unsigned long long)got->corrupt);
    if (got->jitter_ns_plus_1)
        fprintf(style->out, ", jitter %s", UNITS_SHOW(SHOWN_DURATION, got->jitter_ns_plus_1 - 1));
    if (got->dropped_plus_1 > 1)
        fprintf(style->out, "; the receiving host itself dropped %llu",
                (unsigned long long)got->dropped_plus_1 - 1);
    fputc('\n', style->out);
}

/* One line for each stream if there are several: of its receiver if it reported, else of its
 * sender. */
static void put_streams(const struct report_style *style, const struct direction *direction) {
    char who[24];
    for (uint32_t i = 0; direction->count > 1 && i < direction->count; i++) {
        const struct stream_report *got = stream_report_of(&direction->streams[i], false);
        const struct stream_report *sent = stream_report_of(&direction->streams[i], true);
        snprintf(who, sizeof who, "stream %u", i);
        if (got || sent)
            put_line(style, direction->transfer, who, got ? got : sent, !got);
    }
}

static const char *pace_of(const struct transfer *transfer, const struct stream_report *sent) {
    int kept = sender_kept_pace(transfer, sent);
    return kept < 0 ? "" : kept ? "constant rate; " : "NOT a constant rate; ";
}

/* A run whose sender was held up must not be quoted as one of constant rate. */
static void put_pace(const struct report_style *style, const struct transfer *transfer,
                     const struct direction_totals *totals) {
    const struct stream_report *sent = &totals->sender;
    if (transfer->plan.pacing == PACING_NONE || !sent->blocks_sent)
        return;
    fprintf(style->out,
            "  %slargest burst %llu%s%s\n  sent late by %s (median), %s (99%%), %s (max)\n",
            pace_of(transfer, sent), (unsigned long long)sent->largest_burst,
            transfer->plan.kernel_pacing ? "; sent by the kernel when due" : "",
            sent->real_time ? "; real-time priority" : "",
            UNITS_SHOW(SHOWN_DURATION, sent->late_p50_ns),
            UNITS_SHOW(SHOWN_DURATION, sent->late_p99_ns),
            UNITS_SHOW(SHOWN_DURATION, sent->late_max_ns));
    if (sent->moved_ns)
        fprintf(style->out, "  the schedule was moved by %s (--burst-cap, or a pause)\n",
                UNITS_SHOW(SHOWN_DURATION, sent->moved_ns));
    if (totals->receiver_known && totals->receiver.missing_in_catch_up)
        fprintf(style->out, "  %llu missing blocks are beside such as were sent in catching up\n",
                (unsigned long long)totals->receiver.missing_in_catch_up);
}

/* A delay without its error must not be quoted. */
static void put_delay(const struct report_style *style, const struct transfer *transfer,
                      const struct stream_report *got) {
    if (!got->delay_p50_ns_plus_1)
        return;
    fprintf(style->out, "  one-way delay %s (median), %s (99%%), %s (max)",
            UNITS_SHOW(SHOWN_DURATION, got->delay_p50_ns_plus_1 - 1),
            UNITS_SHOW(SHOWN_DURATION, got->delay_p99_ns_plus_1 - 1),
            UNITS_SHOW(SHOWN_DURATION, got->delay_max_ns_plus_1 - 1));
    if (transfer->clock.is_same)
        fprintf(style->out, "; same clock\n");
    else
        fprintf(style->out, "; ±%s (clocks)\n",
                UNITS_SHOW(SHOWN_DURATION, transfer->clock.error_ns));
}

static void put_direction(const struct report_style *style, const struct direction *direction) {
    struct direction_totals totals = direction_totals_of(direction);
    put_streams(style, direction);
    if (totals.sender_known)
        put_line(style, direction->transfer, "sent", &totals.sender, true);
    if (totals.sender_known && totals.sender.errors[0])
        fprintf(style->out, "  sends that failed: %s\n", totals.sender.errors);
    if (totals.sender_known && totals.sender.blocks_offloaded)
        fprintf(style->out, "  %llu of the blocks were sent in joined datagrams (offload)\n",
                (unsigned long long)totals.sender.blocks_offloaded);
    put_pace(style, direction->transfer, &totals);
    if (totals.sender_known && totals.sender.responses)
        fprintf(style->out,
                "  %llu responses, %llu bytes; turns took %s (median), %s (99%%), %s (max)\n",
                (unsigned long long)totals.sender.responses,
                (unsigned long long)totals.sender.response_bytes,
                UNITS_SHOW(SHOWN_DURATION, totals.sender.turn_p50_ns),
                UNITS_SHOW(SHOWN_DURATION, totals.sender.turn_p99_ns),
                UNITS_SHOW(SHOWN_DURATION, totals.sender.turn_max_ns));
    if (totals.sender_known && totals.sender.paused_ns)
        fprintf(style->out, "  sending paused for %s, because the receiving end was silent\n",
                UNITS_SHOW(SHOWN_DURATION, totals.sender.paused_ns));
    if (!totals.receiver_known) {
        fprintf(style->out, "  received  unknown: the receiver did not report\n");
        return;
    }
    put_line(style, direction->transfer, "received", &totals.receiver, false);
    if (totals.sender_known)
        fprintf(style->out, "  CPU time  %s at the sender, %s at the receiver\n",
                UNITS_SHOW(SHOWN_DURATION, cpu_ns(&totals.sender)),
                UNITS_SHOW(SHOWN_DURATION, cpu_ns(&totals.receiver)));
    put_loss(style, &totals);
    put_delay(style, direction->transfer, &totals.receiver);
    struct losses losses = losses_of(direction, &totals);
    if (transfer_is_udp(direction->transfer))
        report_losses_table(style->out, &losses);
}

/* A name that could be taken for an option gets its folder. */
static void put_content(const struct report_style *style, const struct content *content) {
    const char *same = !content->own[0] || !content->peer[0]  ? "not compared"
                       : !strcmp(content->own, content->peer) ? "same at both ends"
                                                              : "DIFFERENT at the ends";
    fputs(content->name[0] == '-' ? "  file ./" : "  file ", style->out);
    utf8_put_printable(style->out, content->name);
    fprintf(style->out, ", %llu bytes, checksum %s%s\n", (unsigned long long)content->bytes, same,
            content->kept ? ", written" : "");
}

/* A rate above the link's rate is not that of the wire, and must not be quoted as such. */
static void put_warnings(const struct report_style *style, const struct transfer *transfer) {
    const char *link = UNITS_SHOW(SHOWN_RATE, transfer->link_bps);
    if (transfer_exceeds_link(transfer, false) > 0)
        fprintf(style->out,
                "  warning: the received rate is above the link's %s: too short a test, "
                "or not this link\n",
                link);
    if (transfer_exceeds_link(transfer, true) > 0)
        fprintf(style->out,
                "  note: the sent rate is above the link's %s: buffers took the blocks "
                "faster\n",
                link);
}

static void report_table(const struct transfer *transfer, const struct report_style *style) {
    const struct transfer_plan *plan = &transfer->plan;
    char address[ADDRESS_SIZE];
    endpoint_name(&transfer->peer, address);
    for (unsigned name = 0; name < DIRECTIONS; name++) {
        if (!transfer->directions[name].is_active)
            continue;
        if (plan->direction == DIRECTION_BOTH)
            fprintf(style->out, "%s: ", direction_names[name]);
        put_answer(style, &transfer->directions[name]);
    }
    fprintf(style->out, "%s %s %s: %s, blocks of %s bytes, %llu stream%s, run %llu\n",
            protocol_names[plan->protocol], transfer->is_initiator ? "to" : "from", address,
            direction_names[plan->direction], plan->sizes_text, (unsigned long long)plan->streams,
            plan->streams == 1 ? "" : "s", (unsigned long long)plan->run);
    for (unsigned name = 0; name < DIRECTIONS; name++) {
        if (!transfer->directions[name].is_active)
            continue;
        if (plan->direction == DIRECTION_BOTH)
            fprintf(style->out, " %s\n", direction_names[name]);
        put_direction(style, &transfer->directions[name]);
    }
    if (plan->content)
        put_content(style, &transfer->content);
    put_warnings(style, transfer);
    if (transfer->stopped_by) {
        fprintf(style->out, "  STOPPED EARLY at the %s: %s%s", transfer->stopped_at,
                transfer->stopped_by, transfer->error_text[0] ? ": " : "");
        utf8_put_printable(style->out, transfer->error_text);
        fputc('\n', style->out);
    }
}

/* The lock is held for the whole report, so that reports of parallel transfers do not mix. */
bool report_transfer(const struct transfer *transfer, const struct report_style *style) {
    if (style->quiet && !style->json)
        return true;
    flockfile(style->out);
    (style->json ? report_json : report_table)(transfer, style);
    bool written = finish_output(style->out);
    funlockfile(style->out);
    return written;
}
