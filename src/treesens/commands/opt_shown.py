"""The output of `treesens opt`: modules and their differences around passes, times, and the list of passes."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from typing import Any

from treesens.compiler.ir import Module
from treesens.compiler.ir.text import digest, print_module
from treesens.compiler.passes.base import PassResult
from treesens.compiler.passes.remarks import Kind, Remark, passed
from treesens.records.passes import catalogue
from treesens.report.terminal import say, say_json


@dataclass(frozen=True)
class Shown:
    """Prints modules around the passes named in `before` and `after`: `on_change` only if the pass changes the module, as a
    `diff` of its input and output, with every row if `full`, and to standard error if `err`. Collects remarks of the `kinds`,
    and prints at most `limit` for each pass and kind, unless they go to a record (`err`).
    """

    before: frozenset[str]
    after: frozenset[str]
    on_change: bool
    diff: bool
    full: bool
    err: bool
    kinds: tuple[Kind, ...]
    limit: int
    remarks: list[list[Remark]] = field(default_factory=list)
    """The remarks of each pass on the present module."""

    def lowered(self, name: str, module: Module) -> None:
        """Called with the module before the first pass."""
        self.remarks.clear()
        if {name, "all"} & self.after:
            self._say(f"after {name}", module)

    def before_pass(self, name: str, module: Module) -> None:
        """Called before a pass."""
        if {name, "all"} & self.before and not self.diff:
            self._say(f"before {name}", module)

    def after_pass(self, name: str, module: Module, result: PassResult) -> None:
        """Called after a pass, with its input and its result."""
        made = [*(passed(module, result) if "passed" in self.kinds else ()), *result.remarks()] if self.kinds else []
        self.remarks.append([one for one in made if one.kind in self.kinds])
        if not self.err:
            self._say_remarks(name)
        named = self.after | (self.before if self.diff else frozenset())
        if not {name, "all"} & named or (self.on_change and _content(module) == _content(result.module)):
            return
        if not self.diff:
            self._say(f"after {name}", result.module)
            return
        old, new = (print_module(one, full=self.full).splitlines() for one in (module, result.module))
        say("\n".join(difflib.unified_diff(old, new, f"before {name}", f"after {name}", lineterm="")), err=self.err)

    def _say_remarks(self, name: str) -> None:
        for kind in self.kinds:
            made = [one for one in self.remarks[-1] if one.kind == kind]
            for one in made[: self.limit]:
                say(f"remark: {name}: {kind}: {one.place}: {one.reason} ({one.count:,})", err=True)
            if len(made) > self.limit:
                say(f"remark: {name}: {kind}: {len(made) - self.limit:,} more", err=True)

    def _say(self, title: str, module: Module) -> None:
        say(f"; {title}\n{print_module(module, full=self.full)}", err=self.err)


def _content(module: Module) -> str:
    """The digest of a module without the names of its passes, which every pass extends."""
    return digest(replace(module, provenance=()))


def say_times(record: dict[str, Any]) -> None:
    """Prints a line for lowering, each pass, legalisation and the total on standard error."""
    passes = [(one["seconds"], one["pass"], one["after"], one["statistics"]) for one in record["passes"]]
    last = {key: value for key, value in record["legalisation"].items() if key != "seconds"}
    lines = [
        (record["lowering"]["seconds"], "lower", record["lowering"]["size"], {}),
        *passes,
        (record["legalisation"]["seconds"], "legalise", last, {}),
        (record["seconds"], "total", {}, {}),
    ]
    for seconds, name, size, statistics in lines:
        sizes = ", ".join(f"{value:,} {key}" for key, value in size.items())
        facts = ", ".join(f"{key} {value:,}" for key, value in statistics.items())
        say(f"{seconds * 1000:9.1f} ms  {name:32} {sizes}{f'  ({facts})' if facts else ''}".rstrip(), err=True)


def say_catalogue(as_json: bool) -> None:
    """Prints all passes and named pipelines."""
    everything = catalogue()
    if as_json:
        say_json(everything)
        return
    for one in everything["passes"]:
        package = f"  [{one['package']}]" if one["package"] else ""
        say(f"{one['name']}{package}: {one.get('about') or one['error']}")
        if "error" in one:
            continue
        say(f"  relation: {one['relation']}")
        for option in one["options"]:
            values = "|".join(str(value).lower() for value in option["choices"]) or option["type"]
            say(f"  option {option['name']}={values} (default {str(option['default']).lower()})")
        for name, meaning in one["statistics"].items():
            say(f"  statistic {name}: {meaning}")
    say("")
    for one in everything["pipelines"]:
        say(f"pipeline {one['name']}: {one['text'] or '(no pass)'}")
