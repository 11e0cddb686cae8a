# SPDX-License-Identifier: Apache-2.0
"""Trials that are too long for the suite: they count what must not happen."""
