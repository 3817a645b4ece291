"""Ports for programs that must be told theirs before they listen."""

import random
import socket

#: Below the ports that Linux gives to connections, so that none takes the port before the program has it.
_CANDIDATES = range(20_000, 32_000)


def is_served(port: int) -> bool:
    with socket.socket() as probe:
        return not probe.connect_ex(("127.0.0.1", port))


def free_port() -> int:
    while is_served(port := random.SystemRandom().choice(_CANDIDATES)):
        pass
    return port
