/* SPDX-License-Identifier: Apache-2.0 */
/* Too little traffic changes no verdict, so that a quiet night is no news. */
#include "watch/mirror_watch.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/units_text.h"

#define ROUND_NS    NS_PER_S
#define JUDGE_NS    (10 * NS_PER_S)
#define EARLY_LEAST 30 /* connections that suffice for a first verdict before JUDGE_NS */

static void say(const struct mirror_watch *watch, const struct mirror_counts *now,
                enum mirror_fault fault) {
    const struct mirror_counts *before = &watch->before;
    bool is_missing =
        fault == MIRROR_SILENT || fault == MIRROR_OWN || fault == MIRROR_ONE_DIRECTION;
    char count[96] = "";
    uint64_t judged = now->judged - before->judged;
    if (fault == MIRROR_COPIES)
        snprintf(count, sizeof count,
                 "%s of %s: ", UNITS_SHOW(SHOWN_COUNT, now->copies - before->copies),
                 UNITS_SHOW(SHOWN_COUNT, now->segments - before->segments));
    else if (fault == MIRROR_ONE_DIRECTION)
        snprintf(count, sizeof count,
                 "%s of %s: ", UNITS_SHOW(SHOWN_COUNT, now->one_sided - before->one_sided),
                 UNITS_SHOW(SHOWN_COUNT, judged));
    if (mirror_advice(fault))
        log_warning("mirror: %s%s%s", count, mirror_advice(fault),
                    is_missing && watch->is_filtered ? "; or the filter leaves packets out" : "");
    else
        log_info("mirror: both directions arrive, each packet once (%s TCP connection%s)",
                 UNITS_SHOW(SHOWN_COUNT, judged), judged == 1 ? "" : "s");
}

void mirror_watch_round(struct mirror_watch *watch, int64_t now_ns) {
    if (!watch->mirror)
        return;
    if (!watch->judged_ns)
        watch->judged_ns = watch->looked_ns = now_ns;
    if (now_ns - watch->looked_ns < ROUND_NS)
        return;
    watch->looked_ns = now_ns;
    mirror_settle(watch->mirror);
    struct mirror_counts now = mirror_counts_of(watch->mirror);
    enum mirror_fault fault = mirror_judge(&watch->before, &now);
    bool is_early = watch->fault == MIRROR_UNKNOWN && now.judged >= EARLY_LEAST;
    if (fault == MIRROR_UNKNOWN || (now_ns - watch->judged_ns < JUDGE_NS && !is_early))
        return;
    watch->judged_ns = now_ns;
    if (fault != watch->fault)
        say(watch, &now, fault);
    watch->fault = fault;
    watch->before = now;
}

void mirror_watch_tell(const struct mirror_watch *watch, struct status *status) {
    status->has_mirror = watch->mirror;
    if (!watch->mirror)
        return;
    status->mirror = mirror_counts_of(watch->mirror);
    status->mirror_fault = mirror_fault_word(watch->fault);
    status->mirror_is_good = watch->fault == MIRROR_UNKNOWN ? -1 : watch->fault == MIRROR_GOOD;
}
