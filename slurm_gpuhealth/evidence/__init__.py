"""Evidence of an incident: kept before anything changes the node, complete or visibly not, never half written.

The functions that hooks call; each imports its module when it is called, as a healthy hook needs none of them.
"""


def open_incident(root, cfg, incident, facts, situation, policy, findings, klog_lines):
    """store.open_incident: make the folder of an incident and keep what must be kept first."""
    from slurm_gpuhealth.evidence import store
    return store.open_incident(root, cfg, incident, facts, situation, policy, findings, klog_lines)


def reopen(root, path):
    """store.reopen: go on with a folder in another process."""
    from slurm_gpuhealth.evidence import store
    return store.reopen(root, path)


def prune(root, cfg, open_ids, now=None):
    """shelf.prune: remove old folders over the limits, never one of an open incident."""
    from slurm_gpuhealth.evidence import shelf
    return shelf.prune(root, cfg, open_ids, now)
