/* SPDX-License-Identifier: Apache-2.0 */
#include "writer.h"

#include <sys/resource.h>

#include "common/clock.h"

#define WAIT_NS (100 * NS_PER_MS)
#define HOLD_NS (10 * NS_PER_MS) /* with packets that wait for those of another device */

static void stop_at_limits(const struct output *output) {
    const struct settings *settings = output->capture->settings;
    if ((settings->stop_bytes && atomic_load(&output->total_bytes) >= settings->stop_bytes) ||
        (settings->stop_files && atomic_load(&output->files) >= settings->stop_files))
        atomic_store(&output->capture->stopping, true);
}

static void *run(void *argument) {
    struct writer *writer = argument;
    struct merge *merge = &writer->merge;
    setpriority(PRIO_PROCESS, 0, 0); /* the reading threads go first; a thread's own on Linux */
    while (!merge_has_ended(merge)) {
        chunk_queue_take(merge->queue, merge->lanes, merge_is_empty(merge) ? WAIT_NS : HOLD_NS);
        bool any = merge_write(merge);
        output_look(merge->output, !any && merge_is_empty(merge));
        stop_at_limits(merge->output);
    }
    output_close(merge->output);
    atomic_store(&writer->done, true);
    return NULL;
}

bool writer_start(struct writer *writer, struct output *output) {
    writer->merge = (struct merge){.queue = &output->capture->queue, .output = output};
    if (pthread_create(&writer->thread, NULL, run, writer))
        return false;
    pthread_setname_np(writer->thread, "write");
    return true;
}

void writer_join(struct writer *writer) {
    pthread_join(writer->thread, NULL);
}
