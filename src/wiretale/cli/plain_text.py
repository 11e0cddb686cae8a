# SPDX-License-Identifier: Apache-2.0
"""Text on terminals whose encoding has no arrows and lines: `->` and `-` in their place."""

from __future__ import annotations

import codecs

ERRORS = "wiretale.plain"
ARROWS = {"→": "->", "←": "<-"}
PLAIN = {
    **ARROWS,
    **dict.fromkeys("─━╌╍–—−", "-"),
    **dict.fromkeys("│┃", "|"),
    **{"…": "...", "×": "x", "µ": "u", "μ": "u", "·": ".", "≥": ">=", "≤": "<=", "≈": "~", "±": "+-", "’": "'"},
    **{"█": "#", "▲": "!", "✖": "x", "•": "*"},
}


def plain(error: UnicodeError) -> tuple[str, int]:
    """What to write instead of the characters that cannot be encoded, and where to go on.

    In a table, an arrow that is followed by two blanks takes one of them, so that the columns stay aligned.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text, end = error.object, error.end
    replaced = "".join(PLAIN.get(character, "?") for character in text[error.start : end])
    if text[end - 1] in ARROWS and text[end : end + 2] == "  ":
        end += 1
    return replaced, end


codecs.register_error(ERRORS, plain)
