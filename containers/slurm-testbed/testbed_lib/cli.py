"""The command line of `testbed`."""

from __future__ import annotations

import argparse
import sys

from . import dock, engine, faults, images, inject, lifecycle, releases, say, wheels
from .cluster import CTL, TestCluster
from .errors import TestbedError, UsageError

DESCRIPTION = (
    "A real Slurm cluster in containers with simulated GPUs: one controller (ctl), GPU nodes n1, n2, ..."
)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="testbed",
        description=DESCRIPTION,
        epilog="example: testbed up && testbed inject n1 xid 79 gpu3 && testbed exec ctl -- sinfo -R",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress lines")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def add(name: str, help: str, named: bool = True) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=help, description=help)
        if named:
            sub.add_argument("--name", default="gh", help="which cluster (default: gh)")
        return sub

    def shape(sub: argparse.ArgumentParser) -> None:
        sub.add_argument(
            "--release", default=releases.DEFAULT, choices=list(releases.RELEASES), help="Slurm release"
        )
        sub.add_argument(
            "--torch", action="store_true", help=f"with a CPU build of torch ({releases.TORCH_RELEASE} only)"
        )
        sub.add_argument("--no-product", action="store_true", help="Slurm and simulated GPUs only")
        sub.add_argument(
            "--mirror", help="Debian mirror for debootstrap (default: from this machine's apt sources)"
        )

    up = add("up", "make a cluster")
    shape(up)
    up.add_argument("--nodes", type=int, default=3, help="GPU nodes (3)")
    up.add_argument("--gpus", type=int, default=8, help="GPUs a node (8)")
    down = add("down", "remove a cluster and everything `up` made")
    down.add_argument("--all", action="store_true", help="every cluster of this machine")
    add("status", "state of the cluster's nodes")
    run = add("exec", "run a command on a node: exec NODE -- COMMAND")
    run.add_argument("--user", default="", help="as this user (alice, bob; default root)")
    run.add_argument("--timeout", type=float, default=600, help="seconds (600)")
    run.add_argument("node")
    run.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- COMMAND")
    shell = add("shell", "a shell on a node")
    shell.add_argument("--user", default="")
    shell.add_argument("node", nargs="?", default="ctl")
    fault = add("inject", "make a fault on a node: inject NODE FAULT ... (`testbed faults` lists them)")
    fault.add_argument("node")
    fault.add_argument("fault", nargs=argparse.REMAINDER, metavar="FAULT ...")
    add("clear", "make a node healthy again").add_argument("node")
    add("reboot", "power-cycle a node").add_argument("node")
    conf = add("conf", "change slurm.conf on all nodes: conf KEY=VALUE ... (KEY= drops it)")
    conf.add_argument("pair", nargs="+", metavar="KEY=VALUE")
    demo = add("demo", "the story: a fault under a training job, and what becomes of both")
    shape(demo)
    demo.set_defaults(name="demo", release=None)
    demo.add_argument("--keep", action="store_true", help="leave the cluster up afterwards")
    build = add("build", "make the image of a release, without a cluster", named=False)
    shape(build)
    add("faults", "list what can be injected", named=False)
    status = add("engine-status", "which Docker engine is used", named=False)
    status.add_argument("--pid", action="store_true", help="only the process id of our own engine, if it runs")
    add("can-run", "whether an engine answers or could be started here; says why not", named=False)
    add("engine-stop", "stop the engine that the test cluster started (never another one)", named=False)
    return parser


def _up(args: argparse.Namespace) -> int:
    cluster = lifecycle.up(
        args.name,
        slurm=args.release,
        nodes=args.nodes,
        gpus=args.gpus,
        torch=args.torch,
        product=not args.no_product,
        mirror=args.mirror,
    )
    cluster.close()
    say.say(f"cluster {args.name} is up: try `testbed exec --name {args.name} ctl -- sinfo`")
    return 0


def _down(args: argparse.Namespace) -> int:
    client = engine.connect(start=False)
    try:
        names = lifecycle.names_up(client) if args.all else [args.name]
        for name in names:
            if not lifecycle.down(name, client):
                say.say(f"there is no cluster {name}")
    finally:
        client.close()
    return 0


def _status(cluster: TestCluster, args: argparse.Namespace) -> int:
    spec = cluster.spec
    print(
        f"cluster {spec.name}: Slurm {spec.release}, {spec.nodes} nodes of {spec.gpus} GPUs, image {spec.image}"
    )
    ctl_up = cluster.running(CTL)
    slurm = cluster.node_states() if ctl_up else {}
    print(f"{'ctl':6} {'up' if ctl_up else 'off':4} slurmctld")
    for node in cluster.nodes:
        up = cluster.running(node)
        changes = {
            key: value
            for key, value in (inject.read_state(cluster, node) if up else {}).items()
            if key != "gpus"
        }
        words = " ".join(f"{key}={value}" for key, value in sorted(changes.items())) or "healthy"
        print(f"{node:6} {'up' if up else 'off':4} {slurm.get(node, '?'):12} {words if up else ''}".rstrip())
    return 0


def _command(words: list[str]) -> list[str]:
    words = words[1:] if words[:1] == ["--"] else words
    if not words:
        raise UsageError("which command? testbed exec NODE -- COMMAND")
    return words


def _exec(cluster: TestCluster, args: argparse.Namespace) -> int:
    stdin = None if sys.stdin is None or sys.stdin.isatty() else _piped()
    done = cluster.exec(args.node, _command(args.argv), user=args.user, timeout=args.timeout, stdin=stdin)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    return done.returncode


def _piped() -> bytes | None:
    """What is piped in; nothing where standard input is closed or is a terminal's."""
    try:
        import select

        return sys.stdin.buffer.read() if select.select([sys.stdin], [], [], 0)[0] else None
    except (OSError, ValueError):
        return None


def _shell(cluster: TestCluster, args: argparse.Namespace) -> int:
    return dock.shell(cluster.client, cluster.container(args.node), ["bash", "-l"], args.user)


def _inject(cluster: TestCluster, args: argparse.Namespace) -> int:
    inject.inject(cluster, args.node, args.fault)
    return 0


def _clear(cluster: TestCluster, args: argparse.Namespace) -> int:
    inject.clear(cluster, args.node)
    return 0


def _reboot(cluster: TestCluster, args: argparse.Namespace) -> int:
    cluster.reboot(args.node)
    return 0


def _conf(cluster: TestCluster, args: argparse.Namespace) -> int:
    changes: dict[str, str | None] = {}
    for pair in args.pair:
        key, equals, value = pair.partition("=")
        if not equals or not key.isalnum():
            raise UsageError(f"not KEY=VALUE: {pair!r}")
        changes[key] = value
    cluster.set_conf(changes)
    return 0


def _demo(args: argparse.Namespace) -> int:
    from . import demo

    return demo.run(args)


def _build(args: argparse.Namespace) -> int:
    client = engine.connect()
    try:
        wheel = None if args.no_product else wheels.product_wheel()
        tag = images.ensure_image(
            client, releases.release(args.release), torch=args.torch, product=wheel, mirror=args.mirror
        )
        size = int(client.images.get(tag).attrs["Size"])
        print(f"{tag} {size / 1e6:.0f} MB")
    finally:
        client.close()
    return 0


def _faults(args: argparse.Namespace) -> int:
    for fault in faults.FAULTS.values():
        print(f"{fault.name} {fault.usage}\n    {fault.help}")
    return 0


def _engine_status(args: argparse.Namespace) -> int:
    own = engine.own_pid()
    if args.pid:
        print(own or "")
        return 0
    try:
        client = engine.connect(start=False)
    except TestbedError as exc:
        print(exc)
        return 1
    print(f"engine {client.version()['Version']}, " + (f"our own (process {own})" if own else "not ours"))
    print(f"clusters: {', '.join(lifecycle.names_up(client)) or 'none'}")
    client.close()
    return 0


def _can_run(args: argparse.Namespace) -> int:
    why = engine.can_have_engine()
    if why is not None:
        print(why)
    return 1 if why else 0


def _engine_stop(args: argparse.Namespace) -> int:
    if engine.own_pid() is not None:
        client = engine.connect(start=False)
        for name in lifecycle.names_up(client):
            lifecycle.down(name, client)
        client.close()
    if not engine.stop_own():
        say.say("no engine of the test cluster's own is running")
    return 0


WITHOUT_CLUSTER = {
    "up": _up,
    "down": _down,
    "demo": _demo,
    "build": _build,
    "faults": _faults,
    "engine-status": _engine_status,
    "engine-stop": _engine_stop,
    "can-run": _can_run,
}
WITH_CLUSTER = {
    "status": _status,
    "exec": _exec,
    "shell": _shell,
    "inject": _inject,
    "clear": _clear,
    "reboot": _reboot,
    "conf": _conf,
}


def main(argv: list[str]) -> int:
    args = _parser().parse_args(argv)
    say.quiet = args.quiet
    try:
        if args.command in WITHOUT_CLUSTER:
            return WITHOUT_CLUSTER[args.command](args)
        cluster = lifecycle.attach(args.name)
        try:
            return WITH_CLUSTER[args.command](cluster, args)
        finally:
            cluster.close()
    except TestbedError as exc:
        print(f"testbed: {exc}", file=sys.stderr)
        return exc.exit_code
    except KeyboardInterrupt:
        print("testbed: stopped", file=sys.stderr)
        return 130
