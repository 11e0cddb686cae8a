# SPDX-License-Identifier: Apache-2.0
"""A capture beside its nearest rivals: the cause that it has, or must not have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from plain_wire import Wire


class Case(NamedTuple):
    """A capture, the cause that heads it (or one that it must not have, if not `is_there`), and words of its sentence."""

    make: Callable[[], Wire]
    code: str
    says: tuple[str, ...] = ()
    is_there: bool = True


NOT = partial(Case, says=(), is_there=False)
