"""What is particular to the pyslurm backend, and how a backend is chosen."""
import ast
import inspect
import os
import sys

import pytest

from slurm_gpuhealth import slurm
from slurm_gpuhealth.errors import SlurmUnavailable
from slurm_gpuhealth.slurm import pyslurm_backend

pytestmark = pytest.mark.allow_subprocess

FAKES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fakes")


@pytest.fixture
def kind():
    return "pyslurm", "24.11"


def names():
    """{name: signature} of the committed list."""
    with open(os.path.join(FAKES, "pyslurm_names.txt")) as handle:
        rows = [line.rsplit(None, 1)[0].split(None, 1) for line in handle if not line.startswith("#")]
    return {name: signature.strip() for name, signature in rows}


def test_fake_stands_in_for_published_names(client):
    """The fake has each name of the list with its signature, and no public name besides."""
    from fakes import pyslurm_api
    for name, signature in names().items():
        if signature == "attribute":
            continue
        found = pyslurm_api
        for part in name.split("."):
            found = getattr(found, part)
        if signature == "property":
            assert isinstance(found, property), name
        elif signature != "value":
            wanted = [word.strip() for word in signature.strip("()").split(",") if word.strip()]
            assert list(inspect.signature(found).parameters) == wanted, name
    for kind in ("Node", "Nodes", "Job", "Jobs"):
        public = {kind + "." + name for name in vars(getattr(pyslurm_api, kind)) if not name.startswith("_")}
        assert public <= set(names()), kind


def test_backend_uses_published_names_only():
    """Each attribute the backend takes from pyslurm, a Job or a Node is in the list."""
    tree = ast.parse(inspect.getsource(pyslurm_backend))
    used = set()
    for item in ast.walk(tree):
        if isinstance(item, ast.Attribute) and isinstance(item.value, ast.Name) and item.value.id in (
                "pyslurm", "job", "node", "one"):
            used.add((item.value.id, item.attr))
    published = set(names())
    for variable, attribute in used - {("one", "get")}:
        prefix = {"pyslurm": "", "job": "Job.", "one": "Job.", "node": "Node."}[variable]
        assert any(name == prefix + attribute or name.startswith(prefix + attribute + ".")
                   for name in published), attribute
    assert len(used) > 30


def test_what_pyslurm_cannot_do_goes_through_scontrol(client, cluster):
    """SpecialExit, running jobs only, an empty comment and bytes that are no text."""
    cluster.add_job(7, nodes=["n1"])
    job = client.job(7)
    client.set_comment(job, "plain")
    assert cluster.calls() == []
    client.set_comment(job, "")
    client.set_comment(job, "b\udce9")
    client.requeue(job, running_only=True)
    assert [argv[1] for argv in cluster.calls()] == ["update", "update", "requeue"]


def test_auto_takes_pyslurm_where_it_works(client, cfg):
    """auto: pyslurm where it can be imported."""
    cfg["slurm"]["backend"] = "auto"
    assert slurm.client(cfg).backend == "pyslurm"


def test_auto_without_pyslurm(cfg, monkeypatch):
    """auto: scontrol where there is none, and nothing is tried."""
    monkeypatch.delitem(sys.modules, "pyslurm", raising=False)
    monkeypatch.setattr(pyslurm_backend, "unusable", lambda cfg: pytest.fail("tried an import"))
    monkeypatch.setattr(sys, "path", [])
    cfg["slurm"]["backend"] = "auto"
    assert slurm.client(cfg).backend == "scontrol"


@pytest.mark.parametrize("body", [
    "import os; os._exit(1)", "raise ImportError('libslurm.so.43: cannot open')", "import time; time.sleep(30)"])
def test_pyslurm_that_ends_the_process(cfg, monkeypatch, tmp_path, body):
    """libslurm ends the process where it finds no configuration: only a child dies, and scontrol is used."""
    monkeypatch.delitem(sys.modules, "pyslurm", raising=False)
    (tmp_path / "lib" / "pyslurm").mkdir(parents=True)
    (tmp_path / "lib" / "pyslurm" / "__init__.py").write_text(body)
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    cfg["deadlines"]["slurm"] = 0.5
    cfg["slurm"]["backend"] = "auto"
    assert slurm.client(cfg).backend == "scontrol"
    cfg["slurm"]["backend"] = "pyslurm"
    with pytest.raises(SlurmUnavailable, match="pyslurm cannot be used here"):
        slurm.client(cfg)


def test_import_costs_nothing():
    """A hook on its healthy path imports slurm_gpuhealth.slurm and no backend."""
    from slurm_gpuhealth import command
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(slurm.__file__))))
    done = command.run([sys.executable, "-IS", "-c", "import sys; sys.path.insert(0, %r); "
                        "import slurm_gpuhealth.slurm; print([name for name in sys.modules if "
                        "name.startswith('slurm_gpuhealth.')])" % root], 20)
    assert done.out.strip() == "['slurm_gpuhealth.slurm']"


def test_live():
    """A built pyslurm reads this cluster's nodes."""
    if not slurm._installed():
        pytest.skip("pyslurm is not installed (it builds only against the one Slurm release it names)")
    from slurm_gpuhealth import config_defaults
    cfg = config_defaults.fresh()
    why = pyslurm_backend.unusable(cfg)
    if why:
        pytest.skip("pyslurm cannot be used here: " + why)
    assert slurm.client(cfg).all_nodes()
