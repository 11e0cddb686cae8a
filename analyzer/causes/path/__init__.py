# SPDX-License-Identifier: Apache-2.0
"""Slow because of the path: losses, queues and limits."""

from __future__ import annotations

from types import ModuleType

from wiretale.analyzer.causes.path import changed, host_drops, losses, order, pauses, queues, radio, repeats

CHAPTER = "Slow because of the path"
#: in the order of tests
MODULES: tuple[ModuleType, ...] = (changed, radio, pauses, order, queues, host_drops, losses, repeats)
