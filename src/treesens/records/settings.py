"""The settings of a question, and the key that a journal keeps its answer under."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import treesens
from treesens.backends.base import BACKENDS, packages_of
from treesens.compiler.base.tolerance import RELATIVE
from treesens.compiler.pipeline import pipeline_for
from treesens.records.installation import package_version
from treesens.records.questions import sha256
from treesens.solve.methods.portfolio import RACERS
from treesens.solve.options import Options


@dataclass(frozen=True)
class Settings:
    """Settings of every question of a sweep. Times in seconds, `memory_limit` in bytes. All except those in `NO_PART_OF_A_KEY`
    are part of the key of an answer.
    """

    backend: str = "native"
    pipeline: str = "default"
    time_limit: float = 60.0
    total_limit: float | None = None
    threads: int = 1
    memory_limit: int | None = None
    seed: int = 0
    tolerance: float = RELATIVE
    absolute_tolerance: float = 0.0
    replay: str = "auto"
    share: bool = True
    retry: bool = False
    """Ask again what failed in an earlier run."""
    certificates: str | None = None
    """The folder for certificates; answers with and without them are kept apart."""
    require_certificate: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "backend", BACKENDS.canonical(self.backend))

    @staticmethod
    def of(options: Options, replay: str) -> Settings:
        """The settings by which `check` and `bench` store an answer: all that also exist as options."""
        names = {one.name for one in fields(Options)} & {one.name for one in fields(Settings)}
        found = {name: getattr(options, name) for name in names}
        found["certificates"] = None if options.certificates is None else str(options.certificates)
        return Settings(**found, replay=replay)

    @property
    def passes(self) -> str:
        """The pipeline that runs."""
        return pipeline_for(self.backend, self.pipeline)


NO_PART_OF_A_KEY = frozenset({"time_limit", "total_limit", "share", "retry"})
"""Settings that do not change the content of an answer; the journal compares time limits itself."""


def key_of(digest: str, settings: Settings) -> str:
    """The key of an answer: the question, its settings, and the versions of the solving software; not the time limit."""
    asked = {one.name: getattr(settings, one.name) for one in fields(settings) if one.name not in NO_PART_OF_A_KEY}
    asked["pipeline"] = settings.passes
    parts = {"question": digest, "asked": asked, "versions": versions(settings.backend)}
    return sha256(json.dumps(parts, sort_keys=True))


@functools.cache
def versions(backend: str) -> dict[str, str]:
    """The versions that an answer of this backend depends on; the engine also by its content."""
    from treesens._engine import __file__ as engine_file

    with Path(engine_file).open("rb") as file:
        engine = hashlib.file_digest(file, "sha256").hexdigest()
    found = {"treesens": treesens.__version__, "engine": engine}
    for name in RACERS if backend == "auto" else (backend,):
        for package in packages_of(name):
            found[package] = package_version(package) or "absent"
    return found


def settings_text(settings: Settings) -> str:
    """For the journal."""
    return json.dumps(asdict(settings), sort_keys=True)
