/* SPDX-License-Identifier: Apache-2.0 */
/* First the index of each file says whether it may have such packets, and since when. Then files
 * are read in the order of their time, each when the packets written so far have reached it, and
 * merged: no more of them are open than overlap in time. */
#include "find/find.h"

#include <cap-ng.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "common/units_text.h"
#include "directory/path.h"
#include "find/folder.h"
#include "find/kept.h"

#define THREADS 8 /* that read indexes, because a disk answers several questions at a time */

struct effort {
    uint64_t files, indexes_made, bytes_read, unreadable, gone;
};

struct search {
    struct query query;
    struct file_list list;
    struct excerpt excerpt;
    struct effort effort;
    atomic_size_t looked_up;     /* files that a thread has taken */
    struct found_file **waiting; /* candidates by time, `next` to `waiting_count` */
    size_t next, waiting_count;
    struct found_file **heap; /* files with packets, the earliest first */
    size_t heap_count;
    struct found_file **found; /* files with packets, for the report */
    size_t found_count;
};

static struct found_file **allocate(size_t count) {
    struct found_file **list = calloc(count + 1, sizeof *list);
    if (!list)
        fail(EXIT_IO, "out of memory");
    return list;
}

static void leave_out(struct search *search, const struct found_file *file, enum file_state state) {
    if (state == FILE_UNREADABLE)
        log_warning("%s/%s: cannot be read: %s", file->folder->path, file->name,
                    strerror(file->error));
    bool is_wrong = state == FILE_FOREIGN && file->is_operand;
    if (is_wrong)
        log_warning("%s/%s is no pcap or pcapng file that find reads", file->folder->path,
                    file->name);
    search->effort.unreadable += state == FILE_UNREADABLE || is_wrong;
    search->effort.gone += state == FILE_GONE;
}

static int compare_times(const void *one, const void *other) {
    const struct found_file *a = *(struct found_file *const *)one;
    const struct found_file *b = *(struct found_file *const *)other;
    if (a->first_ns != b->first_ns)
        return a->first_ns < b->first_ns ? -1 : 1;
    return (a > b) - (a < b);
}

static void *look_up(void *argument) {
    struct search *search = argument;
    for (size_t i; (i = atomic_fetch_add(&search->looked_up, 1)) < search->list.count;) {
        struct found_file *file = &search->list.files[i];
        if (!file->is_copy)
            file->state = found_file_look_up(file, &search->query);
    }
    return NULL;
}

static void look_up_all(struct search *search) {
    pthread_t threads[THREADS];
    size_t started = 0;
    while (started < THREADS && started + 1 < search->list.count &&
           !pthread_create(&threads[started], NULL, look_up, search))
        started++;
    look_up(search);
    while (started)
        pthread_join(threads[--started], NULL);
    for (size_t i = 0; i < search->list.count; i++) {
        struct found_file *file = &search->list.files[i];
        search->effort.indexes_made += file->made_index;
        if (file->state == FILE_WHOLE)
            file->state = found_file_collect(file, &search->query, &search->excerpt);
        if (file->state == FILE_CANDIDATE)
            search->waiting[search->waiting_count++] = file;
        else
            leave_out(search, file, file->state);
        search->effort.files += !file->is_copy && file->state <= FILE_CANDIDATE;
    }
    qsort(search->waiting, search->waiting_count, sizeof *search->waiting, compare_times);
}

/* An answer of no packets would be taken for one about the traffic. */
static void refuse_nothing(const struct search *search) {
    const struct effort *effort = &search->effort;
    if (effort->files || effort->unreadable || effort->gone)
        return;
    fail(EXIT_IO, "%s%s: no pcap or pcapng files there", search->query.folders[0],
         search->query.folder_count > 1 ? " and the others" : "");
}

/* The time of the next packet; on a tie, files come in the order of the list. */
static bool is_before(const struct found_file *a, const struct found_file *b) {
    int64_t one = a->matches[a->next].time_ns, other = b->matches[b->next].time_ns;
    return one != other ? one < other : a < b;
}

static void sink(struct search *search) {
    struct found_file **heap = search->heap;
    for (size_t at = 0, child; (child = 2 * at + 1) < search->heap_count; at = child) {
        if (child + 1 < search->heap_count && is_before(heap[child + 1], heap[child]))
            child++;
        if (is_before(heap[at], heap[child]))
            return;
        struct found_file *file = heap[at];
        heap[at] = heap[child];
        heap[child] = file;
    }
}

static void rise(struct search *search, struct found_file *file) {
    struct found_file **heap = search->heap;
    size_t at = search->heap_count++;
    for (; at && is_before(file, heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = file;
}

/* Reads files whose packets may be next. */
static void admit(struct search *search) {
    while (search->next < search->waiting_count) {
        struct found_file *file = search->waiting[search->next];
        const struct found_file *first = search->heap_count ? *search->heap : NULL;
        if (first && file->first_ns > first->matches[first->next].time_ns)
            return;
        search->next++;
        enum file_state state = FILE_CANDIDATE;
        if (!file->match_count)
            state = found_file_collect(file, &search->query, &search->excerpt);
        if (state == FILE_CANDIDATE) {
            rise(search, file);
            search->found[search->found_count++] = file;
        } else {
            leave_out(search, file, state);
        }
    }
}

/* Without an output, the packets are only counted. */
static void copy_all(struct search *search) {
    for (admit(search); search->heap_count; admit(search)) {
        struct found_file *file = *search->heap;
        bool copies = search->excerpt.out != NULL;
        if (!copies)
            file->next = file->match_count;
        else if (!found_file_copy(file, &search->excerpt))
            fail(EXIT_IO, "%s/%s: cannot be read any more", file->folder->path, file->name);
        if (file->next < file->match_count) {
            sink(search);
            continue;
        }
        file->last_ns = file->matches[file->match_count - 1].time_ns;
        found_file_close(file);
        *search->heap = search->heap[--search->heap_count];
        sink(search);
    }
}

static void print_json(const struct search *search, int64_t took_ns) {
    struct json json = {.out = stdout};
    uint64_t packets = 0, bytes = 0;
    json_open(&json, NULL, '{');
    json_open(&json, "files", '[');
    for (size_t i = 0; i < search->found_count; i++) {
        const struct found_file *file = search->found[i];
        packets += file->match_count;
        bytes += file->bytes;
        json_open(&json, NULL, '{');
        json_text(&json, "folder", file->folder->path);
        json_text(&json, "file", file->name);
        json_count(&json, "packets", (int64_t)file->match_count);
        json_count(&json, "bytes", (int64_t)file->bytes);
        json_count(&json, "first_ns", file->first_ns);
        json_count(&json, "last_ns", file->last_ns);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_count(&json, "packets", (int64_t)packets);
    json_count(&json, "bytes", (int64_t)bytes);
    json_count(&json, "files_searched", (int64_t)search->effort.files);
    json_count(&json, "indexes_made", (int64_t)search->effort.indexes_made);
    json_count(&json, "files_unreadable", (int64_t)search->effort.unreadable);
    json_count(&json, "files_removed", (int64_t)search->effort.gone);
    json_count(&json, "bytes_read", (int64_t)search->effort.bytes_read);
    json_count(&json, "took_ns", took_ns);
    json_close(&json, '}');
    putchar('\n');
}

static void report(const struct search *search, int64_t took_ns) {
    uint64_t packets = 0;
    for (size_t i = 0; i < search->found_count; i++)
        packets += search->found[i]->match_count;
    log_info("%s packet%s in %s of %s files, %s read in %s", UNITS_SHOW(SHOWN_COUNT, packets),
             packets == 1 ? "" : "s", UNITS_SHOW(SHOWN_COUNT, search->found_count),
             UNITS_SHOW(SHOWN_COUNT, search->effort.files),
             UNITS_SHOW(SHOWN_BYTES, search->effort.bytes_read),
             UNITS_SHOW(SHOWN_DURATION, took_ns));
    if (search->effort.indexes_made)
        log_info("indexes made: %s", UNITS_SHOW(SHOWN_COUNT, search->effort.indexes_made));
    if (search->effort.gone)
        log_warning("files removed meanwhile: %s", UNITS_SHOW(SHOWN_COUNT, search->effort.gone));
}

static void print_list(const struct search *search) {
    for (size_t i = 0; i < search->found_count; i++)
        printf("%s/%s\t%zu packet%s\n", search->found[i]->folder->path, search->found[i]->name,
               search->found[i]->match_count, search->found[i]->match_count == 1 ? "" : "s");
}

static int manage_spans(const struct query *query, const struct file_list *list) {
    if (query->release)
        kept_release(query, list);
    if (query->spans)
        kept_list(query, list);
    return finish_output(stdout) ? EXIT_DONE : EXIT_IO;
}

/* An excerpt must not replace a capture that it is made of. */
static void refuse_input(const struct file_list *list, const char *path) {
    struct stat output, input;
    if (!path || stat(path, &output))
        return;
    for (size_t i = 0; i < list->count; i++)
        if (!fstatat(list->files[i].folder->fd, list->files[i].name, &input, 0) &&
            is_same_file(&input, &output))
            fail(EXIT_USAGE, "-o %s is one of the captures to search: expected another name", path);
}

/* The program may have the capabilities to capture, which reading files must not have. */
static void prepare_process(void) {
    struct rlimit files;
    if (geteuid()) {
        capng_clear(CAPNG_SELECT_BOTH);
        capng_apply(CAPNG_SELECT_CAPS);
    }
    if (!getrlimit(RLIMIT_NOFILE, &files)) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
}

int find_main(int count, char **arguments) {
    static struct search search;
    int64_t begun = monotonic_ns();
    prepare_process();
    query_read(&search.query, count, arguments);
    if (search.query.quiet)
        set_quiet();
    query_check_filter(&search.query);
    file_list_read(&search.list, &search.query);
    if (search.query.spans || search.query.release)
        return manage_spans(&search.query, &search.list);
    if (search.query.kept)
        kept_limit(&search.query, &search.list);
    search.waiting = allocate(search.list.count);
    search.heap = allocate(search.list.count);
    search.found = allocate(search.list.count);
    refuse_input(&search.list, search.query.output);
    excerpt_open(&search.excerpt, search.query.output, search.query.overwrite);
    look_up_all(&search);
    refuse_nothing(&search);
    copy_all(&search);
    excerpt_close(&search.excerpt, search.query.overwrite);
    for (size_t i = 0; i < search.list.count; i++)
        search.effort.bytes_read += search.list.files[i].bytes_read;
    int64_t took_ns = monotonic_ns() - begun;
    if (search.query.json)
        print_json(&search, took_ns);
    else if (!search.query.output)
        print_list(&search);
    report(&search, took_ns);
    if (!finish_output(stdout))
        return EXIT_IO;
    return search.effort.unreadable || search.effort.gone ? EXIT_TRUNCATED : EXIT_DONE;
}
