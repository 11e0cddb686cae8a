/* SPDX-License-Identifier: Apache-2.0 */
/* A capture in which packets are looked for, in two steps: found_file_look_up() reads its index and
 * says which parts of it may have such packets; found_file_collect() reads those. */
#ifndef WIRETALE_CAPTURE_FOUND_FILE_H
#define WIRETALE_CAPTURE_FOUND_FILE_H

#include "find/excerpt.h"
#include "find/query.h"
#include "index/index_file.h"

struct folder {
    const char *path;
    int fd;
};

struct match {
    int64_t time_ns;
    uint64_t offset;
    uint32_t size;
    uint32_t interface; /* in the excerpt */
};

struct part { /* bytes of the file */
    uint64_t from, to;
};

enum file_state {
    FILE_NONE,       /* has no such packet */
    FILE_CANDIDATE,  /* may have some */
    FILE_WHOLE,      /* has no index, and must be read whole: it is being written, or has several
                        sections */
    FILE_FOREIGN,    /* is no capture */
    FILE_UNREADABLE, /* is one that `find` does not read, or that the user may not read */
    FILE_GONE        /* was removed meanwhile */
};

struct found_file {
    const struct folder *folder;
    char *name;
    bool is_operand;   /* named on the command line; may be a link */
    bool open_capture; /* is being written */
    bool is_copy;      /* also listed by its final name */
    enum file_state state;
    bool has_index, made_index;
    int64_t first_ns; /* no packet of it is earlier; at the end of the first one found */
    int64_t last_ns;  /* of the last one found */
    struct part *parts;
    size_t part_count;
    struct index_place *places;
    uint32_t place_count;
    /* From collect() on: */
    int fd; /* of the plain bytes */
    struct records records;
    struct match *matches;
    size_t match_count, match_room, next;
    uint64_t bytes, bytes_read;
    int error; /* errno of a file that cannot be read */
};

/* May be called for several files at a time. */
enum file_state found_file_look_up(struct found_file *file, const struct query *query);
enum file_state found_file_collect(struct found_file *file, const struct query *query,
                                   struct excerpt *excerpt);
/* Writes the next packet. Returns false if the file cannot be read any more. */
bool found_file_copy(struct found_file *file, struct excerpt *excerpt);
/* Frees all but the name. */
void found_file_close(struct found_file *file);

#endif
