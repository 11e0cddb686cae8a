# SPDX-License-Identifier: Apache-2.0
"""Text from captures and file names, unable to steer a terminal."""

from __future__ import annotations

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """The text with control characters, line ends among them, replaced by U+FFFD."""
    return text if text.isprintable() else "".join(c if c.isprintable() else REPLACEMENT for c in text)
