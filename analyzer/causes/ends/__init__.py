# SPDX-License-Identifier: Apache-2.0
"""Slow because of an end: a server, a client, or their buffers and windows."""

from __future__ import annotations

from types import ModuleType

from wiretale.analyzer.causes.ends import (
    acks,
    dialogue,
    greetings,
    late,
    late_acks,
    proxy,
    restarts,
    sending,
    server_time,
    servers,
    tiers,
    windows,
)

CHAPTER = "Slow because of an end"
#: in the order of tests
MODULES: tuple[ModuleType, ...] = (
    late_acks,
    windows,
    acks,
    proxy,
    greetings,
    tiers,
    late,
    servers,
    server_time,
    dialogue,
    restarts,
    sending,
)
