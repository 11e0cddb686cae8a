/* SPDX-License-Identifier: Apache-2.0 */
/* The error of the emulation is the time by which a packet left later than its model demanded. A
 * run is valid if the error was at most MAX_P99_NS at its 99th percentile and MAX_ERROR_NS at most,
 * in each direction, and the emulator itself lost and restamped no packet. Otherwise delays, queues
 * and losses are not those of the settings alone. Without a packet, validity is unknown. */
#include <inttypes.h>
#include <stdio.h>

#include "common/json.h"
#include "common/units_text.h"
#include "common/utf8.h"
#include "io/link_worker.h"

#define MAX_P99_NS   UINT64_C(1000000)
#define MAX_ERROR_NS UINT64_C(50000000)

/* The worse of both directions. */
struct fidelity {
    uint64_t packets, p50_ns, p99_ns, max_ns;
    uint64_t overruns; /* lost by the emulator: no buffer, no memory, refused by an interface */
    uint64_t restamped;
    bool real_time;
};

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static void add_direction(struct fidelity *sum, const struct link_worker *worker,
                          uint64_t overruns) {
    const struct lateness *errors = &worker->errors;
    const uint64_t *fates = worker->direction.fates;
    sum->packets += errors->count;
    sum->p50_ns = larger(sum->p50_ns, lateness_percentile(errors, 50));
    sum->p99_ns = larger(sum->p99_ns, lateness_percentile(errors, 99));
    sum->max_ns = larger(sum->max_ns, errors->max_ns);
    sum->overruns += overruns + fates[FATE_MEMORY] + fates[FATE_SEND_ERROR];
    sum->restamped += worker->restamped;
}

static bool is_valid(const struct fidelity *found) {
    return found->p99_ns <= MAX_P99_NS && found->max_ns <= MAX_ERROR_NS && !found->overruns &&
           !found->restamped;
}

static void print_fidelity_json(const struct fidelity *found, struct json *json) {
    json_open(json, "fidelity", '{');
    if (found->packets || !is_valid(found))
        json_bool(json, "valid", is_valid(found));
    else
        json_text(json, "valid", NULL);
    json_count(json, "error_ns_p50", found->packets ? (int64_t)found->p50_ns : -1);
    json_count(json, "error_ns_p99", found->packets ? (int64_t)found->p99_ns : -1);
    json_count(json, "error_ns_max", found->packets ? (int64_t)found->max_ns : -1);
    json_count(json, "overruns", (int64_t)found->overruns);
    json_count(json, "restamped", (int64_t)found->restamped);
    json_count(json, "bound_ns_p99", (int64_t)MAX_P99_NS);
    json_count(json, "bound_ns_max", (int64_t)MAX_ERROR_NS);
    json_bool(json, "real_time", found->real_time);
    json_close(json, '}');
}

static void print_fidelity(const struct fidelity *found) {
    printf("fidelity: ");
    if (found->packets)
        printf("emulation error p99 %s, max %s, ", UNITS_SHOW(SHOWN_DURATION, found->p99_ns),
               UNITS_SHOW(SHOWN_DURATION, found->max_ns));
    printf("%" PRIu64 " overruns: ", found->overruns + found->restamped);
    if (found->packets || !is_valid(found))
        printf("%s", is_valid(found) ? "valid" : "not valid");
    else
        printf("no packet left");
    printf(" (bounds: p99 %s, max %s, no overrun)\n", UNITS_SHOW(SHOWN_DURATION, MAX_P99_NS),
           UNITS_SHOW(SHOWN_DURATION, MAX_ERROR_NS));
}

/* Writes the figures of one direction as lines, in which fates that did not occur are left out, or
 * as members of `json` if it is not NULL. */
static void print_direction(const struct link_worker *worker, uint64_t overruns,
                            struct json *json) {
    const struct link_direction *direction = &worker->direction;
    struct {
        const char *name;
        uint64_t value;
    } figures[FATES + 8];
    size_t count = 0;
#define ADD(figure, number) (figures[count].name = figure, figures[count++].value = number)
    ADD("packets", direction->index);
    for (unsigned fate = 0; fate < FATES; fate++)
        if (json || direction->fates[fate])
            ADD(fate_names[fate], direction->fates[fate]);
    ADD("marked", direction->marked);
    ADD("answers", worker->answers);
    ADD("passed", worker->passed);
    ADD("unfinished_checksums", worker->from->unfinished);
    ADD("truth_lost", worker->pen.lost);
    ADD("overruns", overruns);
    ADD("restamped", worker->restamped);
    if (json) {
        json_open(json, NULL, '{');
        json_text(json, "from", worker->from->name);
        json_text(json, "to", worker->to->name);
    } else {
        utf8_put_printable(stdout, worker->from->name);
        fputs(" to ", stdout);
        utf8_put_printable(stdout, worker->to->name);
        putchar('\n');
    }
    for (size_t i = 0; i < count; i++)
        if (json)
            json_count(json, figures[i].name, (int64_t)figures[i].value);
        else
            printf("  %-12s %" PRIu64 "\n", figures[i].name, figures[i].value);
    if (json)
        json_close(json, '}');
}

void link_summary_print(const struct link_worker workers[2], bool real_time, bool as_json) {
    struct json json = {.out = stdout};
    struct fidelity found = {.real_time = real_time};
    if (as_json) {
        json_open(&json, NULL, '{');
        json_text(&json, "schema", "wiretale.link/1");
        json_text(&json, "wiretale", WIRETALE_VERSION);
        json_bool(&json, "real_time", real_time);
        json_open(&json, "directions", '[');
    }
    for (unsigned i = 0; i < 2; i++) {
        uint64_t overruns = link_port_overruns(workers[i].from);
        add_direction(&found, &workers[i], overruns);
        print_direction(&workers[i], overruns, as_json ? &json : NULL);
    }
    if (!as_json) {
        print_fidelity(&found);
        return;
    }
    json_close(&json, ']');
    print_fidelity_json(&found, &json);
    json_close(&json, '}');
    putchar('\n');
}
