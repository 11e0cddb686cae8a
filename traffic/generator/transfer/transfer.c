/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer/transfer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

const char *const way_names[] = {"forward", "reverse"};

static bool way_is_active(const struct test_plan *plan, enum way_name name) {
    return plan->direction == DIRECTION_BOTH ||
           (plan->direction == DIRECTION_REVERSE) == (name == WAY_REVERSE);
}

static bool begin_way(struct test *test, enum way_name name) {
    struct way *way = &test->ways[name];
    way->test = test;
    way->name = name;
    way->is_active = way_is_active(&test->plan, name);
    way->is_sending = (name == WAY_FORWARD) == test->asks;
    if (!way->is_active)
        return true;
    way->count = (uint32_t)test->plan.streams;
    way->streams = calloc(way->count, sizeof *way->streams);
    for (uint32_t i = 0; way->streams && i < way->count; i++) {
        way->streams[i].way = way;
        way->streams[i].number = (uint16_t)i;
        way->streams[i].fd = -1;
    }
    return way->streams != NULL;
}

bool test_begin(struct test *test) {
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&test->arrived, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&test->lock, NULL);
    test->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return test->wake >= 0 && begin_way(test, WAY_FORWARD) && begin_way(test, WAY_REVERSE);
}

void test_end(struct test *test) {
    for (unsigned name = 0; name < WAYS; name++) {
        struct way *way = &test->ways[name];
        for (uint32_t i = 0; way->streams && i < way->count; i++)
            if (way->streams[i].fd >= 0)
                close(way->streams[i].fd);
        free(way->streams);
        way->streams = NULL;
    }
    tcp_samples_free(&test->samples);
    content_end(&test->content);
    test_plan_free(&test->plan);
    if (test->wake >= 0)
        close(test->wake);
    pthread_cond_destroy(&test->arrived);
    pthread_mutex_destroy(&test->lock);
}

static void stop_ways(struct test *test) {
    for (unsigned name = 0; name < WAYS; name++)
        if (test->ways[name].is_sending)
            test->ways[name].stop = true;
}

void test_stop(struct test *test, const char *reason, bool here) {
    pthread_mutex_lock(&test->lock);
    if (!test->stopped_by) {
        test->stopped_by = reason;
        test->stopped_at = here == test->asks ? "sender" : "receiver";
    }
    pthread_mutex_unlock(&test->lock);
    stop_ways(test);
}

void test_fail(struct test *test, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    pthread_mutex_lock(&test->lock);
    if (!test->trouble[0])
        vsnprintf(test->trouble, sizeof test->trouble, format, arguments);
    pthread_mutex_unlock(&test->lock);
    va_end(arguments);
    test_stop(test, "error", true);
}
