# SPDX-License-Identifier: Apache-2.0
"""Established, and then nothing gets through."""

from __future__ import annotations

from types import ModuleType

from wiretale.analyzer.causes.broken import (
    cut_direction,
    deadlock,
    fragments,
    hung,
    large_datagrams,
    media,
    mtu,
    silence,
    split_hello,
    tunnels,
)

CHAPTER = "Established, and then nothing gets through"
#: in the order of tests
MODULES: tuple[ModuleType, ...] = (
    *(tunnels, fragments, large_datagrams, media, split_hello, mtu),
    *(deadlock, hung, silence, cut_direction),
)
