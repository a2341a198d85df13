"""One question in a line, about models of the real libraries."""

from __future__ import annotations

from typing import Any

import pandas as pd

import treesens as ts
from treesens.compiler.base.diagnostics import DiagnosticsError


def ask(model: Any, question: str, declarations: str = "", data: pd.DataFrame | None = None, **options: Any) -> Any:
    """The answer to one question about model `m`, with the table `d` if there is one."""
    head = 'model m from "m"\n' + ('data d from "d"\n' if data is not None else "")
    tables = {"d": data} if data is not None else None
    text = f"{head}{declarations}\nquery q:\n  {question}\n"
    return ts.check_text(text, models={"m": model}, data=tables, **options)["q"]


def verdict(model: Any, question: str, declarations: str = "", data: pd.DataFrame | None = None, **options: Any) -> str:
    """`found`, `none` or `unknown`; `none` also if the binder already sees that nothing satisfies the constraints."""
    try:
        return str(ask(model, question, declarations, data, **options).verdict)
    except DiagnosticsError as error:
        if {d.code for d in error.diagnostics} <= {"E306", "E309"}:
            return "none"
        raise
