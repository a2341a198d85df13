"""Facts that affect a measurement in addition to its question: versions of packages, and the machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from treesens.backends.base import BACKENDS, packages_of
from treesens.compiler.base.plugins import plugin_versions

LIBRARIES = ("xgboost", "xgboost-cpu", "lightgbm", "scikit-learn", "catboost", "onnxruntime", "treelite", "ydf")
"""Distributions whose models treesens reads, and which replay pairs."""


def package_version(name: str) -> str | None:
    """The version of a distribution, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def solver_packages() -> dict[str, list[str]]:
    """The distributions that backends need, including plug-ins, each with the backends that need it."""
    found: dict[str, list[str]] = {}
    for backend in BACKENDS.names():
        for name in packages_of(backend):
            found.setdefault(name, []).append(backend)
    return found


def package_versions() -> dict[str, str]:
    """Versions that affect a measurement: numpy, installed solvers and libraries, and plug-ins."""
    names = ("numpy", *solver_packages(), *LIBRARIES)
    return {name: found for name in names if (found := package_version(name)) is not None} | plugin_versions()


def machine_facts() -> dict[str, Any]:
    """Processor, usable cores, memory in bytes, system, Python, and the load average of the last minute."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": _processor(),
        "cores": cores,
        "memory": _memory(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def environment_facts() -> dict[str, str]:
    """Versions of Python, the system and the libraries: the software that may affect an answer."""
    return {
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        **package_versions(),
    }
