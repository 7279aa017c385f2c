"""The one error a person is meant to read, and the exit codes of `testbed`."""


class TestbedError(Exception):
    """Something that was expected to go wrong; the message is one line for a person."""

    __test__ = False  # not a test class, whatever pytest makes of the name
    exit_code = 1


class UsageError(TestbedError):
    """The command line (or a fault's arguments) asks for something that does not exist."""

    exit_code = 64


class Unavailable(TestbedError):
    """No engine, no image, no wheel can be had on this machine; the message says which and what was tried."""

    exit_code = 69


class ExecTimeout(TestbedError):
    """A command in a container did not end within its time. `.argv` and `.seconds` say which and how long."""

    exit_code = 75

    def __init__(self, node: str, argv: "list[str]", seconds: float, output: str) -> None:
        super().__init__(f"{node}: {' '.join(argv)[:200]!r} did not end within {seconds:g} s")
        self.node, self.argv, self.seconds, self.output = node, argv, seconds, output
