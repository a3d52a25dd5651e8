"""What can go wrong on a node, beside what a probe reports."""

from jobs.contract.attempts import Exit


class NodeError(Exception):
    """This node can't run the cell: no space, no interpreter, no permission."""


class HostBootError(Exception):
    """The build's Python did not get as far as to be a host: a finding about the build."""

    def __init__(self, how: Exit, log: str, waiting: tuple[str, ...] = ()) -> None:
        self.exit = how
        self.log = log
        self.waiting = waiting
        super().__init__(f"the host did not start: {how}\n{log}")


class HostLostError(Exception):
    """The host, or the keeper of the cell, went away while it was needed."""


class PartedError(Exception):
    """Another part of the cell, on another node, ended before this one could begin."""
