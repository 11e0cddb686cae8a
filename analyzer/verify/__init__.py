# SPDX-License-Identifier: Apache-2.0
"""tshark's verdicts against those of wiretale."""
