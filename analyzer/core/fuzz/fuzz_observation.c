/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a capture whose packets become rows. */
#define _GNU_SOURCE /* memfd_create */
#include <string.h>

#include "fuzz/memory_file.h"
#include "fuzz/packet_mutator.h"
#include "observation/observation.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct observation rows[64];
    char path[CAPTURE_PATH_SIZE];
    const char *paths[] = {path};
    struct error error;
    int file = make_capture_file(data, size, path);
    struct observation_reader *reader = observation_reader_open(paths, 1, &error);
    for (size_t n; reader && (n = observation_read(reader, rows, 64)) > 0;)
        for (size_t i = 0; i < n; i++)
            if (rows[i].has_ends && strlen(rows[i].ends) >= OBSERVATION_ENDS_MAX)
                abort();
    observation_reader_close(reader);
    close(file);
    return 0;
}
