# SPDX-License-Identifier: Apache-2.0
"""How right the verdicts are: scenarios over a path that logs what it does, and the score of three analyzers."""
