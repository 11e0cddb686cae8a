/* SPDX-License-Identifier: Apache-2.0 */
#include "find/kept.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/json.h"
#include "common/log.h"
#include "common/units_text.h"
#include "keep/spans.h"

#define TEXT_SIZE 256

struct kept_span {
    char name[NAME_SIZE], reason[TEXT_SIZE];
    int64_t start_ns, end_ns;
};

/* Reads a small file. Returns its size, or -1. */
static ssize_t read_small(int folder_fd, const char *name, char text[TEXT_SIZE]) {
    int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, TEXT_SIZE - 1);
    if (fd >= 0)
        close(fd);
    text[size > 0 ? size : 0] = '\0';
    return size;
}

/* Exits if the user may not read the span: it is not known which files it keeps. */
static bool read_span(int folder_fd, const char *own, struct kept_span *span) {
    char text[TEXT_SIZE];
    long long start, end;
    size_t length = strlen(own), suffix = strlen(SPAN_SUFFIX);
    *span = (struct kept_span){0};
    if (*own != '.' || length <= suffix + 1 || strcmp(own + length - suffix, SPAN_SUFFIX) ||
        length >= NAME_SIZE)
        return false;
    ssize_t size = read_small(folder_fd, own, text);
    if (size < 0 && errno == EACCES)
        fail(EXIT_MISSING, "%s: %s", own, strerror(errno));
    if (size <= 0 || sscanf(text, "%lld %lld %31[a-z]", &start, &end, span->reason) != 3)
        return false;
    snprintf(span->name, sizeof span->name, "%.*s", (int)(length - suffix - 1), own + 1);
    span->start_ns = start;
    span->end_ns = end;
    return true;
}

static int is_span(const struct dirent *entry) {
    return *entry->d_name == '.' && strstr(entry->d_name, SPAN_SUFFIX) != NULL;
}

/* Reads the spans of a folder, which the caller frees. */
static size_t read_spans(int folder_fd, struct kept_span **spans) {
    struct dirent **names;
    int count = scandirat(folder_fd, ".", &names, is_span, alphasort);
    size_t read = 0;
    *spans = calloc((size_t)(count > 0 ? count : 0) + 1, sizeof **spans);
    if (!*spans)
        fail(EXIT_IO, "out of memory");
    for (int i = 0; i < count; i++) {
        read += read_span(folder_fd, names[i]->d_name, *spans + read);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    return read;
}

/* Returns the folder of a span. Exits with one line if there is none. */
static int find_span(const struct query *query, const struct file_list *list, const char *name,
                     struct kept_span *found) {
    for (uint64_t i = 0; i < query->folder_count; i++) {
        struct kept_span *spans;
        size_t count = read_spans(list->folders[i].fd, &spans);
        for (size_t j = 0; j < count; j++)
            if (!strcmp(spans[j].name, name)) {
                *found = spans[j];
                free(spans);
                return list->folders[i].fd;
            }
        free(spans);
    }
    fail(EXIT_MISSING, "no span is called %s; --spans lists them", name);
}

void kept_limit(struct query *query, const struct file_list *list) {
    struct kept_span span;
    find_span(query, list, query->kept, &span);
    if (span.start_ns > query->start_ns)
        query->start_ns = span.start_ns;
    if (span.end_ns < query->end_ns)
        query->end_ns = span.end_ns;
}

static void print_span(struct json *json, const char *folder, const struct kept_span *span) {
    if (!json) {
        double took_ns = (double)span->end_ns - (double)span->start_ns;
        printf("%s\t%s\n", span->name, UNITS_SHOW(SHOWN_DURATION, took_ns));
        return;
    }
    json_open(json, NULL, '{');
    json_text(json, "folder", folder);
    json_text(json, "name", span->name);
    json_text(json, "reason", span->reason);
    json_count(json, "start_ns", span->start_ns);
    json_count(json, "end_ns", span->end_ns);
    json_close(json, '}');
}

/* All spans are read before the first is printed, since reading can fail. */
void kept_list(const struct query *query, const struct file_list *list) {
    struct json json = {.out = stdout};
    struct kept_span *spans[FOLDERS_MAX];
    size_t counts[FOLDERS_MAX];
    for (uint64_t i = 0; i < query->folder_count; i++)
        counts[i] = read_spans(list->folders[i].fd, &spans[i]);
    if (query->json)
        json_open(&json, NULL, '[');
    for (uint64_t i = 0; i < query->folder_count; i++) {
        for (size_t j = 0; j < counts[i]; j++)
            print_span(query->json ? &json : NULL, list->folders[i].path, &spans[i][j]);
        free(spans[i]);
    }
    if (query->json) {
        json_close(&json, ']');
        putchar('\n');
    }
}

static bool is_in_span(int folder_fd, const char *name, const struct kept_span *span) {
    struct stat status;
    int64_t begin_ns;
    return directory_begin_ns(name, &begin_ns) && begin_ns <= span->end_ns &&
           !fstatat(folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) &&
           timespec_ns(status.st_mtim) >= span->start_ns;
}

/* A mark that a user made is empty, and stays. */
static void release_file(int folder_fd, const char *name, const struct kept_span *spans,
                         size_t count) {
    char marker[NAME_SIZE], text[TEXT_SIZE];
    for (size_t i = 0; i < count; i++)
        if (is_in_span(folder_fd, name, &spans[i]))
            return;
    if (snprintf(marker, sizeof marker, ".%s" MARKER_KEEP, name) < NAME_SIZE &&
        read_small(folder_fd, marker, text) > 0 && !strcmp(text, SPAN_MARK) &&
        unlinkat(folder_fd, marker, 0))
        fail(EXIT_IO, "%s: %s", marker, strerror(errno));
}

void kept_release(const struct query *query, const struct file_list *list) {
    struct kept_span span, *left;
    char own[NAME_SIZE + 8];
    int folder_fd = find_span(query, list, query->release, &span);
    snprintf(own, sizeof own, ".%s" SPAN_SUFFIX, span.name);
    if (unlinkat(folder_fd, own, 0))
        fail(EXIT_IO, "%s: %s", own, strerror(errno));
    size_t count = read_spans(folder_fd, &left);
    for (size_t i = 0; i < list->count; i++)
        if (list->files[i].folder->fd == folder_fd &&
            is_in_span(folder_fd, list->files[i].name, &span))
            release_file(folder_fd, list->files[i].name, left, count);
    free(left);
}
