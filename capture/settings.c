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

static bool add_keep_rule(void *into, const char *text, const char **expected) {
    struct settings *settings = into;
    *expected = "drops, link or rate: and packets per second, as in rate:50k";
    if (!strcmp(text, "drops"))
        settings->keep_on |= KEEP_ON_DROPS;
    else if (!strcmp(text, "link"))
        settings->keep_on |= KEEP_ON_LINK;
    else if (!strncmp(text, "rate:", 5) &&
             units_parse_whole(text + 5, UNIT_COUNT, "", &settings->keep_rate))
        settings->keep_on |= KEEP_ON_RATE;
    else
        return false;
    return !(settings->keep_on & KEEP_ON_RATE) || settings->keep_rate;
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

#define STRUCT   struct settings
#define MAX_TIME INT64_MAX

/* Words of enum direction_choice. */
static const char *const directions[] = {
    [CHOOSE_BOTH] = "inout", [CHOOSE_IN] = "in", [CHOOSE_OUT] = "out", NULL};

/* A row with NULL help is explained by the notes next to it, since several options share one line
 * there. */
static const struct option_row rows[] = {
    HEADING("interfaces"),
    TAKEN("interface", 'i', "NAME", add_interface,
          "name or number of an interface, or any, which is never promiscuous; may be repeated"),
    FLAG("wait", 0, wait,
         "wait for an interface that does not exist or is down; without it, that is an error"),
    FLAG("list|list-interfaces", 'D', list,
         "list interfaces with addresses, link types and sources of time stamps"),
    FLAG("json", 0, json, "the list as one JSON object"),
    FLAG("no-promiscuous-mode", 'p', no_promiscuous, "record only packets to and from this host"),
    HEADING("packets"),
    TEXT_OF("filter", 'f', filter, "FILTER",
            "record only packets that match a pcap-filter(7) expression"),
    TAKEN("snaplen|snapshot-length", 's', "BYTES", set_snaplen,
          "record at most BYTES of each packet; 0: all (default)"),
    FLAG("headers", 0, headers,
         "record no payload: cut each packet behind its transport header, at most 256 bytes"),
    WORD_OF("direction", 'Q', direction, "in|out|inout", directions,
            "record only packets that come or go (default: inout)"),
    SIZE_IN("buffer-size|buffer", 'B', buffer_bytes, "SIZE", "MiB", 0, 0,
            "memory for packets that wait, in the kernel and for the disk (default: 160MiB; a "
            "number alone is MiB)"),
    SIZE_IN("ring-buffer", 0, ring_bytes, "SIZE", "MiB", 0, INT32_MAX,
            "of it, the kernel's part for each interface (default: a fifth for all)"),
    FLAG("immediate|immediate-mode", 'U', immediate,
         "hand over each packet at once, at the cost of processor time"),
    TEXT_OF("time-stamp-type", 'j', time_source, "SOURCE",
            "source of time stamps, as --list shows"),
    TEXT_OF("linktype", 'y', link_type, "NAME", "link type, as --list shows"),
    HEADING("files"),
    TEXT_OF("write", 'w', output, "DIR",
            "write into a directory, where files appear when finished"),
    NOTE("-w, --write FILE", "write a file: a name that ends in .pcapng, .pcap or .cap; %Y %m %d "
                             "%H %M %S are of UTC"),
    NOTE("-w, --write -", "write a stream to standard output; a FIFO, a device or a socket gets "
                          "one, too"),
    FLAG("overwrite", 0, overwrite, "replace an existing capture file"),
    SIZE_IN(NULL, 'C', file_bytes, "SIZE, -b filesize:SIZE", "MB", 0, 0,
            "begin a new file before SIZE is exceeded (a number alone: MB with -C, kB with -b)"),
    TIME_OF(NULL, 'G', file_ns, "TIME, -b duration:TIME", 1, MAX_TIME,
            "begin a new file each TIME (a number alone: seconds)"),
    TAKEN(NULL, 'b', NULL, set_rotation, NULL),
    NOTE("-b packets:N", "begin a new file after N packets"),
    FLAG("align", 0, align, "begin files at multiples of -G since the epoch"),
    COUNT_OF(NULL, 'W', ring_files, "N, -b files:N", 1, 0, "keep only the newest N files"),
    SIZE_OF("total-size", 0, ring_total_bytes, "SIZE", 0, 0,
            "keep only the newest files, up to SIZE"),
    TIME_OF("max-age", 0, ring_age_ns, "TIME", 1, MAX_TIME,
            "remove files that were finished longer ago than TIME"),
    TAKEN("min-free", 0, "SIZE|PERCENT%", set_min_free,
          "remove the oldest files while less of the disk is free"),
    SET("pcap", 'P', format, RECORD_PCAP, "write classic pcap files instead of pcapng"),
    FLAG("zstd", 'z', compress, "compress finished files"),
    TEXT_OF("on-close", 0, on_close, "COMMAND",
            "run for each finished file, without a shell, until it succeeds; {} is its path"),
    TIME_OF("on-close-timeout", 0, on_close_ns, "TIME", 1, MAX_TIME,
            "end a command that takes longer (default: 1h)"),
    COUNT_OF("on-close-tries", 0, on_close_tries, "N", 1, 0,
             "give up after N runs, until the next start (default: 20)"),
    HEADING("kept spans"),
    TIME_OF("keep-before", 0, keep_before_ns, "TIME", 1, MAX_TIME,
            "at SIGUSR2 or --keep-on: keep the files of TIME before it from removal"),
    TIME_OF("keep-after", 0, keep_after_ns, "TIME", 1, MAX_TIME, "and of TIME after it"),
    TAKEN("keep-on", 0, "RULE", add_keep_rule,
          "keep a span when packets are lost (drops), an interface comes or goes (link), or at N "
          "packets per second (rate:N); may be repeated"),
    HEADING("end"),
    COUNT_OF("count", 'c', stop_packets, "N", 1, 0, NULL),
    NOTE("-c N, -a packets:N", "end after N packets"),
    TAKEN("autostop", 'a', NULL, set_end, NULL),
    NOTE("-a duration:TIME", "end after TIME"),
    NOTE("-a filesize:SIZE", "end once SIZE is written (a number alone: kB)"),
    NOTE("-a files:N", "end after N files"),
    TAKEN("max-loss", 0, "PERCENT", set_max_loss,
          "exit with code 1 if more than PERCENT of the packets are lost; 0: if any is"),
    HEADING("program"),
    TEXT_OF("status", 0, status, "SOCKET", "serve the counts on a Unix socket, as lines of JSON"),
    TIME_OF("interval", 0, interval_ns, "TIME", 1, MAX_TIME,
            "print the counts each TIME, also to --status"),
    TEXT_OF("user|relinquish-privileges", 'Z', user, "USER",
            "user to become; default: the owner of the directory, wiretale or nobody"),
    FLAG("no-sandbox", 0, no_sandbox, "run without seccomp and Landlock"),
    FLAG("quiet", 'q', quiet, "print nothing but `capturing` and errors"),
    HELP_AND_VERSION,
    /* Ignored, because files always are pcapng with nanoseconds, which these options of dumpcap and
     * tcpdump ask for. */
    FLAG("nano", 'n', ignored, NULL),
    HINT("rR", "files are read by wiretale analyze FILE"),
    HINT("Y", "a display filter is for reading; expected a capture filter: -f 'tcp port 443'"),
    HINT("vxXAeEtT", "packets are recorded, not printed: -w - | tshark -r -"),
    HINT("F", "files are pcapng; --pcap is classic pcap"),
    HINT("d", "the counts come with --interval TIME"),
};

static const struct command_line command = {
    .description = "Record packets from interfaces into pcapng files, unattended, and count every\n"
                   "packet that could not be recorded.\n",
    .usage = "@ -i INTERFACE -w DIR|FILE|- [options] [FILTER]\n"
             "       @ --list [--json]\n",
    .arguments = "  FILTER                packets to record, as for tcpdump: tcp port 443; the\n"
                 "                        rest of the command line\n",
    .rows = rows,
    .count = sizeof rows / sizeof *rows,
    .sections = "signals:\n"
                "  SIGTERM, SIGINT       write all packets, publish the file and end\n"
                "  SIGHUP                open the directory again and begin a new file\n"
                "  SIGUSR1               begin a new file\n"
                "  SIGUSR2               keep a span\n",
    .examples = "  # the headers of all packets, in a ring of 100 files\n"
                "  @ -i eth0 --headers -w /captures/ -C 64MB -b files:100\n"
                "  # one file of a minute\n"
                "  @ -i eth0 -w minute.pcapng -a duration:1min 'tcp port 443'\n"
                "  # live, into another program\n"
                "  @ -i eth0 -w - | tshark -r -\n",
    .exit_codes = "  0    done; without --max-loss also if the kernel or the interface dropped\n"
                  "       packets, as with tcpdump and dumpcap\n"
                  "  1    more packets lost than --max-loss allows\n"
                  "  2    wrong usage, also a filter or link type that does not fit the interface\n"
                  "  3    done, but packets were received and not written: the disk was full, too\n"
                  "       slow, or failed (with --max-loss, the code is 0 or 1)\n"
                  "  4    output not writable or in use, or memory missing\n"
                  "  5    interface, permission or system feature missing\n"
                  "  130  interrupted twice\n",
};

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
    if (settings->keep_on && !keeps)
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
    if (settings->headers && settings->snaplen > SNAPLEN_HEADERS)
        settings->snaplen = SNAPLEN_HEADERS;
    divide_memory(settings);
}
