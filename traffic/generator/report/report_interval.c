/* SPDX-License-Identifier: Apache-2.0 */
/* Lines while a transfer runs. The counters belong to stream threads and are read without a lock:
 * each is exact, but they may be of slightly different times. */
#include "report/report.h"

struct line {
    uint64_t run;
    const char *direction, *end;
    double from_s, to_s, rate; /* bytes per second */
    int64_t change[LIVE_COUNTERS];
};

static void put_json(const struct line *line, bool sender, const struct report_style *style) {
    struct json json = {.out = style->out};
    json_open(&json, NULL, '{');
    json_text(&json, "schema", "wiretale.interval/1");
    json_text(&json, "role", style->role);
    json_count(&json, "run", (int64_t)line->run);
    json_text(&json, "way", line->direction);
    json_text(&json, "end", line->end);
    json_decimal(&json, "from_s", line->from_s, true);
    json_decimal(&json, "to_s", line->to_s, true);
    json_count(&json, sender ? "blocks_sent" : "blocks_received", line->change[LIVE_BLOCKS]);
    json_count(&json, sender ? "bytes_sent" : "bytes_received", line->change[LIVE_BYTES]);
    json_decimal(&json, "rate_kb_s", line->rate / 1e3, true);
    json_decimal(&json, "rate_mbit_s", line->rate * 8 / 1e6, true);
    if (!sender) {
        json_decimal(&json, "blocks_missing", (double)line->change[LIVE_MISSING], true);
        json_count(&json, "blocks_out_of_order", line->change[LIVE_OUT_OF_ORDER]);
        json_count(&json, "blocks_duplicate", line->change[LIVE_DUPLICATE]);
        json_count(&json, "blocks_corrupt", line->change[LIVE_CORRUPT]);
    }
    json_close(&json, '}');
    fputc('\n', style->out);
}

static void put_text(const struct line *line, bool sender, const struct report_style *style) {
    const struct rate_unit *unit = rate_unit_of(style->format);
    fprintf(style->out, "  %7.2f-%.2f s %s %s %llu blocks, %.2f %s", line->from_s, line->to_s,
            line->direction, line->end, (unsigned long long)line->change[LIVE_BLOCKS],
            unit ? line->rate / unit->bytes : line->rate * 8 / 1e6, unit ? unit->name : "Mbit/s");
    if (!sender)
        fprintf(style->out, ", %lld missing", (long long)line->change[LIVE_MISSING]);
    fputc('\n', style->out);
}

/* Times are ns since the start; `to_ns` must be later. Updates `shown`, so that each change appears
 * once. Missing blocks are those below the highest number, as far
 * as this end can see; the change may be negative, because late blocks fill gaps. */
void report_interval(struct transfer *transfer, uint64_t from_ns, uint64_t to_ns,
                     const struct report_style *style) {
    flockfile(style->out);
    for (unsigned name = 0; name < DIRECTIONS; name++) {
        struct direction *direction = &transfer->directions[name];
        if (!direction->is_active)
            continue;
        struct line line = {
            .run = transfer->plan.run,
            .direction = direction_names[name],
            .end = direction->is_sending ? "sender" : "receiver",
            .from_s = (double)from_ns / 1e9,
            .to_s = (double)to_ns / 1e9,
        };
        for (unsigned i = 0; i < LIVE_COUNTERS; i++) {
            uint64_t now = 0;
            for (uint32_t k = 0; k < direction->count; k++)
                now += direction->streams[k].live[i];
            line.change[i] = (int64_t)(now - transfer->shown[name][i]);
            transfer->shown[name][i] = now;
        }
        line.rate = (double)line.change[LIVE_BYTES] * 1e9 / (double)(to_ns - from_ns);
        (style->json ? put_json : put_text)(&line, direction->is_sending, style);
    }
    fflush(style->out);
    funlockfile(style->out);
}
