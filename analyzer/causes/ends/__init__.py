# SPDX-License-Identifier: Apache-2.0
"""Slow because of an end: a server, a client, or their buffers and windows."""

from __future__ import annotations

from types import ModuleType

from wiretale.analyzer.causes.ends import acks, dialogue, proxy, restarts, sending, servers, tiers, windows

CHAPTER = "Slow because of an end"
#: in the order of tests
MODULES: tuple[ModuleType, ...] = (windows, acks, proxy, tiers, servers, dialogue, restarts, sending)
