# SPDX-License-Identifier: Apache-2.0
"""Ended too early."""

from __future__ import annotations

from types import ModuleType

from wiretale.analyzer.causes.ended import (
    after_answers,
    age,
    answer_ends,
    closed,
    gave_up,
    idle,
    late_datagrams,
    limits,
    resets,
    restarted,
    streams,
    takeover,
    timer,
    tls,
    untranslated,
)

CHAPTER = "Ended too early"
#: in the order of tests
MODULES: tuple[ModuleType, ...] = (
    *(untranslated, tls, takeover, limits, age, restarted, idle, gave_up),
    *(resets, answer_ends, closed, after_answers, streams, timer, late_datagrams),
)
