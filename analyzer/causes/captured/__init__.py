# SPDX-License-Identifier: Apache-2.0
"""Faults of the capture itself."""

from __future__ import annotations

from types import ModuleType

from wiretale.analyzer.causes.captured import altered, missing, tracer

CHAPTER = "The capture itself"
#: in the order of tests
MODULES: tuple[ModuleType, ...] = (tracer, missing, altered)
