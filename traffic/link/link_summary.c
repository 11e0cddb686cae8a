/* SPDX-License-Identifier: Apache-2.0 */
#include "link_summary.h"

#include <inttypes.h>
#include <stdio.h>

static void print_direction(const struct link_worker *worker, uint64_t overruns, bool json) {
    const struct link_direction *direction = &worker->direction;
    const char *number = json ? "\"%s\": %" PRIu64 ", " : "  %-12s %" PRIu64 "\n";
    printf(json ? "{\"from\": \"%s\", \"to\": \"%s\", " : "%s to %s\n", worker->from->name,
           worker->to->name);
    printf(number, "packets", direction->index);
    for (unsigned fate = 0; fate < FATES; fate++)
        if (json || direction->fates[fate])
            printf(number, fate_names[fate], direction->fates[fate]);
    printf(number, "answers", worker->answers);
    printf(number, "passed", worker->passed);
    printf(number, "unfinished_checksums", worker->from->unfinished);
    printf(number, "truth_lost", worker->pen.lost);
    printf(json ? "\"%s\": %" PRIu64 "}" : "  %-12s %" PRIu64 "\n", "overruns", overruns);
}

void link_summary_print(const struct link_worker workers[2], const uint64_t overruns[2],
                        bool real_time, bool json) {
    if (json)
        printf("{\"schema\": \"wiretale.link/1\", \"wiretale\": \"" WIRETALE_VERSION
               "\", \"real_time\": %s, "
               "\"directions\": [",
               real_time ? "true" : "false");
    print_direction(&workers[0], overruns[0], json);
    if (json)
        printf(", ");
    print_direction(&workers[1], overruns[1], json);
    if (json)
        printf("]}\n");
    fflush(stdout);
}
