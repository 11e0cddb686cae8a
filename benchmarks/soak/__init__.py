# SPDX-License-Identifier: Apache-2.0
"""A capture that runs while disk, interface, clock and process fail, and its account of each packet."""
