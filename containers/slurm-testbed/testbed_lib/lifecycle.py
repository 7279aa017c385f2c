"""Clusters come and go: attach, up, down."""

from __future__ import annotations

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from docker.errors import APIError, NotFound  # type: ignore[import-untyped]

from . import dock, engine, images, slurmconf, stuck, wheels
from .cluster import CTL, LABEL, Spec, TestCluster, load_spec, save_spec
from .errors import TestbedError, UsageError
from .paths import REPO, cluster_dir
from .releases import DEFAULT, TORCH_RELEASE, release
from .say import say, step

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,20}\Z")
CAPABILITIES = ["SYS_ADMIN", "SYS_NICE", "SYSLOG", "SYS_PTRACE"]
# Mounts, strace and FUSE from inside; the host's AppArmor profile for containers would forbid the first.
SECURITY = ["seccomp=unconfined", "apparmor=unconfined"]
DEVICE_RULES = ["b 7:* rwm", "c 10:237 rwm", "c 10:229 rwm"]  # loop devices, loop-control, fuse


def names_up(client: Any) -> list[str]:
    found = client.containers.list(all=True, filters={"label": LABEL})
    return sorted({container.labels[LABEL] for container in found})


def attach(name: str = "gh", client: Any | None = None) -> TestCluster:
    """The running cluster of this name."""
    client = client or engine.connect(start=False)
    spec = load_spec(name)
    if spec is None or not spec.ready or name not in names_up(client):
        up = names_up(client)
        client.close()
        raise TestbedError(
            f"cluster {name} is not up" + (f" (up: {', '.join(up)})" if up else "; `testbed up` makes one")
        )
    return TestCluster(client, spec)


def up(
    name: str = "gh",
    *,
    slurm: str = DEFAULT,
    nodes: int = 3,
    gpus: int = 8,
    torch: bool = False,
    product: bool = True,
    mirror: str | None = None,
    conf: dict[str, str] | None = None,
    repo: Path = REPO,
) -> TestCluster:
    """Make a cluster (or return the one of this name where it is up and the same). Undone if it fails half-way."""
    if not NAME.match(name):
        raise UsageError(f"not a cluster name: {name!r} (small letters, digits and -, up to 21 characters)")
    if not (1 <= nodes <= 32 and 0 <= gpus <= 16):
        raise UsageError("--nodes is 1 to 32, --gpus 0 to 16")
    wanted = release(slurm)
    if torch and slurm != TORCH_RELEASE:
        raise UsageError(
            f"--torch goes with --release {TORCH_RELEASE} only (there is a CPU build for its Python)"
        )
    client = engine.connect()
    try:
        old = load_spec(name)
        if name in names_up(client):
            if old is not None and old.ready:
                if (old.release, old.nodes, old.gpus, old.torch, old.product) == (
                    slurm,
                    nodes,
                    gpus,
                    torch,
                    product,
                ):
                    say(f"cluster {name} is up already")
                    return TestCluster(client, old)
                raise UsageError(
                    f"cluster {name} is up with Slurm {old.release}, {old.nodes} nodes of {old.gpus} GPUs: "
                    f"`testbed down --name {name}` first, or another --name"
                )
            say(f"removing what an interrupted `up` left of cluster {name}")
        down(name, client)
        wheel = wheels.product_wheel(repo) if product else None
        image = images.ensure_image(client, wanted, torch=torch, product=wheel, mirror=mirror)
        spec = Spec(name, slurm, nodes, gpus, torch, product, image, False, conf or {})
        save_spec(spec)
        cluster = TestCluster(client, spec)
        try:
            _make(cluster)
        except BaseException:  # also Ctrl-C: nothing half-made stays
            down(name, client)
            raise
        return cluster
    except BaseException:
        client.close()
        raise


def _make(cluster: TestCluster) -> None:
    spec = cluster.spec
    for folder in ("shared", "data"):
        (cluster.host_dir / folder).mkdir(parents=True, exist_ok=True)
    with step(f"starting cluster {spec.name}: Slurm {spec.release}, {spec.nodes} nodes of {spec.gpus} GPUs"):
        cluster.client.networks.create(
            cluster.network, driver="bridge", internal=True, labels={LABEL: spec.name}
        )
        files = cluster._conf_files()
        files["/etc/munge/munge.key"] = (os.urandom(1024), 0o400, 0, 0)
        for node in cluster.all:
            _create(cluster, node)
            dock.put_files(cluster.client, cluster.container(node), files)
        cluster.client.api.start(cluster.container(CTL))
        cluster.await_boot(CTL)
        _make_folders(cluster)
        cluster.each(cluster.nodes, lambda node: cluster.client.api.start(cluster.container(node)))
        cluster.each(cluster.nodes, cluster.await_boot)
        cluster._await("the nodes in Slurm", 60, lambda: set(cluster.node_states().values()) == {"idle"})
        if spec.product:
            cluster.each(cluster.all, cluster.install_product)
            # Only now: a Prolog that is not there yet would drain the node of the first job.
            cluster.set_conf({**slurmconf.HOOKS, **spec.conf})
    cluster.spec = cluster.spec._replace(ready=True)
    save_spec(cluster.spec)


def _create(cluster: TestCluster, node: str) -> None:
    host_dir = cluster.host_dir
    cluster.client.containers.create(
        cluster.spec.image,
        name=cluster.container(node),
        hostname=node,
        init=True,
        labels={LABEL: cluster.name, "gpuhealth-testbed.node": node},
        environment={"ROLE": "ctl" if node == CTL else "node", "NODE": node, "GPUS": str(cluster.spec.gpus)},
        network=cluster.network,
        networking_config=_alias(cluster, node),
        cap_add=CAPABILITIES,
        security_opt=SECURITY,
        device_cgroup_rules=DEVICE_RULES,
        # A name that is not a node's is refused at once: the network leads nowhere, and Slurm asks for some.
        dns=["127.0.0.1"],
        dns_opt=["timeout:1", "attempts:1"],
        tmpfs={"/run": "rw,nosuid,nodev,mode=755,size=256m"},
        volumes={
            str(host_dir / folder): {"bind": f"/srv/{folder}", "mode": "rw"} for folder in ("shared", "data")
        },
    )


def _alias(cluster: TestCluster, node: str) -> Any:
    """The container answers to the node's plain name in its own network: every cluster has a ctl and an n1."""
    endpoint = cluster.client.api.create_endpoint_config(aliases=[node])
    return {cluster.network: endpoint}


def _make_folders(cluster: TestCluster) -> None:
    """Homes and folders behind /shared and /data, made inside: the host's user may not give files away."""
    script = (
        "set -e; mkdir -p /shared/home /shared/ckpt /shared/gpuhealth /data/ckpt; chmod 755 /shared /shared/home; "
        "for u in alice bob; do h=/shared/home/$u; mkdir -p $h; chown $u:$u $h; chmod 750 $h; done; "
        "chown gpuhealth: /shared/gpuhealth; chmod 1777 /shared/ckpt /data /data/ckpt"
    )
    cluster.exec(CTL, ["sh", "-c", script]).check()


def down(name: str, client: Any | None = None) -> bool:
    """Remove a cluster: containers, network, host folder. True where there was something to remove."""
    own_client = client is None
    client = client or engine.connect(start=False)
    try:
        found = client.containers.list(all=True, filters={"label": f"{LABEL}={name}"})
        networks = client.networks.list(filters={"label": f"{LABEL}={name}"})
        folder = cluster_dir(name)
        if not (found or networks or folder.exists()):
            return False
        with step(f"removing cluster {name}"):
            running = [c for c in found if c.status == "running"]
            for container in running:
                _undo(client, container.name)
            if running and os.geteuid() != 0:
                # What the containers' root wrote only they can remove.
                dock.run(
                    client, running[0].name, ["sh", "-c", "rm -rf /srv/shared/* /srv/data/*"], timeout=60
                )
            with ThreadPoolExecutor(max_workers=8) as pool:
                list(pool.map(_remove, found))
            for network in networks:
                network.remove()
            shutil.rmtree(folder, ignore_errors=True)
        return True
    finally:
        if own_client:
            client.close()


def _undo(client: Any, container: str) -> None:
    try:
        dock.run(client, container, ["gpusim", "undo"], timeout=20)
    except TestbedError as exc:
        say(f"{container}: {exc}")
    stuck.thaw_from_host(client, container)


def _remove(container: Any) -> None:
    try:
        container.remove(force=True, v=True)
    except NotFound:
        pass
    except APIError as exc:
        raise TestbedError(f"{container.name} cannot be removed: {exc.explanation or exc}") from exc
