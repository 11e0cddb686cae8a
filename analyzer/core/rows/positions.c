/* SPDX-License-Identifier: Apache-2.0 */
/* A list for each table, in the order of its rows. */
#include "rows/positions.h"

#include <stdlib.h>

#include "base/arena.h"

unsigned position_list_of(enum table_number number) {
    switch (number) {
    case TABLE_flows: return 0;
    case TABLE_events: return 1;
    case TABLE_blocks: return 2;
    default: return POSITION_TABLES;
    }
}

void position_log_close(struct position_log *log) {
    for (unsigned i = 0; log && i < POSITION_TABLES; i++)
        free(log->lists[i].list);
    free(log);
}

static struct position position_now(const struct position_log *log, uint32_t flow) {
    struct position position = {.frame = flow,
                                .kind = log->ended ? POSITION_ENDED : POSITION_EXPIRED};
    if (log->packet) {
        const struct packet_info *info = log->packet;
        position = (struct position){info->time_ns, info->frame, info->capture, POSITION_PACKET};
    }
    if (!log->packet && log->datagram)
        position = (struct position){log->datagram->first_ns, log->datagram->first_frame,
                                     log->datagram->capture, POSITION_DATAGRAM};
    return position;
}

void position_note(struct position_log *log, enum table_number number, uint32_t flow) {
    if (!log || position_list_of(number) == POSITION_TABLES)
        return;
    struct position_list *list = &log->lists[position_list_of(number)];
    if (list_grow(&list->list, &list->room, list->count + 1, sizeof *list->list))
        list->list[list->count++] = position_now(log, flow);
    else
        log->out_of_memory = true;
}
