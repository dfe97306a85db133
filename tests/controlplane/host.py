"""The address of a control plane: loopback, or an address in a network namespace."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Host:
    """The address that the components listen on, and the command prefix that runs a program there."""

    address: str = "127.0.0.1"
    enter: tuple[str, ...] = ()

    @property
    def has_node(self) -> bool:
        """Whether pods may connect to the API server, and it to a kubelet."""
        return self.address != LOOPBACK.address


LOOPBACK = Host()
