"""The errors this package raises on purpose, each with its exit code.

Exit codes 0 to 3 are the outcome of a check (Nagios convention, see model.py); errors use 64 and above
(sysexits.h), so that a crash can never be read as a health verdict. A test looks for duplicates.
"""

EXIT_OK = 0
EXIT_WARNING = 1
EXIT_FATAL = 2
EXIT_UNKNOWN = 3


class GpuHealthError(Exception):
    """Base of every expected error; its message is one line for a person.

    Anything that is not a GpuHealthError is a bug of ours and is shown as one (exit 70).
    """

    exit_code = 70


class UsageError(GpuHealthError):
    """The command line asks for something that does not exist or does not fit."""

    exit_code = 64


class DataError(GpuHealthError):
    """A file that was given as input is not what it should be (evidence, events, checkpoint manifest)."""

    exit_code = 65


class NotFoundError(GpuHealthError):
    """The named thing (code, evidence folder, job, file) is not there."""

    exit_code = 66


class SlurmUnavailable(GpuHealthError):
    """slurmctld did not answer in time; the action may be spooled and tried again."""

    exit_code = 69


class StateError(GpuHealthError):
    """The node's own state folder cannot be read or written."""

    exit_code = 71


class SlurmRefused(GpuHealthError):
    """slurmctld answered and said no; the message is Slurm's own."""

    exit_code = 76


class PermissionDenied(GpuHealthError):
    """The command needs root, or a file that must belong to root does not."""

    exit_code = 77


class ConfigError(GpuHealthError):
    """The configuration is wrong; the message names file, line and the nearest right name."""

    exit_code = 78
