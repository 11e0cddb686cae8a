# SPDX-License-Identifier: Apache-2.0
"""The index of captures that `wiretale view` opens: frames by offset, packets by flow and time, levels of detail."""
