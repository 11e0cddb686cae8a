/* SPDX-License-Identifier: Apache-2.0 */
/* Exports observations as an Arrow stream. Files are read as the consumer requests batches, so that
 * a capture of any size needs the memory of one batch. */
#ifndef WIRETALE_OBSERVATION_STREAM_H
#define WIRETALE_OBSERVATION_STREAM_H

#include "export/arrow_stream.h"
#include "observation/observation.h"

/* Callback at the stream's end, which takes over the reader (NULL if the input could not be opened,
 * with `error` set). `owner` must outlive the stream. */
struct observation_listener {
    void (*ended)(void *owner, struct observation_reader *reader);
    void (*disown)(void *owner);
    void *owner;
};

int observation_schema_export(struct ArrowSchema *out);

/* Returns 0, or ENOMEM. The files are opened for the first batch; their errors are errors of the
 * stream. `paths` must live as long as the owner. */
int observation_stream_export(const char *const *paths, size_t count,
                              const struct observation_listener *listener,
                              struct ArrowArrayStream *out);

#endif
