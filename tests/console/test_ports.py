"""The ports that an installation picks for its own servers."""

import socket

from console import ports


def test_a_picked_port_is_below_those_of_outgoing_connections() -> None:
    picked = [ports.pick_free_port() for _ in range(20)]
    assert all(ports.FIRST_PORT <= port < ports.LAST_PORT for port in picked)
    assert len(set(picked)) > 1


def test_the_preferred_port_is_kept_while_it_is_free() -> None:
    preferred = ports.pick_free_port()
    assert ports.pick_free_port(preferred) == preferred
    with socket.create_server(("127.0.0.1", preferred)):
        assert ports.pick_free_port(preferred) != preferred
