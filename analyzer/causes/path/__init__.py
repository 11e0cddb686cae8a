# SPDX-License-Identifier: Apache-2.0
"""Slow because of the path: losses, queues and limits."""

from __future__ import annotations

from types import ModuleType

from wiretale.analyzer.causes.path import (
    bundle,
    changed,
    host_drops,
    host_shaper,
    losses,
    marks,
    order,
    pauses,
    queues,
    radio,
    repeats,
    voice,
)

CHAPTER = "Slow because of the path"
#: in the order of tests
MODULES: tuple[ModuleType, ...] = (
    changed,
    bundle,
    marks,
    voice,
    host_shaper,
    radio,
    pauses,
    order,
    queues,
    host_drops,
    losses,
    repeats,
)
