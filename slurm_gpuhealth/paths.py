"""Where things are kept on a node; every path can be put under another root (fixture nodes, tests)."""

CONFIG = "/etc/slurm/gpuhealth.yaml"
KILL_SWITCH = "/etc/slurm/gpuhealth.off"
STATE = "/var/lib/gpuhealth"
RUN = "/run/gpuhealth"
EVENTS = STATE + "/events"
EVIDENCE = STATE + "/evidence"
COMPILED = STATE + "/config.json"
RUN_EVIDENCE = RUN + "/evidence"


def under(root, path):
    """`path` below `root` ("" is the real root)."""
    return root.rstrip("/") + path if root else path
