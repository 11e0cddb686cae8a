/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as two capture files read together. */
#define _GNU_SOURCE /* memfd_create */
#include "format/merged_input.h"
#include "fuzz/memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char whole[CAPTURE_PATH_SIZE], part[CAPTURE_PATH_SIZE];
    int files[] = {make_capture_file(data, size, whole), make_capture_file(data, size / 2, part)};
    const char *paths[] = {whole, part};
    struct error error;
    for (size_t count = 1; count <= 2; count++) {
        struct merged_input *set = merged_input_open(paths, NULL, count, &error);
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
