/* SPDX-License-Identifier: Apache-2.0 */
/* Recovery of a file that a killed run left: any bytes are walked, cut after their last whole block
 * and completed with statistics. The file that results must be whole when it is walked again, with
 * the same packets. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "finish/recover.h"

static void require(bool holds) {
    if (!holds)
        abort();
}

/* A copy of exactly this size, so that a sanitizer sees a step beyond its end. */
static struct recovered walk(const uint8_t *data, size_t size) {
    struct recovered found;
    uint8_t *copy = malloc(size ? size : 1);
    require(copy);
    if (size)
        memcpy(copy, data, size);
    recover_walk(&found, copy, size);
    free(copy);
    uint64_t packets = 0;
    for (uint32_t i = 0; i < found.interfaces; i++)
        packets += found.of[i].packets;
    require(found.whole <= size && found.interfaces <= DESCRIPTIONS_MAX);
    require(found.classic || packets == found.packets);
    require(found.ours || (!found.whole && !found.packets));
    return found;
}

static struct recovered walk_file(int fd) {
    struct stat status;
    require(!fstat(fd, &status));
    size_t size = (size_t)status.st_size;
    uint8_t *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    require(data != MAP_FAILED);
    struct recovered found = walk(data, size);
    require(found.whole == size);
    munmap(data, size);
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct recovered before = walk(data, size);
    struct finished_file file = {
        .directory_fd = -1, .temporary = ".left.pcapng.part", .name = "left.pcapng"};
    file.fd = memfd_create("left", 0);
    require(file.fd >= 0 && write(file.fd, data, size) == (ssize_t)size);
    bool kept = before.ours && recover_cut(&file, &before);
    require(kept == before.ours);
    if (!kept) {
        close(file.fd);
        return 0;
    }
    struct recovered after = walk_file(file.fd);
    require(after.ours && after.packets == before.packets && after.classic == before.classic);
    require(after.interfaces == before.interfaces);
    require(after.whole == file.bytes);
    close(file.fd);
    return 0;
}
