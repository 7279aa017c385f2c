"""The layout is a rule, not a picture: imports point down only, the core is pure (docs/contributing.md)."""
import ast
import os

import pytest

ROOT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "slurm_gpuhealth")

# Layer of each module, longest matching prefix wins. A module may import from its own layer and below.
LAYERS = {
    "": 0, "errors": 0, "model": 0, "facts": 0, "facts_node": 0, "paths": 0,
    "parse": 1, "catalogue": 1, "reason": 1, "config": 1, "config_defaults": 1, "resume": 2,
    "config_keys": 1, "config_kinds": 1, "config_schema": 3, "config_docs": 3,
    "checks": 2, "decide": 2, "render": 2, "render_table": 2, "prometheus": 2,
    "supervise": 3, "probes": 3, "command": 3, "state": 3, "slurm": 3, "evidence": 3, "events": 3,
    "event_files": 3, "job_history": 3, "notify": 3, "checkpoint": 3, "memory": 3, "context": 3, "taskprolog": 4,
    "gather": 4, "actions": 4, "run": 5,
    "hook": 6, "watch": 6, "cli": 6, "report": 5, "train": 6, "setup": 5,
}

# Modules that decide: no file, no clock, no program, no randomness.
PURE = ("checks", "decide", "reason", "resume", "render", "render_table", "prometheus", "model", "facts", "parse")
IMPURE_MODULES = {"os", "time", "subprocess", "socket", "random", "logging", "pathlib", "shutil", "tempfile", "select",
                  "signal", "threading", "datetime", "syslog", "platform", "pwd", "glob"}
# What may be had from an otherwise impure module because it reads nothing.
PURE_PARTS = {"os.path", "posixpath", "time.mktime", "time.strptime"}


def modules():
    for folder, _, names in os.walk(ROOT):
        for name in sorted(names):
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                dotted = os.path.relpath(path, ROOT)[:-3].replace(os.sep, ".")
                yield dotted[:-9].rstrip(".") if dotted.endswith("__init__") else dotted, path


def imports(path):
    """(line, dotted module, imported name or "") of every import, also those inside functions."""
    with open(path, encoding="utf-8") as handle:
        tree = ast.parse(handle.read(), path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, ""
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield node.lineno, node.module, alias.name


def layer(dotted):
    parts = dotted.split(".") if dotted else [""]
    for length in range(len(parts), 0, -1):
        found = LAYERS.get(".".join(parts[:length]))
        if found is not None:
            return found
    return None


ALL = list(modules())


@pytest.mark.parametrize("dotted,path", ALL, ids=[item[0] or "__init__" for item in ALL])
def test_imports_point_down(dotted, path):
    """A module imports only from its own layer and from layers below."""
    own = layer(dotted)
    assert own is not None, "give %s a layer in this file" % dotted
    for line, module, name in imports(path):
        if not module.startswith("slurm_gpuhealth"):
            continue
        inner = module[len("slurm_gpuhealth"):].lstrip(".")
        target = inner or (name if layer(name) is not None else "")
        assert layer(target) is not None, "%s:%d imports %s, which has no layer" % (path, line, target)
        assert layer(target) <= own, "%s:%d: layer %d imports %s of layer %d" % (
            path, line, own, target, layer(target))


@pytest.mark.parametrize("dotted,path", [item for item in ALL if item[0].split(".")[0] in PURE],
                         ids=[item[0] for item in ALL if item[0].split(".")[0] in PURE])
def test_core_is_pure(dotted, path):
    """Checks, decisions and parsers read no file and no clock: what they need is handed to them."""
    if dotted == "checks.generate":
        pytest.skip("makes the documentation page; not imported by any hook")
    with open(path, encoding="utf-8") as handle:
        tree = ast.parse(handle.read(), path)
    for line, module, name in imports(path):
        full = "%s.%s" % (module, name) if name else module
        assert module.split(".")[0] not in IMPURE_MODULES or full in PURE_PARTS, "%s:%d imports %s" % (
            path, line, full)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("open", "exec", "eval", "print", "input", "compile"), "%s:%d calls %s" % (
                path, node.lineno, node.func.id)


def test_checks_do_not_know_each_other():
    """A check stands alone: it imports no other check, no probe, no configuration and no state."""
    allowed = ("slurm_gpuhealth.model", "slurm_gpuhealth.facts", "slurm_gpuhealth.catalogue", "slurm_gpuhealth.parse",
               "slurm_gpuhealth.checks._", "slurm_gpuhealth")
    seen = 0
    for dotted, path in ALL:
        name = dotted.rpartition(".")[2]
        if not dotted.startswith("checks.") or name.startswith("_") or name == "generate":
            continue
        seen += 1
        for line, module, what in imports(path):
            if not module.startswith("slurm_gpuhealth"):
                continue
            full = module + "." + what if module in ("slurm_gpuhealth.checks", "slurm_gpuhealth") else module
            assert full.startswith(allowed[:-1]), "%s:%d imports %s" % (path, line, full)
    assert seen >= 5


def test_one_subprocess_gate():
    """Only command.py starts programs from the package's root side; users' own commands start in cli/run_cmd.py."""
    allowed = {"command", "cli.run_cmd"}
    for dotted, path in ALL:
        for line, module, _ in imports(path):
            assert module.split(".")[0] != "subprocess" or dotted in allowed, "%s:%d imports subprocess" % (path, line)


def test_broad_excepts_only_at_the_edges():
    """`except Exception` is for the places that turn any failure into a policy or an exit code, and nowhere else."""
    for dotted, path in ALL:
        if dotted in ("hook", "supervise", "cli.main", "checks"):
            continue
        with open(path, encoding="utf-8") as handle:
            tree = ast.parse(handle.read(), path)
        for node in ast.walk(tree):
            if isinstance(node, ast.ExceptHandler):
                names = [node.type] if not isinstance(node.type, ast.Tuple) else node.type.elts
                for name in names:
                    broad = name is None or (isinstance(name, ast.Name) and name.id in ("Exception", "BaseException"))
                    reraised = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
                    assert not broad or reraised, "%s:%d: broad except" % (path, node.lineno)
