/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the command line, checked and in base units. A value of 0 or NULL means that the
 * option is not given. */
#ifndef WIRETALE_CAPTURE_SETTINGS_H
#define WIRETALE_CAPTURE_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer/chunk_queue.h"
#include "buffer/record.h"

/* Bits of --keep-on. */
enum keep_rule { KEEP_ON_DROPS = 1, KEEP_ON_LINK = 2, KEEP_ON_RATE = 4, KEEP_ON_REPEATS = 8 };

enum direction_choice { CHOOSE_BOTH, CHOOSE_IN, CHOOSE_OUT };

struct settings {
    /* interfaces */
    const char *interfaces[DEVICES_MAX];
    uint32_t interface_count;
    const char *filter;
    uint64_t snaplen; /* bytes */
    bool headers;     /* cut behind the transport header */
    bool mirror;      /* check what a mirror port delivers */
    bool no_promiscuous, immediate;
    bool wait;           /* wait for an interface that does not exist yet */
    uint64_t direction;  /* enum direction_choice */
    uint64_t ring_bytes; /* kernel's ring of each interface */
    const char *time_source;
    const char *link_type;
    /* files */
    const char *output;
    uint64_t format; /* enum record_format */
    bool compress, align;
    bool overwrite; /* replace the file that -w names */
    uint64_t file_bytes, file_packets;
    int64_t file_ns;
    uint64_t ring_files, ring_total_bytes;
    int64_t ring_age_ns;
    uint64_t min_free_bytes;
    double min_free_percent; /* of the disk */
    const char *on_close;    /* command for each finished file */
    int64_t on_close_ns;     /* limit of each run */
    uint64_t on_close_tries;
    int64_t keep_before_ns, keep_after_ns;
    unsigned keep_on;            /* enum keep_rule */
    uint64_t keep_rate;          /* packets per second */
    double keep_repeats_percent; /* of TCP segments, repeated */
    char *keep_match;            /* pcap-filter: all rules `match:`, by or */
    /* the end */
    uint64_t stop_packets, stop_bytes, stop_files;
    int64_t stop_ns;
    double max_loss_percent; /* negative: not given */
    /* the program */
    uint64_t buffer_bytes; /* memory of the chunk queue, without the rings */
    const char *status;
    int64_t interval_ns;
    const char *user;
    bool quiet, json, list, no_sandbox, ignored;
    bool on_terminal; /* messages are for a person: asked before the sandbox forbids it */
};

/* Reads the command line. Fails with EXIT_USAGE and one line; ends the program for --help and
 * --version. */
void settings_read(struct settings *settings, int argc, char **argv);
/* Returns whether the output can consist of several files. */
bool settings_rotate(const struct settings *settings);
/* For an output that is one stream: fails with one line where an option needs files. */
void settings_refuse_files(const struct settings *settings);

#endif
