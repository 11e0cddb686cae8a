# SPDX-License-Identifier: Apache-2.0
"""Analyses of captures that still run: the files as they are finished, snapshots of open flows, and the page that follows."""
