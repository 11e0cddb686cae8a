# SPDX-License-Identifier: Apache-2.0
"""Slow because of the path: losses, queues and limits."""

from __future__ import annotations

from types import ModuleType

CHAPTER = "Slow because of the path"
#: in the order of tests
MODULES: tuple[ModuleType, ...] = ()
