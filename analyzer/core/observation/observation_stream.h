/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of observation.h as an Arrow stream: files are read as the consumer asks, so that a
 * capture of any size passes through one batch. */
#ifndef WIRETALE_OBSERVATION_STREAM_H
#define WIRETALE_OBSERVATION_STREAM_H

#include "export/arrow_stream.h"
#include "observation/observation.h"

/* Who reads: called once at the stream's end, with the reader, which it takes (NULL when the input
 * could not be opened, with `error` said). `owner` is kept until the stream is released. */
struct observation_listener {
    void (*ended)(void *owner, struct observation_reader *reader);
    void (*disown)(void *owner);
    void *owner;
};

int observation_schema_export(struct ArrowSchema *out);

/* 0, or ENOMEM. The files are opened when the first batch is asked for; what is wrong with them is
 * the stream's error. `paths` must live as long as the owner. */
int observation_stream_export(const char *const *paths, size_t count,
                              const struct observation_listener *listener,
                              struct ArrowArrayStream *out);

#endif
