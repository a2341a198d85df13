"""A journal that stores the answers of `check`, so that unchanged questions are not solved again."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from treesens.binder.file import ResolvedFile, ResolvedQuestion
from treesens.compiler.base.diagnostics import DiagnosticsError
from treesens.compiler.result import Result

if TYPE_CHECKING:
    from treesens.records.journal import Journal
    from treesens.solve.options import Options


@dataclass(frozen=True)
class AnswerMemory:
    """An open journal, with the options of its questions; if there is no journal, answers are neither stored nor found."""

    journal: Journal | None
    options: Options
    _texts: dict[Path, str] = field(default_factory=dict)

    def known(self, path: Path, bound: ResolvedFile, asked: Sequence[ResolvedQuestion]) -> dict[str, Result]:
        """Answers of earlier runs by name; their pairs are verified again."""
        if self.journal is None:
            return {}
        found = ((query.name, self._recalled(path, bound, query)) for query in asked)
        return {name: result for name, result in found if result is not None}

    def keep(self, path: Path, bound: ResolvedFile, query: ResolvedQuestion, result: Result) -> None:
        """Stores an answer. An open answer is stored with its time limit, unless an error or Ctrl-C ended its search."""
        from treesens.records.journal import Entry
        from treesens.records.kept import is_decided, to_json

        if self.journal is None or result.from_journal or result.reason.startswith(("error", "interrupted")):
            return
        kept = {"result": to_json(query.query, result), "answered": int(time.time())}
        try:
            json.dumps(kept, allow_nan=False)
        except ValueError:
            return  # an infinite bound cannot be stored in a journal
        final = is_decided(result, self.options.closeness)
        key, spent = self._key(path, bound, query, final=final), sum(result.seconds.values())
        self.journal.keep(
            Entry(key, str(result.verdict), query.name, str(path), cpu=spent), self.options.time_limit, kept
        )

    def _recalled(self, path: Path, bound: ResolvedFile, query: ResolvedQuestion) -> Result | None:
        from treesens.records.kept import from_json

        assert self.journal is not None
        for final in (True, False):
            key = self._key(path, bound, query, final=final)
            record, start = self.journal.record(key, self.options.time_limit), time.perf_counter()
            if record is None:
                continue
            try:
                predict, kept = query.library_predicts(self.options.replay), record["result"]
                result = from_json(query.query, kept, float(record["answered"]), predict)
            except (ValueError, KeyError, TypeError, IndexError, OverflowError, OSError, DiagnosticsError):
                raise self.journal.damaged(f"the answer to `{query.name}` in the journal is damaged") from None
            if result is not None:
                return replace(result, seconds={"journal": time.perf_counter() - start})
        return None

    def _key(self, path: Path, bound: ResolvedFile, query: ResolvedQuestion, *, final: bool) -> str:
        """The key of an answer: the key used by sweeps, plus the options that `check` adds."""
        from treesens.records.journal import key_of
        from treesens.records.questions import contents_of, context_of, digest_of, sha256

        if path not in self._texts:
            self._texts[path] = context_of(bound.file, contents_of(bound.file, path.parent))
        o = self.options
        limit = None if final else o.time_limit
        parts = [key_of(digest_of(self._texts[path], query.find), o), o.confirm, o.regions, limit]
        return sha256(json.dumps(["check", "record", *parts]))
