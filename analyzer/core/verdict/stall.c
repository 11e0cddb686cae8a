/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict/stall.h"

#include <stdio.h>
#include <string.h>

#include "verdict/duplicate.h"

struct stall {
    int64_t ns;
    uint32_t from, until; /* frames */
};

struct stall_list {
    uint32_t count;
    struct stall stalls[STALLS_MOST]; /* the longest first */
};

/* The last frame of this direction up to `ns` before the one at hand, 0 if it is not known. */
static uint32_t frame_before(const struct step *step, int64_t ns) {
    const struct tcp_stream *stream = step->stream;
    uint32_t since = tcp_copy_time(step->seen->time_ns - ns);
    for (unsigned i = 1; i <= stream->mark_room; i++) {
        const struct packet_mark *mark =
            &stream->marks[(stream->next_mark - i) & (stream->mark_room - 1)];
        if (mark->frame && (int32_t)(since - mark->time) >= 0)
            return mark->frame;
    }
    return 0;
}

static struct stall_list *list_of(const struct step *step, struct tcp_trouble *trouble) {
    if (!trouble->stalls && trouble != step->listener->spare(step)) {
        trouble->stalls = allowance_take(step->allowance, sizeof *trouble->stalls);
        if (trouble->stalls)
            memset(trouble->stalls, 0, sizeof *trouble->stalls);
    }
    return trouble->stalls;
}

void stall_note(const struct step *step, struct tcp_trouble *trouble, int64_t ns, uint32_t from) {
    struct stall_list *list = list_of(step, trouble);
    struct stall stall = {ns, from ? from : frame_before(step, ns), step_frame(step)};
    if (!list || !stall.from || !stall.until)
        return;
    uint32_t at = list->count;
    while (at && list->stalls[at - 1].ns < ns)
        at--;
    if (at == STALLS_MOST)
        return;
    list->count += list->count < STALLS_MOST;
    memmove(&list->stalls[at + 1], &list->stalls[at],
            (list->count - 1 - at) * sizeof *list->stalls);
    list->stalls[at] = stall;
}

void stall_text(const struct tcp_trouble *trouble, char text[STALLS_TEXT_MAX]) {
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; trouble->stalls && i < trouble->stalls->count; i++) {
        const struct stall *stall = &trouble->stalls->stalls[i];
        used += (size_t)snprintf(text + used, STALLS_TEXT_MAX - used, "%s%u-%u", i ? ", " : "",
                                 stall->from, stall->until);
    }
}

void stall_free(struct tcp_trouble *trouble, struct allowance *allowance) {
    if (trouble->stalls)
        allowance_give(allowance, trouble->stalls, sizeof *trouble->stalls);
    trouble->stalls = NULL;
}
