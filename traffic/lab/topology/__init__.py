# SPDX-License-Identifier: Apache-2.0
"""Labs of several hosts and links: their description in a profile, their network, and cross traffic."""
