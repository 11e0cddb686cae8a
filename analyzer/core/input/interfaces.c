/* SPDX-License-Identifier: Apache-2.0 */
/* The interfaces of all files, in the order in which they are read. Each is allocated by itself,
 * because readers keep pointers while the list grows. Texts form a chain and are freed together;
 * their sum is bounded, because a file can hold a text in each of 65,536 interfaces. */
#include "input/interfaces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "common/utf8.h"

struct text_node {
    struct text_node *next;
    char text[];
};

struct interface *interface_list_add(struct interface_list *list, uint32_t *number) {
    if (list->count > UINT32_MAX ||
        !list_grow(&list->items, &list->room, list->count + 1, sizeof *list->items))
        return NULL;
    struct interface *added = calloc(1, sizeof *added);
    if (!added)
        return NULL;
    added->received = added->accepted = added->delivered = DROPS_UNKNOWN;
    added->dropped_interface = added->dropped_kernel = DROPS_UNKNOWN;
    *number = (uint32_t)list->count;
    list->items[list->count++] = added;
    return added;
}

uint64_t interface_dropped_program(const struct interface *interface) {
    uint64_t accepted = interface->accepted, delivered = interface->delivered;
    uint64_t kernel = interface->dropped_kernel == DROPS_UNKNOWN ? 0 : interface->dropped_kernel;
    if (accepted == DROPS_UNKNOWN || delivered == DROPS_UNKNOWN)
        return DROPS_UNKNOWN;
    return accepted >= kernel && accepted - kernel > delivered ? accepted - kernel - delivered : 0;
}

const char *interface_list_text(struct interface_list *list, const char *bytes, size_t size) {
    char clean[INTERFACE_TEXT_MAX];
    size_t length = utf8_copy(clean, sizeof clean, bytes, size);
    size_t node_size = sizeof(struct text_node) + length + 1;
    if (!length)
        return NULL;
    if (node_size > INTERFACE_TEXTS_MAX - list->texts_size)
        return UTF8_CUT;
    struct text_node *node = malloc(node_size);
    if (!node)
        return NULL;
    memcpy(node->text, clean, length + 1);
    node->next = list->texts;
    list->texts = node;
    list->texts_size += node_size;
    return node->text;
}

const char *interface_list_join(struct interface_list *list, const char *before,
                                const char *after) {
    char joined[2 * INTERFACE_TEXT_MAX + 2];
    if (!before || !after)
        return before ? before : after;
    int length = snprintf(joined, sizeof joined, "%s; %s", before, after);
    return interface_list_text(list, joined, length > 0 ? (size_t)length : 0);
}

/* Once one has no room, none has: numbers of later blocks would be wrong. */
static bool has_room(struct processes *processes, size_t size) {
    bool fits = size <= PROCESSES_BYTES_MAX - processes->bytes;
    processes->bytes = fits ? processes->bytes + size : PROCESSES_BYTES_MAX;
    return fits;
}

struct process_section *processes_add_section(struct processes *processes) {
    struct process_section *section = NULL;
    if (has_room(processes, sizeof *section))
        section = calloc(1, sizeof *section);
    if (!section)
        return NULL;
    section->next = processes->sections;
    return processes->sections = section;
}

struct process *processes_add(struct processes *processes, struct process_section *section,
                              uint32_t id, const char *name, size_t size) {
    char clean[PROCESS_NAME_MAX];
    size_t length = utf8_copy(clean, sizeof clean, name, size);
    struct process *added = NULL;
    if (has_room(processes, sizeof *added + length + 1))
        added = calloc(1, sizeof *added + length + 1);
    if (!added)
        return NULL;
    memcpy(added->name, clean, length + 1);
    added->section = section;
    added->id = id;
    added->number = processes->count++;
    added->block = NO_BLOCK;
    if (processes->last)
        processes->last->next = added;
    else
        processes->first = added;
    return processes->last = added;
}

bool process_is_same(const struct process *a, const struct process *b) {
    return a == b || (a->id == b->id && (!*a->name || !*b->name || !strcmp(a->name, b->name)));
}

static void free_processes(struct processes *processes) {
    while (processes->first) {
        struct process *next = processes->first->next;
        free(processes->first);
        processes->first = next;
    }
    while (processes->sections) {
        struct process_section *next = processes->sections->next;
        free(processes->sections->blocks);
        free(processes->sections);
        processes->sections = next;
    }
}

void interface_list_free(struct interface_list *list) {
    free_processes(&list->processes);
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    while (list->texts) {
        struct text_node *next = list->texts->next;
        free(list->texts);
        list->texts = next;
    }
    *list = (struct interface_list){0};
}
