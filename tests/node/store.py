"""An S3 object store on the node's address, which pods can reach."""

from pathlib import Path

from tests.databases.s3 import ObjectStore
from tests.node.machine import Machine

PORT = 9000


class NodeStore(ObjectStore):
    """The store, in the machine's network."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self._machine = machine
        self.port = PORT

    @property
    def address(self) -> str:
        """The node's address."""
        return self._machine.slot.address

    def command(self, *command: str | Path) -> list[str]:
        """Return a command as it runs in the machine."""
        return self._machine.process("s3", *command).command
