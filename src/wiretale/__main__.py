# SPDX-License-Identifier: Apache-2.0
"""`python -m wiretale` is `wiretale`."""

from wiretale.cli import command

if __name__ == "__main__":
    command()
