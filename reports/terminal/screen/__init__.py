# SPDX-License-Identifier: Apache-2.0
"""The screen that a person sees first: the answer, where the time went, causes, flows, what was judged, the next command."""
