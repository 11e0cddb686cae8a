/* SPDX-License-Identifier: Apache-2.0 */
/* What was received, on standard output: as it came, or in blocks of one size. */
#include "ttcp/ttcp_transfer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool write_all(const uint8_t *data, size_t count) {
    while (count) {
        ssize_t written = write(STDOUT_FILENO, data, count);
        if (written < 0 && errno == EINTR && !ttcp_stopped)
            continue;
        if (written <= 0)
            return false;
        data += written;
        count -= (size_t)written;
    }
    return true;
}

bool ttcp_output_write(struct ttcp_output *output, const uint8_t *data, size_t count) {
    if (!output->block)
        return write_all(data, count);
    while (count) {
        size_t room = output->length - output->held, part = count < room ? count : room;
        memcpy(output->block + output->held, data, part);
        output->held += part;
        data += part;
        count -= part;
        if (output->held == output->length && !ttcp_output_flush(output))
            return false;
    }
    return true;
}

bool ttcp_output_flush(struct ttcp_output *output) {
    size_t count = output->held;
    output->held = 0;
    return !count || write_all(output->block, count);
}
