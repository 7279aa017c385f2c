"""Slurm access: `client(cfg)` gives the backend that works here. See protocol.py for what it can do.

Importing this costs nothing; a backend is imported when one is asked for, as the healthy path of a hook makes no
call to slurmctld at all.
"""


def client(cfg, root="", until=None):
    """A Client (slurm/protocol.py) by the configuration's slurm.backend: "scontrol", "pyslurm" or "auto".

    root: prefix of a fixture node. until: monotonic time after which no call may go on, or None. "auto" takes
    pyslurm where it is installed and works (tried once, in a child, as importing it where Slurm finds no
    configuration ends the process), else scontrol. "pyslurm" that does not work raises SlurmUnavailable.
    """
    wanted = cfg["slurm"]["backend"]
    if wanted != "scontrol" and (wanted == "pyslurm" or (not root and _installed())):
        from slurm_gpuhealth.slurm import pyslurm_backend
        why = pyslurm_backend.unusable(cfg)
        if not why:
            return pyslurm_backend.Pyslurm(cfg, root, until)
        if wanted == "pyslurm":
            from slurm_gpuhealth.errors import SlurmUnavailable
            raise SlurmUnavailable("pyslurm cannot be used here: " + why)
    from slurm_gpuhealth.slurm.scontrol import Scontrol
    return Scontrol(cfg, root, until)


def _installed():
    """Is there a pyslurm to import? Cheaper than importlib.util, and nothing of it is executed."""
    import os
    import sys
    return "pyslurm" in sys.modules or any(
        os.path.isdir(os.path.join(folder, "pyslurm")) for folder in sys.path if folder)
