/* SPDX-License-Identifier: Apache-2.0 */
/* The command line as a table (common/options.h). Letters are those of tcpdump, and of dumpcap if
 * tcpdump has none, so that most command lines for these programs work unchanged. Combinations that
 * cannot be meant are refused after all options are read, because their order must not matter. */
#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/options.h"
#include "common/units.h"
#include "directory/path.h"

#define DEFAULT_BUFFER_BYTES (160u << 20)
#define RING_PART            5          /* of the memory, for the kernel's rings */
#define RING_LEAST           (2u << 20) /* as of tcpdump and dumpcap */
#define MIN_FILE_BYTES       4096
#define DEFAULT_ON_CLOSE_NS  (3600 * NS_PER_S)
#define DEFAULT_TRIES        20 /* over about an hour */
/* Bytes of each packet in which its headers end: Ethernet, VLANs, a tunnel, IPv6, TCP options. */
#define SNAPLEN_HEADERS 256u

/* Duplicates are allowed, because a number and a name can stand for the same interface. */
static bool add_interface(void *into, const char *name, const char **expected) {
    struct settings *settings = into;
    _Static_assert(DEVICES_MAX == 32, "as the message says");
    *expected = *name ? "at most 32 interfaces" : "a name or number";
    if (settings->interface_count == DEVICES_MAX || !*name)
        return false;
    settings->interfaces[settings->interface_count++] = name;
    return true;
}

/* 0 and values above the maximum record whole packets, as in tcpdump. */
static bool set_snaplen(void *into, const char *text, const char **expected) {
    struct settings *settings = into;
    *expected = "a size as in 96 or 64k";
    if (!units_parse_whole(text, UNIT_SIZE, "", &settings->snaplen))
        return false;
    if (!settings->snaplen || settings->snaplen > RECORD_SNAPLEN_MAX) /* 0: all, as in tcpdump */
        settings->snaplen = RECORD_SNAPLEN_MAX;
    return true;
}

/* A condition of -a or -b: a name with a value. */
struct condition {
    const char *name; /* ends with a colon */
    enum unit_kind kind;
    size_t offset; /* of the value in struct settings */
};

#define CONDITION(name, kind, member)                                                              \
    { name, kind, offsetof(struct settings, member) }

/* Parses NAME:VALUE and stores the value. Sets `expected` if the name is known, so that the error
 * names the missing value. */
static bool take_condition(struct settings *settings, const struct condition *conditions,
                           const char *text, const char **expected) {
    static const char *const values[] = {
        [UNIT_SIZE] = "a size after the colon, as in 64k, 8MB or 64MiB",
        [UNIT_TIME] = "a time above 0 after the colon, as in 200ms, 10s or 1h",
        [UNIT_COUNT] = "a whole number above 0 after the colon, as in 100 or 10k",
    };
    for (const struct condition *at = conditions; at->name; at++) {
        size_t length = strlen(at->name);
        if (strncmp(text, at->name, length))
            continue;
        uint64_t value;
        *expected = values[at->kind];
        if (!units_parse_whole(text + length, at->kind, at->kind == UNIT_SIZE ? "kB" : "", &value))
            return false;
        memcpy((char *)settings + at->offset, &value, sizeof value);
        return value || at->kind == UNIT_SIZE;
    }
    return false;
}

/* -b accepts the forms of dumpcap, and a size alone. interval: also aligns files to multiples of
 * it. */
static bool set_rotation(void *into, const char *text, const char **expected) {
    static const struct condition conditions[] = {
        CONDITION("filesize:", UNIT_SIZE, file_bytes),
        CONDITION("duration:", UNIT_TIME, file_ns),
        CONDITION("interval:", UNIT_TIME, file_ns),
        CONDITION("packets:", UNIT_COUNT, file_packets),
        CONDITION("files:", UNIT_COUNT, ring_files),
        {0},
    };
    struct settings *settings = into;
    settings->align |= !strncmp(text, "interval:", strlen("interval:"));
    if (units_parse_whole(text, UNIT_SIZE, "MB", &settings->file_bytes) && settings->file_bytes)
        return true; /* a size alone, as with tcpdump's -C */
    *expected = "filesize:, duration:, interval:, packets: or files: and a value";
    return take_condition(settings, conditions, text, expected);
}

/* Conditions that end the capture; the first that is met counts. */
static bool set_end(void *into, const char *text, const char **expected) {
    static const struct condition conditions[] = {
        CONDITION("duration:", UNIT_TIME, stop_ns),
        CONDITION("packets:", UNIT_COUNT, stop_packets),
        CONDITION("filesize:", UNIT_SIZE, stop_bytes),
        CONDITION("files:", UNIT_COUNT, stop_files),
        {0},
    };
    *expected = "duration:, packets:, filesize: or files: and a value";
    return take_condition(into, conditions, text, expected);
}

/* 5 and 5% are the same. */
static bool parse_percent(const char *text, double *percent) {
    char number[32];
    size_t length = strlen(text) - path_ends_with(text, "%");
    if (length >= sizeof number)
        return false;
    snprintf(number, sizeof number, "%.*s", (int)length, text);
    return !strchr(number, '%') && units_parse_decimal(number, UNIT_SHARE, percent) &&
           *percent >= 0 && *percent <= 100;
}

/* Returns false for an empty filter, which would match each packet. */
static bool add_match(struct settings *settings, const char *filter) {
    char *before = settings->keep_match;
    if (!filter[strspn(filter, " ")])
        return false;
    if (asprintf(&settings->keep_match, before ? "%s or (%s)" : "%s(%s)", before ? before : "",
                 filter) < 0)
        fail(EXIT_IO, "out of memory");
    free(before);
    return true;
}

static bool add_keep_rule(void *into, const char *text, const char **expected) {
    struct settings *settings = into;
    *expected = "drops, link, match: and a filter, rate: and packets per second as in rate:50k, or "
                "retransmissions: and a percentage";
    if (!strncmp(text, "match:", 6))
        return add_match(settings, text + 6);
    if (!strcmp(text, "drops"))
        settings->keep_on |= KEEP_ON_DROPS;
    else if (!strcmp(text, "link"))
        settings->keep_on |= KEEP_ON_LINK;
    else if (!strncmp(text, "rate:", 5) &&
             units_parse_whole(text + 5, UNIT_COUNT, "", &settings->keep_rate))
        settings->keep_on |= KEEP_ON_RATE;
    else if (!strncmp(text, "retransmissions:", 16) &&
             parse_percent(text + 16, &settings->keep_repeats_percent) &&
             settings->keep_repeats_percent > 0)
        settings->keep_on |= KEEP_ON_REPEATS;
    else
        return false;
    return !(settings->keep_on & KEEP_ON_RATE) || settings->keep_rate;
}

static bool set_max_loss(void *into, const char *text, const char **expected) {
    struct settings *settings = into;
    *expected = "a percentage from 0 to 100, as in 5 or 0.1";
    return parse_percent(text, &settings->max_loss_percent);
}

static bool set_min_free(void *into, const char *text, const char **expected) {
    struct settings *settings = into;
    *expected = "a size or a part of the disk, as in 20GB or 5%";
    return strchr(text, '%') ? parse_percent(text, &settings->min_free_percent)
                             : units_parse_whole(text, UNIT_SIZE, "", &settings->min_free_bytes);
}

/* Words of enum direction_choice. */
static const char *const directions[] = {
    [CHOOSE_BOTH] = "inout", [CHOOSE_IN] = "in", [CHOOSE_OUT] = "out", NULL};

/* Its rows name the functions, words and members above. */
#include "option_table.h"

/* Joins the operands to a filter, as tcpdump does. */
static void join_filter(struct settings *settings, const char *const *words, size_t count) {
    size_t size = 1;
    for (size_t i = 0; i < count; i++)
        size += strlen(words[i]) + 1;
    char *joined = calloc(1, size), *end = joined;
    if (!joined)
        fail(EXIT_IO, "out of memory");
    for (size_t i = 0; i < count; i++)
        end = stpcpy(stpcpy(end, i ? " " : ""), words[i]);
    if (settings->filter)
        fail(EXIT_USAGE, "a filter after -f and another at the end (%s): expected one", joined);
    settings->filter = joined;
}

bool settings_rotate(const struct settings *settings) {
    return settings->file_bytes || settings->file_ns || settings->file_packets;
}

/* A stream cannot be rotated, compressed afterwards or given to a command. */
void settings_refuse_files(const struct settings *settings) {
    if (settings_rotate(settings) || settings->compress || settings->on_close)
        fail(EXIT_USAGE, "-w %s is one stream: expected no rotation, --zstd or --on-close",
             settings->output);
}

/* Only a ring has files to keep. */
static void check_spans(const struct settings *settings) {
    bool keeps = settings->keep_before_ns || settings->keep_after_ns;
    if ((settings->keep_on || settings->keep_match) && !keeps)
        fail(EXIT_USAGE, "--keep-on: expected --keep-before or --keep-after with it");
    if (keeps && !settings_rotate(settings))
        fail(EXIT_USAGE, "%s: expected a ring, by -C, -G or -b with it",
             settings->keep_before_ns ? "--keep-before" : "--keep-after");
}

/* Refuses options of files that contradict each other. */
static void check_files(struct settings *settings) {
    settings->compress |= path_ends_with(settings->output, ".zst");
    if (settings->file_bytes && settings->file_bytes < MIN_FILE_BYTES)
        fail(EXIT_USAGE, "files of %llu bytes: expected at least %d",
             (unsigned long long)settings->file_bytes, MIN_FILE_BYTES);
    if (settings->align && !settings->file_ns)
        fail(EXIT_USAGE, "--align: expected -G or -b duration: with it");
    bool is_ring = settings->ring_files || settings->ring_total_bytes || settings->ring_age_ns ||
                   settings->min_free_bytes || settings->min_free_percent > 0;
    check_spans(settings);
    if (is_ring && !settings_rotate(settings))
        fail(EXIT_USAGE,
             "a ring of files: expected -C, -G or -b filesize:, duration: or packets: with it");
    if (!strcmp(settings->output, "-"))
        settings_refuse_files(settings);
}

/* Divides the memory between the kernel's rings, which are allocated at once, and the queue, which
 * needs less for each packet. */
static void divide_memory(struct settings *settings) {
    uint64_t ring = settings->ring_bytes;
    if (!ring)
        ring = settings->buffer_bytes / RING_PART / settings->interface_count;
    if (!settings->ring_bytes && ring < RING_LEAST)
        ring = RING_LEAST;
    settings->ring_bytes = ring < INT32_MAX ? ring : INT32_MAX;
    uint64_t rings = settings->ring_bytes * settings->interface_count;
    settings->buffer_bytes -= settings->buffer_bytes < rings ? settings->buffer_bytes : rings;
}

/* The table stores options one by one; their combinations are checked here. */
void settings_read(struct settings *settings, int argc, char **argv) {
    *settings = (struct settings){.snaplen = RECORD_SNAPLEN_MAX,
                                  .max_loss_percent = -1,
                                  .on_close_ns = DEFAULT_ON_CLOSE_NS,
                                  .on_close_tries = DEFAULT_TRIES,
                                  .buffer_bytes = DEFAULT_BUFFER_BYTES};
    const char **operands = calloc((size_t)argc + 1, sizeof *operands);
    if (!operands)
        fail(EXIT_IO, "out of memory");
    size_t count =
        argc ? options_read(&command, settings, argc - 1, argv + 1, operands, (size_t)argc) : 0;
    if (count)
        join_filter(settings, operands, count);
    free(operands);
    if (settings->list)
        return;
    if (!settings->interface_count)
        fail(EXIT_USAGE, "expected -i INTERFACE; `%s --list` shows them", program_name());
    if (!settings->output || !*settings->output)
        fail(EXIT_USAGE, "expected -w DIR (or a file, or -)");
    check_files(settings);
    if (settings->mirror && (settings->no_promiscuous || settings->direction == CHOOSE_OUT))
        fail(EXIT_USAGE, "--mirror: expected neither -p nor -Q out, which leave out what a mirror "
                         "port delivers");
    if (settings->headers && settings->snaplen > SNAPLEN_HEADERS)
        settings->snaplen = SNAPLEN_HEADERS;
    divide_memory(settings);
}
