"""Pseudo-Boolean solvers through OPB text: any program with the interface of the PB competitions.

`TREESENS_PB_SOLVER` names the command (the file name is appended), e.g. `roundingsat` or `exact`; if the variable is not set,
both commands are searched for on the PATH. The rows are exact integers, so `UNSATISFIABLE` is exact. Output without one of the
competition's status lines is `unknown`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import ClassVar

import numpy as np

from treesens.backends.base import Artifact, Backend, Capabilities, Limits, OnIncumbent, Proof, RawOutcome, Termination
from treesens.backends.text.opb import write_opb
from treesens.compiler.ir import Module
from treesens.runtime.processes import launched

VARIABLE = "TREESENS_PB_SOLVER"
CANDIDATES = ("roundingsat", "exact")


def solver_command() -> list[str] | None:
    """The command of the solver; None if no solver is installed."""
    given = os.environ.get(VARIABLE)
    if given:
        return shlex.split(given)
    return next(([path] for name in CANDIDATES if (path := shutil.which(name)) is not None), None)


class PbBackend(Backend):
    name: ClassVar[str] = "pb"
    capabilities: ClassVar[Capabilities] = Capabilities(proof=Proof.EXACT)

    def available(self) -> str | None:
        command = solver_command()
        if command is None:
            return f"no pseudo-Boolean solver: put roundingsat or exact on the PATH, or set {VARIABLE}"
        return (
            None if shutil.which(command[0]) else f"{VARIABLE} names {command[0]}, which is not an executable program"
        )

    def emit(self, module: Module, *, precision: int = 0) -> Artifact:
        return write_opb(module, precision=precision)

    def solve(self, artifact: Artifact, limits: Limits, on_incumbent: OnIncumbent | None = None) -> RawOutcome:
        command = solver_command()
        if command is None:
            return RawOutcome(Termination.UNSUPPORTED, detail=self.available() or "")
        with tempfile.TemporaryDirectory(prefix="treesens-") as folder:
            path = Path(folder) / "model.opb"
            path.write_text(artifact.text)
            try:
                done = subprocess.run(
                    launched([*command, str(path)], limits.seconds * 2 + 10, limits.memory),
                    capture_output=True,
                    text=True,
                    errors="replace",
                    timeout=limits.seconds,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return RawOutcome(Termination.TIME)
        if limits.log is not None:
            sys.stdout.write(done.stdout)  # the worker's output is the log
        return read_answer(done.stdout, artifact, done.stderr)


def read_answer(output: str, artifact: Artifact, errors: str = "") -> RawOutcome:
    """The facts in a solver's output: `s` status line, `v` values."""
    status = re.search(r"^s\s+(.+?)\s*$", output, re.MULTILINE)
    word = status[1].upper() if status else ""
    if word == "UNSATISFIABLE":
        return RawOutcome(Termination.INFEASIBLE)
    if word not in {"SATISFIABLE", "OPTIMUM FOUND"}:
        return RawOutcome(Termination.UNKNOWN, detail=(word or errors or output).strip()[-200:])
    assignment = np.zeros(artifact.variables, bool)
    seen, places = False, {name: place for place, name in enumerate(artifact.names)}
    for line in re.findall(r"^v\s+(.*)$", output, re.MULTILINE):
        seen = True
        for token in line.split():
            if token in places:
                assignment[places[token]] = True
    if not seen:
        return RawOutcome(Termination.UNKNOWN, detail="the solver reports a solution but prints no values")
    real = artifact.optimises
    optimal = word == "OPTIMUM FOUND" and real
    return RawOutcome(Termination.OPTIMAL if optimal else Termination.SATISFIED, assignment)


BACKEND = PbBackend
