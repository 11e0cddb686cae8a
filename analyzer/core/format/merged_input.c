/* SPDX-License-Identifier: Apache-2.0 */
/* Merges files by time: the file with the earliest packet provides packets until another one is
 * earlier.
 *
 * Each of several files is probed for the time of its first packet and closed again. It is reopened
 * when the merge reaches that time, so that one or two files of a rotated set are open at once. The
 * order inside a file is never changed, because frame numbers and TCP analysis depend on it; if a
 * file steps back, its packets come at once. The earliest file is searched linearly, once per run
 * of packets. A single file is read without probing and without copies of its packets. */
#include "format/merged_input.h"

#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

static const struct capture_format *const formats[] = {&pcap_format, &pcapng_format, NULL};

#define LOOKAHEAD 64u /* packets of a file at hand */

struct source {
    struct capture_file file;
    struct packet *packets; /* while it takes part in a merge */
    size_t next, count;     /* indices into packets */
    int64_t head_ns;        /* ns; of the next packet, or of the one before if it has no time */
    bool probed;            /* head_ns is known, the file is closed */
    char *path, *name;      /* copies: the path as given, and as UTF-8 */
};

struct merged_input {
    struct source *sources;
    size_t count;
    struct source **live; /* those not at their end */
    size_t live_count;
    struct interface_list interfaces;
};

/* A file with packets at hand has not ended, even if all of it was read. */
static bool source_ended(const struct source *source) {
    return source->next == source->count && source->file.ended;
}

/* Closes a file that has ended. The last one takes its place: the array has no order. */
static void drop_source(struct merged_input *set, size_t at) {
    struct source *source = set->live[at];
    capture_file_close(&source->file);
    free(source->packets);
    source->packets = NULL;
    set->live[at] = set->live[--set->live_count];
}

/* A packet without a time follows the one before it. */
static void note_head(struct source *source) {
    const struct packet *next = &source->packets[source->next];
    if (packet_is_timed(next))
        source->head_ns = next->time_ns;
}

/* Reopens a file that was only probed. An error is damage now, because it was a capture before. */
static void reopen_source(struct source *source) {
    struct error error = {0};
    source->probed = false;
    if (!capture_file_open(&source->file, &error))
        capture_file_set_damage(&source->file, "could not be read again: %s", error.text);
}

/* Loads packets unless the file has ended or must be waited for. */
static enum input_state load_source(struct source *source) {
    enum input_state state = INPUT_READY;
    if (source->next < source->count)
        return state;
    if (source->probed)
        reopen_source(source);
    source->next = 0;
    source->count = capture_file_read(&source->file, source->packets, LOOKAHEAD, &state);
    if (source->count)
        note_head(source);
    return state;
}

/* Finds when the file begins. A file that cannot be opened twice stays open. */
static void probe_source(struct source *source) {
    load_source(source);
    if (!source->file.regular || !source->count)
        return;
    source->probed = true;
    source->next = source->count = 0;
    source->file.ended = false;
    capture_file_close(&source->file);
}

static bool open_source(struct merged_input *set, size_t at, const char *path,
                        struct error *error) {
    struct source *source = &set->sources[at];
    size_t room = 3 * strlen(path) + 1; /* each byte may become U+FFFD */
    source->name = malloc(room);
    source->path = strdup(path);
    source->packets = calloc(LOOKAHEAD, sizeof *source->packets);
    if (!source->name || !source->path || !source->packets)
        return error_set(error, ERROR_MEMORY, "out of memory for %zu files", set->count);
    /* Paths are bytes on Unix, messages and rows must be UTF-8. */
    utf8_copy(source->name, room, path, room);
    source->file = (struct capture_file){.path = source->path,
                                         .name = source->name,
                                         .formats = formats,
                                         .index = (uint32_t)at,
                                         .list = &set->interfaces};
    source->head_ns = INT64_MIN;
    if (!capture_file_open(&source->file, error))
        return false;
    set->live[set->live_count++] = source;
    if (set->count > 1)
        probe_source(source);
    return true;
}

struct merged_input *merged_input_open(const char *const *paths, size_t count,
                                       struct error *error) {
    struct merged_input *set = calloc(1, sizeof *set);
    bool opened = set != NULL;
    if (set) {
        set->count = count;
        set->sources = calloc(count, sizeof *set->sources);
        set->live = calloc(count, sizeof(struct source *));
        opened = set->sources && set->live;
    }
    if (!opened)
        error_set(error, ERROR_MEMORY, "out of memory for %zu files", count);
    for (size_t i = 0; opened && i < count; i++)
        opened = open_source(set, i, paths[i], error);
    if (opened)
        return set;
    merged_input_close(set);
    return NULL;
}

void merged_input_close(struct merged_input *set) {
    for (size_t i = 0; set && set->sources && i < set->count; i++) {
        capture_file_free(&set->sources[i].file);
        free(set->sources[i].packets);
        free(set->sources[i].name);
        free(set->sources[i].path);
    }
    if (!set)
        return;
    interface_list_free(&set->interfaces);
    free(set->sources);
    free(set->live);
    free(set);
}

/* Order of two files: by time, then as given, so that the result does not depend on reading. */
static bool is_earlier(const struct source *a, const struct source *b) {
    return a->head_ns != b->head_ns ? a->head_ns < b->head_ns : a->file.index < b->file.index;
}

/* Loads the next packets of every file that has none left and removes those that have ended.
 * Returns false if a file must be waited for, because the order is unknown until it has a
 * packet. */
static bool load_heads(struct merged_input *set) {
    for (size_t i = 0; i < set->live_count;) {
        struct source *source = set->live[i];
        enum input_state state = source->probed ? INPUT_READY : load_source(source);
        if (state == INPUT_WAITING || state == INPUT_INTERRUPTED)
            return false;
        if (!source->probed && source_ended(source))
            drop_source(set, i);
        else
            i++;
    }
    return true;
}

static struct source *earliest(struct merged_input *set, const struct source *but) {
    struct source *best = NULL;
    for (size_t i = 0; i < set->live_count; i++)
        if (set->live[i] != but && (!best || is_earlier(set->live[i], best)))
            best = set->live[i];
    return best;
}

/* Packets of one file while it is the earliest. */
static size_t take_run(struct source *source, const struct source *second, struct packet *packets,
                       size_t most) {
    size_t count = 0;
    while (count < most && source->next < source->count &&
           (!second || is_earlier(source, second))) {
        packets[count++] = source->packets[source->next++];
        if (source->next < source->count)
            note_head(source);
    }
    return count;
}

/* Reads from several files. Stops before a file is read again, because that would overwrite
 * packets that were returned. */
static size_t read_merged(struct merged_input *set, struct packet *packets, size_t most) {
    size_t count = 0;
    if (!load_heads(set))
        return 0;
    while (count < most && set->live_count) {
        struct source *best = earliest(set, NULL);
        if (!best || (best->probed && load_source(best) != INPUT_READY) ||
            best->next == best->count)
            break;
        count += take_run(best, earliest(set, best), packets + count, most - count);
    }
    return count;
}

size_t merged_input_read(struct merged_input *set, struct packet *packets, size_t most) {
    enum input_state state;
    if (set->count > 1) {
        size_t count = 0;
        while (!count && set->live_count && load_heads(set))
            count = read_merged(set, packets, most);
        return count;
    }
    return capture_file_read(&set->sources[0].file, packets, most, &state);
}

bool merged_input_ended(const struct merged_input *set) {
    return set->count > 1 ? !set->live_count : set->sources[0].file.ended;
}

const struct interface_list *merged_input_interfaces(const struct merged_input *set) {
    return &set->interfaces;
}

size_t merged_input_files(const struct merged_input *set) {
    return set->count;
}

const struct damage *merged_input_damage(const struct merged_input *set, size_t file_index) {
    return &set->sources[file_index].file.damage;
}

/* Files that were only probed do not count, because they are read again. */
uint64_t merged_input_bytes_read(const struct merged_input *set) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < set->count; i++)
        if (!set->sources[i].probed)
            bytes += capture_file_bytes_read(&set->sources[i].file);
    return bytes;
}

uint64_t merged_input_bytes_total(const struct merged_input *set) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (!set->sources[i].file.bytes_total)
            return 0;
        bytes += set->sources[i].file.bytes_total;
    }
    return bytes;
}
