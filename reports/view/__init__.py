# SPDX-License-Identifier: Apache-2.0
"""The report of `wiretale view`: the page of an analysis, whose packets come from an index over HTTP on this machine."""
