# SPDX-License-Identifier: Apache-2.0
"""Precision and recall of the verdicts of three analyzers, over a path that logs the fate of each packet."""
