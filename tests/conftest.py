"""Guards for all tests: no program and no child process is started by accident, nothing of the machine is read.

A test that really starts programs says so with `@pytest.mark.allow_subprocess`. The error inherits from
BaseException, so that no `except Exception` in the code under test can swallow it (idea seen in cloud-init).
"""
import os
import subprocess

import pytest


class UnexpectedProgram(BaseException):
    """A test without the allow_subprocess mark started a program."""


def pytest_addoption(parser):
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files of tests/nodes")
    parser.addoption("--cluster", action="store_true", help="also run the tests that need the Slurm test cluster")
    parser.addoption("--gpu", action="store_true", help="also run the tests that need a real NVIDIA GPU")
    parser.addoption("--slurm-release", default="24.11", help="Slurm release of the test cluster")


def pytest_collection_modifyitems(config, items):
    for name in ("cluster", "gpu"):
        if config.getoption("--" + name):
            continue
        for item in items:
            if item.get_closest_marker(name):
                item.add_marker(pytest.mark.skip(reason="needs --" + name))


@pytest.fixture(autouse=True)
def no_programs(request, monkeypatch):
    """Programs are started only where a test says so."""
    if request.node.get_closest_marker("allow_subprocess") or request.node.get_closest_marker("cluster"):
        return

    def refuse(*args, **kwargs):
        raise UnexpectedProgram("started %r; mark the test with allow_subprocess if that is meant" % (args[:1],))
    monkeypatch.setattr(subprocess, "Popen", refuse)
    # It forks, and its child would meet the other guards where nobody sees it.
    monkeypatch.setattr("slurm_gpuhealth.command.run", refuse)
    for name in ("posix_spawn", "posix_spawnp", "execv", "execve", "execvp", "execvpe", "system"):
        monkeypatch.setattr(os, name, refuse)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    """No Slurm variable of the machine reaches a test."""
    for name in list(os.environ):
        if name.startswith(("SLURM", "GPUHEALTH_", "GPUSIM_")) and name != "GPUHEALTH_TESTBED":
            monkeypatch.delenv(name)
