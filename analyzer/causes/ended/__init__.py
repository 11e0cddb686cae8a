# SPDX-License-Identifier: Apache-2.0
"""Connections that ended too early."""

from __future__ import annotations

from types import ModuleType

CHAPTER = "Ended too early"
#: in the order of tests
MODULES: tuple[ModuleType, ...] = ()
