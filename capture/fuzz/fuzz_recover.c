/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery of a file that a killed run left: any bytes are walked, cut after their last whole block
 * and completed with statistics. The file that results must be whole when it is walked again, with
 * the same packets. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "finish/recover.h"

static void require(bool holds) {
    if (!holds)
        abort();
}

/* Walks the first `size` bytes, of which only `present` can be read. */
static struct recovered walk(int fd, size_t size, size_t present) {
    struct recovered found;
    recover_walk(&found, fd, size);
    uint64_t packets = 0;
    for (uint32_t i = 0; i < found.interfaces; i++)
        packets += found.of[i].packets;
    require(found.whole <= present && found.interfaces <= DESCRIPTIONS_MAX);
    require(found.classic || packets == found.packets);
    require(found.ours || (!found.whole && !found.packets));
    require(!found.error || (present < size && found.readable == present));
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct finished_file file = {
        .directory_fd = -1, .temporary = ".left.pcapng.part", .name = "left.pcapng"};
    file.fd = memfd_create("left", 0);
    require(file.fd >= 0 && write(file.fd, data, size) == (ssize_t)size);
    struct recovered before = walk(file.fd, size, size);
    walk(file.fd, size + 4096, size);
    bool kept = before.ours && recover_cut(&file, &before);
    require(kept == before.ours);
    if (kept) {
        struct recovered after = walk(file.fd, file.bytes, file.bytes);
        require(after.ours && after.packets == before.packets && after.classic == before.classic);
        require(after.interfaces == before.interfaces);
        require(after.whole == file.bytes);
    }
    close(file.fd);
    return 0;
}
