/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as two capture files read together. */
#define _GNU_SOURCE /* memfd_create */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/merged_input.h"

static int open_bytes(const uint8_t *data, size_t size, char path[32]) {
    int file = memfd_create("capture", 0);
    if (file < 0 || write(file, data, size) != (ssize_t)size)
        abort();
    snprintf(path, 32, "/proc/self/fd/%d", file);
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char whole[32], part[32];
    int files[] = {open_bytes(data, size, whole), open_bytes(data, size / 2, part)};
    const char *paths[] = {whole, part};
    struct error error;
    for (size_t count = 1; count <= 2; count++) {
        struct merged_input *set = merged_input_open(paths, count, &error);
        struct packet packets[16];
        uint64_t sum = 0;
        for (size_t n; set && (n = merged_input_read(set, packets, 16)) > 0;)
            for (size_t i = 0; i < n; i++)
                sum += packets[i].captured ? packets[i].data[packets[i].captured - 1] : 0;
        merged_input_close(set);
        if (sum == UINT64_MAX) /* never, but the bytes have to be read for it */
            abort();
    }
    close(files[0]);
    close(files[1]);
    return 0;
}
