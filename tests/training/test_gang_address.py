"""Where ranks meet: never at an address that only one of their machines knows."""

import psutil
import pytest

from workers.contract import Node
from workers.training.failures_named import PortTaken, RendezvousFailed
from workers.training.gang_address import interface_of, interface_to, is_loopback, meeting_place
from workers.training.keeper import listen


def node(host: str, address: str) -> Node:
    return Node(worker=f"wk_{address}", address=address, host=host, threads=1)


def test_ranks_of_one_machine_meet_at_its_loopback():
    alone = [node("one", "tcp://10.0.0.1:4000"), node("one", "tcp://10.0.0.1:4001")]
    assert meeting_place(alone, lambda: "10.0.0.1") == "127.0.0.1"
    on_ray = [node("one", "ray://wk_1"), node("one", "ray://wk_2")]
    assert meeting_place(on_ray, lambda: "10.0.0.1") == "127.0.0.1"
    assert interface_to("127.0.0.1") == "lo"


def test_machines_that_are_called_alike_are_told_apart_by_their_addresses():
    alike = [node("localhost", "tcp://10.0.0.1:4000"), node("localhost", "tcp://10.0.0.2:4000")]
    assert meeting_place(alike, lambda: "10.0.0.1") == "10.0.0.1"


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.1.1", "::1"])
def test_several_machines_do_not_meet_at_an_address_of_one(address):
    apart = [node("one", "ray://wk_1"), node("two", "ray://wk_2")]
    assert is_loopback(address)
    with pytest.raises(RendezvousFailed, match="two cannot reach it"):
        meeting_place(apart, lambda: address)


def test_an_unknown_name_is_told_as_that():
    with pytest.raises(RendezvousFailed, match=r"no-such-host\.invalid"):
        is_loopback("no-such-host.invalid")


def test_an_address_belongs_to_its_interface():
    own = [
        (name, each.address)
        for name, addresses in psutil.net_if_addrs().items()
        for each in addresses
        if each.family.name == "AF_INET" and not each.address.startswith("127.")
    ]
    for name, address in own:
        assert interface_of(address) in (name, *(other for other, same in own if same == address))


def test_a_port_of_an_address_that_is_not_ours_cannot_be_had(monkeypatch):
    monkeypatch.setattr("workers.training.keeper.PAUSE_SECONDS", 0.0)
    with pytest.raises(RendezvousFailed, match="no address of this machine"):
        listen("198.51.100.7")


def test_ports_that_are_taken_are_tried_again(monkeypatch):
    monkeypatch.setattr("workers.training.keeper.PAUSE_SECONDS", 0.0)
    tries = []

    def bound(address):
        tries.append(address)
        raise OSError(98, "Address already in use")

    monkeypatch.setattr("workers.training.keeper._bound", bound)
    with pytest.raises(PortTaken, match="Address already in use"):
        listen("127.0.0.1")
    assert len(tries) == 5
