# SPDX-License-Identifier: Apache-2.0
"""Nobody answers: hosts, listeners and names."""

from __future__ import annotations

from types import ModuleType

CHAPTER = "Nobody answers"
#: in the order of tests
MODULES: tuple[ModuleType, ...] = ()
