# SPDX-License-Identifier: Apache-2.0
"""The figure of a flow outside of a report: in Python, in a notebook, as a picture."""
