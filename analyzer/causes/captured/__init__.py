# SPDX-License-Identifier: Apache-2.0
"""Faults of the capture itself."""

from __future__ import annotations

from types import ModuleType

CHAPTER = "The capture itself"
#: in the order of tests
MODULES: tuple[ModuleType, ...] = ()
