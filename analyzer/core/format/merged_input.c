/* SPDX-License-Identifier: Apache-2.0 */
/* Merges files by time: the file with the earliest packet provides packets until another one is
 * earlier.
 *
 * Each of several files is probed for the time of its first packet and closed again. It is reopened
 * when the merge reaches that time, so that one or two files of a rotated set are open at once. The
 * order inside a file is never changed, because frame numbers and TCP analysis depend on it; if a
 * file steps back, its packets come at once. A heap holds the files whose next packet is known. A
 * file without packets at hand leaves it until it is loaded, because the order is unknown without
 * it. Files that overlap in time are open together: past OPEN_MOST of them, a file has a descriptor
 * only while it is read, and past WINDOWS_BYTES their windows are smaller. A single file is read
 * without probing and without copies of its packets.
 *
 * Threads decompress files ahead: those that are open, and the next ones in order of time, of which
 * only the bytes are read before the merge reaches them. */
#include "format/merged_input.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/utf8.h"
#include "format/packet_origin.h"
#include "input/read_ahead.h"

const struct capture_format *const capture_formats[] = {&pcap_format, &pcapng_format, NULL};

#define LOOKAHEAD     64u         /* packets of a file at hand */
#define OPEN_MOST     128u        /* descriptors; fewer if the process may have few */
#define OPEN_SHARE    4u          /* of the limit of the process */
#define WINDOWS_BYTES (32u << 20) /* of all open files */
#define WINDOW_LEAST  (8u << 10)  /* bytes of the window of a file */
#define AHEAD_MOST    16u         /* files that threads read ahead */
#define AHEAD_BY_JOB  2u          /* of these by a job */
#define KEPT_MOST     (1u << 20)  /* bytes of packets that are kept at once */

struct source {
    struct capture_file file;
    struct packet *packets; /* while it takes part in a merge */
    size_t next, count;     /* indices into packets */
    int64_t head_ns;        /* ns; of the next packet, or of the one before if it has no time */
    uint64_t bytes_counted; /* bytes read that are in the sum of all files */
    bool probed;            /* head_ns is known, the file is closed, or only its bytes are read */
    bool light;             /* it is compressed, and its decoder needs little memory */
    char *path, *shown;     /* copies of the path and of the name in rows */
    char *name;             /* the latter as UTF-8 */
};

struct merged_input {
    struct source *sources;
    size_t count;
    struct source **heap; /* those with a known head, the earliest first */
    size_t heap_count;
    struct source **empty; /* those that must be loaded before the order is known */
    size_t empty_count;
    struct source *
        *ended; /* to be closed: packets that were returned may point into their windows */
    size_t ended_count;
    size_t reading;              /* sources that are open */
    size_t descriptors, at_most; /* of regular files that are not read ahead */
    struct read_ahead *threads;  /* NULL: none */
    struct source **later;       /* to be read ahead, in order of their time */
    size_t later_count, started; /* those that need not be started any more */
    uint64_t bytes_read;
    size_t first_file; /* files of the inputs before */
    struct interface_list interfaces;
};

/* Order of two files: by time, then as given, so that the result does not depend on reading. */
static bool is_earlier(const struct source *a, const struct source *b) {
    return a->head_ns != b->head_ns ? a->head_ns < b->head_ns : a->file.index < b->file.index;
}

/* Moves the source at a place of the heap down until no child is earlier. */
static void sift_down(struct merged_input *set, size_t at) {
    struct source *moved = set->heap[at];
    for (size_t child; (child = 2 * at + 1) < set->heap_count; at = child) {
        if (child + 1 < set->heap_count && is_earlier(set->heap[child + 1], set->heap[child]))
            child++;
        if (!is_earlier(set->heap[child], moved))
            break;
        set->heap[at] = set->heap[child];
    }
    set->heap[at] = moved;
}

static void push(struct merged_input *set, struct source *source) {
    size_t at = set->heap_count++;
    for (size_t parent; at && is_earlier(source, set->heap[parent = (at - 1) / 2]); at = parent)
        set->heap[at] = set->heap[parent];
    set->heap[at] = source;
}

static void pop(struct merged_input *set) {
    set->heap[0] = set->heap[--set->heap_count];
    if (set->heap_count)
        sift_down(set, 0);
}

/* Returns the source that is next after the first of the heap, NULL if there is none. */
static const struct source *second(const struct merged_input *set) {
    if (set->heap_count < 3)
        return set->heap_count == 2 ? set->heap[1] : NULL;
    return set->heap[1 + is_earlier(set->heap[2], set->heap[1])];
}

static bool has_descriptor(const struct source *source) {
    return source->file.open && input_stream_has_descriptor(&source->file.stream);
}

/* Parks a file that was read to its end, or for which too many descriptors are open. */
static void count_descriptor(struct merged_input *set, struct source *source, bool had) {
    struct input_stream *stream = &source->file.stream;
    set->descriptors += (size_t)has_descriptor(source) - (size_t)had;
    if (!has_descriptor(source) ||
        (set->descriptors <= set->at_most && stream->last == INPUT_READY))
        return;
    input_stream_park(stream);
    set->descriptors -= !has_descriptor(source);
}

static void close_source(struct merged_input *set, struct source *source) {
    set->descriptors -= has_descriptor(source);
    set->reading -= source->file.open;
    capture_file_close(&source->file);
    free(source->packets);
    source->packets = NULL;
}

static void close_ended(struct merged_input *set) {
    while (set->ended_count)
        close_source(set, set->ended[--set->ended_count]);
}

/* A packet without a time follows the one before it. */
static void note_head(struct source *source) {
    const struct packet *next = &source->packets[source->next];
    if (!LIKELY(!(next->shard & SHARD_ORIGIN)))
        source->head_ns = packet_origin_of(next).merge_ns;
    else if (packet_is_timed(next))
        source->head_ns = next->time_ns;
}

/* Opens the file for reading, with a smaller window if many files are open. */
static bool begin_source(struct merged_input *set, struct source *source, size_t window,
                         struct error *error) {
    if (!source->packets)
        source->packets = malloc(LOOKAHEAD * sizeof *source->packets);
    if (!source->packets)
        return error_set(error, ERROR_MEMORY, "out of memory for %zu files", set->count);
    source->file.window = window;
    bool opened = capture_file_open(&source->file, error);
    if (opened && set->threads)
        input_stream_read_ahead(&source->file.stream, set->threads);
    set->reading += opened;
    set->descriptors += has_descriptor(source);
    return opened;
}

/* Lets threads read the next files. */
static void start_later(struct merged_input *set) {
    for (; set->started < set->later_count && read_ahead_has_room(set->threads); set->started++) {
        struct source *source = set->later[set->started];
        source->file.window = INPUT_WINDOW;
        if (source->probed)
            capture_file_start(&source->file, set->threads);
    }
}

/* Reopens a file that was only probed. An error is damage now, because it was a capture before. If
 * many files are open, it is read in place, so that the packets of a read do not depend on threads.
 */
static void reopen_source(struct merged_input *set, struct source *source) {
    struct error error = {0};
    size_t window = WINDOWS_BYTES / (set->reading + 1);
    window = window < WINDOW_LEAST ? WINDOW_LEAST : window;
    start_later(set);
    if (window < INPUT_WINDOW)
        capture_file_close(&source->file);
    source->probed = false;
    if (!begin_source(set, source, window < INPUT_WINDOW ? window : INPUT_WINDOW, &error))
        capture_file_set_damage(&source->file, "could not be read again: %s", error.text);
}

/* Makes packets at hand those that reading has returned. */
static void take_loaded(struct merged_input *set, struct source *source, size_t count, bool had) {
    uint64_t bytes = capture_file_bytes_read(&source->file);
    set->bytes_read += bytes - source->bytes_counted;
    source->bytes_counted = bytes;
    source->next = 0;
    source->count = count;
    if (count)
        note_head(source);
    count_descriptor(set, source, had);
}

/* Loads packets of a source that has none at hand, unless it has ended or must be waited for. */
static enum input_state load_source(struct merged_input *set, struct source *source) {
    enum input_state state = INPUT_READY;
    if (source->probed)
        reopen_source(set, source);
    bool had = has_descriptor(source);
    size_t count = 0;
    if (!source->file.ended)
        count = capture_file_read(&source->file, source->packets, LOOKAHEAD, false, &state);
    take_loaded(set, source, count, had);
    return state;
}

/* Loads packets without invalidating those that were returned. Returns false if that is impossible.
 */
static bool load_on(struct merged_input *set, struct source *source) {
    enum input_state state;
    bool had = has_descriptor(source);
    size_t count = capture_file_read(&source->file, source->packets, LOOKAHEAD, true, &state);
    take_loaded(set, source, count, had);
    return source->count || source->file.ended;
}

/* Puts a source where it belongs after loading. A file with packets at hand has not ended, even if
 * all of it was read. */
static void place_source(struct merged_input *set, struct source *source) {
    if (source->probed || source->next < source->count)
        push(set, source);
    else if (source->file.ended)
        set->ended[set->ended_count++] = source;
    else
        set->empty[set->empty_count++] = source;
}

/* Finds when the file begins. A file that cannot be opened twice stays open. */
static void probe_source(struct merged_input *set, struct source *source) {
    load_source(set, source);
    if (source->file.regular && source->count) {
        source->probed = true;
        source->light = source->file.stream.source.light;
        source->next = source->count = 0;
        source->file.ended = false;
        set->bytes_read -= source->bytes_counted; /* they are read again */
        source->bytes_counted = 0;
        close_source(set, source);
    }
    place_source(set, source);
}

static bool open_source(struct merged_input *set, size_t at, const char *path, const char *name,
                        struct error *error) {
    struct source *source = &set->sources[at];
    size_t room = 3 * strlen(name) + 1; /* each byte may become U+FFFD */
    source->name = malloc(room);
    source->path = strdup(path);
    source->shown = strdup(name);
    if (!source->name || !source->path || !source->shown)
        return error_set(error, ERROR_MEMORY, "out of memory for %zu files", set->count);
    /* Paths are bytes on Unix, messages and rows must be UTF-8. */
    utf8_copy(source->name, room, name, room);
    source->file = (struct capture_file){.path = source->path,
                                         .shown = source->shown,
                                         .name = source->name,
                                         .formats = capture_formats,
                                         .index = (uint32_t)(set->first_file + at),
                                         .list = &set->interfaces};
    source->head_ns = INT64_MIN;
    if (set->count == 1)
        return capture_file_open(&source->file, error);
    if (!begin_source(set, source, INPUT_FIRST_READ, error))
        return false;
    probe_source(set, source);
    close_ended(set);
    return true;
}

static size_t descriptors_most(void) {
    struct rlimit limit;
    bool known = !getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur / OPEN_SHARE < OPEN_MOST;
    return known ? (size_t)(limit.rlim_cur / OPEN_SHARE) : OPEN_MOST;
}

/* Moves the interfaces of the input before, whose numbers go on, as those of files do. */
static void take_interfaces(struct merged_input *set, struct merged_input *before) {
    set->first_file = before->first_file + before->count;
    set->interfaces = before->interfaces;
    before->interfaces = (struct interface_list){0};
    for (size_t i = 0; i < set->interfaces.count; i++) {
        struct interface *interface = set->interfaces.items[i];
        if (interface->file_index >= before->first_file) /* its name goes with the input */
            interface->file =
                interface_list_text(&set->interfaces, interface->file, strlen(interface->file));
    }
}

/* Gives back all but those of its own files. */
static void return_interfaces(struct merged_input *set, struct merged_input *before) {
    while (set->interfaces.count &&
           set->interfaces.items[set->interfaces.count - 1]->file_index >= set->first_file)
        free(set->interfaces.items[--set->interfaces.count]);
    before->interfaces = set->interfaces;
    set->interfaces = (struct interface_list){0};
}

/* Returns NULL without memory. */
static struct merged_input *make_set(size_t count) {
    struct merged_input *set = calloc(1, sizeof *set);
    if (!set)
        return NULL;
    set->sources = calloc(count, sizeof *set->sources);
    set->heap = calloc(3 * count, sizeof(struct source *));
    if (!set->sources || !set->heap) {
        merged_input_close(set);
        return NULL;
    }
    set->count = count;
    set->at_most = descriptors_most();
    set->empty = set->heap + count;
    set->ended = set->empty + count;
    return set;
}

static struct merged_input *open_set(struct merged_input *before, const char *const *paths,
                                     const char *const *names, size_t count,
                                     struct kept_blocks *kept, struct error *error) {
    struct merged_input *set = make_set(count);
    bool opened = set != NULL;
    if (!opened) {
        error_set(error, ERROR_MEMORY, "out of memory for %zu files", count);
        return NULL;
    }
    if (before)
        take_interfaces(set, before);
    set->interfaces.kept = kept;
    for (size_t i = 0; opened && i < count; i++)
        opened = open_source(set, i, paths[i], names ? names[i] : paths[i], error);
    if (!opened && before)
        return_interfaces(set, before);
    merged_input_close(opened ? before : set);
    return opened ? set : NULL;
}

struct merged_input *merged_input_open(const char *const *paths, const char *const *names,
                                       size_t count, struct error *error) {
    return merged_input_follow(NULL, paths, names, count, error);
}

struct merged_input *merged_input_follow(struct merged_input *before, const char *const *paths,
                                         const char *const *names, size_t count,
                                         struct error *error) {
    return open_set(before, paths, names, count, NULL, error);
}

struct merged_input *merged_input_open_keeping(const char *const *paths, size_t count,
                                               struct kept_blocks *kept, struct error *error) {
    return open_set(NULL, paths, NULL, count, kept, error);
}

void merged_input_close(struct merged_input *set) {
    for (size_t i = 0; set && set->sources && i < set->count; i++) {
        capture_file_free(&set->sources[i].file);
        free(set->sources[i].packets);
        free(set->sources[i].name);
        free(set->sources[i].shown);
        free(set->sources[i].path);
    }
    if (!set)
        return;
    read_ahead_close(set->threads);
    interface_list_free(&set->interfaces);
    free(set->sources);
    free(set->later);
    free(set->heap);
    free(set);
}

static int compare_heads(const void *left, const void *right) {
    const struct source *const *a = left, *const *b = right;
    return is_earlier(*a, *b) ? -1 : is_earlier(*b, *a);
}

/* Without memory the files are read in place. */
void merged_input_read_ahead(struct merged_input *set, unsigned jobs) {
    unsigned streams = jobs < AHEAD_MOST / AHEAD_BY_JOB ? jobs * AHEAD_BY_JOB : AHEAD_MOST;
    streams = streams < set->at_most / 2 ? streams : (unsigned)set->at_most / 2;
    if (jobs < 2 || set->threads || !streams)
        return;
    set->threads = read_ahead_open(jobs - 1, streams);
    set->later = malloc(set->count * sizeof(struct source *));
    if (!set->threads || !set->later)
        return;
    if (set->count == 1) {
        input_stream_read_ahead(&set->sources[0].file.stream, set->threads);
        return;
    }
    set->at_most -= streams;
    for (size_t i = 0; i < set->count; i++)
        if (set->sources[i].light && set->sources[i].file.bytes_total > INPUT_FIRST_READ)
            set->later[set->later_count++] = &set->sources[i];
    qsort(set->later, set->later_count, sizeof *set->later, compare_heads);
}

/* Loads the sources that have no packets at hand. Returns false if one must be waited for. */
static bool load_empty(struct merged_input *set) {
    for (size_t left = set->empty_count; left; left--) {
        struct source *source = set->empty[left - 1];
        enum input_state state = load_source(set, source);
        if (state == INPUT_WAITING || state == INPUT_INTERRUPTED)
            return false;
        set->empty[left - 1] = set->empty[--set->empty_count];
        place_source(set, source);
    }
    return true;
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

/* Reads from several files. Stops before the window of a file moves, because that would overwrite
 * packets that were returned. */
static size_t read_merged(struct merged_input *set, struct packet *packets, size_t most) {
    size_t count = 0;
    close_ended(set);
    while (count < most && set->heap_count && !set->empty_count) {
        struct source *best = set->heap[0];
        if (best->probed)
            load_source(set, best);
        else
            count += take_run(best, second(set), packets + count, most - count);
        if (best->next == best->count && !best->file.ended)
            load_on(set, best);
        if (best->next < best->count) {
            sift_down(set, 0);
        } else {
            pop(set);
            place_source(set, best);
        }
    }
    return count;
}

size_t merged_input_read(struct merged_input *set, struct packet *packets, size_t most) {
    enum input_state state;
    if (set->count > 1) {
        size_t count = 0;
        while (!count && load_empty(set) && set->heap_count)
            count = read_merged(set, packets, most);
        return count;
    }
    return capture_file_read(&set->sources[0].file, packets, most, false, &state);
}

size_t merged_input_read_on(struct merged_input *set, struct packet *packets, size_t most) {
    struct capture_file *file = &set->sources[0].file;
    return set->count == 1 && !file->ended ? file->format->parse(file, packets, most) : 0;
}

/* Packets of several files are copied: other packets at hand point into their windows. Those of
 * a shard have more than their data. */
static bool copy_packets(struct packet *packets, size_t count, struct packet_bytes *kept) {
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += packets[i].captured;
        if (packets[i].shard || size > KEPT_MOST)
            return false;
    }
    uint8_t *place = kept->bytes ? kept->bytes : (kept->bytes = malloc(KEPT_MOST));
    if (!place)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!packets[i].data)
            continue;
        memcpy(place, packets[i].data, packets[i].captured);
        packets[i].data = place;
        place += packets[i].captured;
    }
    return true;
}

bool merged_input_keep(struct merged_input *set, struct packet *packets, size_t count,
                       struct packet_bytes *kept) {
    struct input_stream *stream = &set->sources[0].file.stream;
    if (set->count > 1)
        return copy_packets(packets, count, kept);
    return stream->capacity <= KEPT_MOST &&
           input_stream_exchange(stream, &kept->bytes, &kept->size);
}

bool merged_input_ended(const struct merged_input *set) {
    return set->count > 1 ? !set->heap_count && !set->empty_count : set->sources[0].file.ended;
}

const struct interface_list *merged_input_interfaces(const struct merged_input *set) {
    return &set->interfaces;
}

size_t merged_input_files(const struct merged_input *set) {
    return set->count;
}

const struct damage *merged_input_damage(const struct merged_input *set, size_t file_index) {
    return &set->sources[file_index - set->first_file].file.damage;
}

/* Files that were only probed do not count, because they are read again. */
uint64_t merged_input_bytes_read(const struct merged_input *set) {
    return set->count > 1 ? set->bytes_read : capture_file_bytes_read(&set->sources[0].file);
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
