# SPDX-License-Identifier: Apache-2.0
"""What wiretale-capture tells about its own link and clock: in the file, the log and the status."""

from __future__ import annotations

import pytest

from capture_link import CaptureLink, StatusClient, captures_of
from processes import output

pytestmark = pytest.mark.xdist_group("capture")


def test_a_lost_carrier_is_told_everywhere(link: CaptureLink) -> None:
    there = ("ip", "-n", link.sender, "link", "set", "out0")
    with link.daemon(watched=True) as daemon:
        client = StatusClient(link.status)
        link.deliver(10)
        output(*there, "down")
        client.wait(lambda line: line["interfaces"][0]["carrier"] is False, "the carrier is lost")
        output(*there, "up")
        line = client.wait(lambda line: line["interfaces"][0]["carrier"], "the carrier is back")
        client.close()
        link.wait_up("in0", "out0")
        output("ip", "-n", link.tracer, "link", "set", "in0", "mtu", "1400")
        daemon.wait_message("in0 has another speed, MTU or offload than before")
        link.deliver(10)
        assert not daemon.stop()
    assert (line["interfaces"][0]["carrier_losses"], line["interfaces"][0]["promiscuous"]) == (1, True)
    assert line["clock"]["synchronized"] in (True, False) and line["clock"]["steps"] == 0
    messages = daemon.messages()
    assert "in0 lost its carrier\n" in messages and "in0 has its carrier again after" in messages
    (file,) = link.files()
    (row,) = captures_of(file)
    assert (row["packets"], row["carrier_losses"], row["clock_steps"]) == (20, 1, 0)
    assert row["first_ns"] < row["carrier_lost_ns"] < row["carrier_back_ns"] < row["last_ns"]
    assert 0 < row["carrier_down_ns"] <= row["carrier_back_ns"] - row["carrier_lost_ns"] + 10**6
    assert (row["mtu"], row["duplex"], row["speed_bps"]) == (1500, "full", 10**10)  # at the start
    assert (row["time_stamps"], row["promiscuous"], row["send_offload"]) == ("host", True, True)
    information = output("capinfos", str(file))
    assert (
        "Comment = wiretale.link/1 time_stamps=host" in information and "wiretale.clock/1 synchronized=" in information
    )
