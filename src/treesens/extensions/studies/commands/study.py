"""The command of a study, made from its declaration, and the journal from which a later run of the command resumes."""

from __future__ import annotations

import hashlib
import inspect
import json
import shlex
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from treesens.commands.common import (
    EXPECTED,
    INCONCLUSIVE,
    INTERNAL,
    INTERRUPTED,
    UNREADABLE,
    VIOLATED,
    checked_folder,
    quiet_option,
    trust_option,
)
from treesens.commands.outputs import journal_option, open_journal
from treesens.compiler.base import option_kinds as kinds
from treesens.compiler.base.diagnostics import did_you_mean
from treesens.compiler.base.files import write_atomically
from treesens.compiler.result import have_own_fault
from treesens.errors import InternalError, TreesensError, UsageError, told
from treesens.extensions.studies.commands.study_options import option_of
from treesens.extensions.studies.commands.study_outputs import Outputs, outputs_of
from treesens.extensions.studies.shared_records import ManifestRecord, manifest_record
from treesens.extensions.studies.study import Asking, Door, Found, Study, declared, in_names_of, told_of
from treesens.records.plain import plain
from treesens.report.terminal import say
from treesens.runtime.interruption import interruptible

if TYPE_CHECKING:
    from treesens.records.journal import KeptAnswers


_PATH: click.Path = click.Path(path_type=Path)


def study_command(study: Study[Any, Any]) -> click.Command:
    """The command: models and rows, then the options of the study in their order, then the options for running and printing."""
    words = tuple(study.fails)
    fail = [click.Option(["fail_on", "--fail-on"], type=click.Choice(words), help=study.fail_words)] if words else []
    plural = "the model, if its content does" if len(study.models) == 1 else "both files, if their content does"
    form = [click.Option(["form", "--format"], help=f"The format of {plural} not show it.")] if study.models else []
    command = click.Command(
        study.name,
        params=[
            *([click.Argument(["what"], type=click.Choice(study.what))] if study.what else []),
            *(click.Argument([name], type=_PATH) for name in study.models),
            *(
                [click.Argument(["rows_file"], type=_PATH, required=False, metavar="[TABLE]")]
                if by_place(study)
                else []
            ),
            *_rows(study),
            *map(option_of, declared(study.options, Door.COMMAND)),
            *fail,
            *form,
            click.Option(["as_json", "--json"], is_flag=True, help="One JSON object on standard output."),
        ],
        callback=lambda **given: run(study, given),
        help=inspect.cleandoc(study.text),
    )
    trust, journal = (trust_option,) if study.models else (), (journal_option,) if study.journal else ()
    for more in (*trust, *journal, quiet_option):
        command = more(command)
    return command


def _rows(study: Study[Any, Any]) -> list[click.Parameter]:
    """The parameters for the rows: an option, or the argument of a study without a model."""
    if study.table is None:
        return []
    label = click.Option(["label", "--label"], required=study.needs_label, help=study.label)
    if not study.models:
        return [click.Argument(["data"], type=_PATH), label]
    required = study.needs_table and not by_place(study)
    return [click.Option(["data", "--data"], type=_PATH, required=required, help=study.table), label]


def by_place(study: Study[Any, Any]) -> bool:
    """True if the table of a study may be an argument: before or after its only model, or as `--data`."""
    return study.table is not None and len(study.models) == 1


_TABLES = (".csv", ".gz", ".ods", ".parquet", ".tsv", ".xls", ".xlsx")
"""Names of tables, for files whose content looks like a model."""


def model_and_table(first: Path, second: Path, form: str | None, usage: str) -> tuple[Path, Path]:
    """Two files as a model and a table, by their content. Raises UsageError for two models or two tables."""
    from treesens.frontends.registry import is_model

    models = [is_model(path, form) for path in (first, second)]
    if models[0] == models[1]:  # some models and some workbooks are archives, and a missing file has only a name
        models = [set(map(str.lower, path.suffixes)).isdisjoint(_TABLES) for path in (first, second)]
    if models[0] == models[1] and first.exists() and second.exists():
        both = "both files are models" if models[0] else "neither file is a model of a known format"
        raise UsageError(f"{both}: `{first}` and `{second}`", remedy=f"name one model and one table: {usage}")
    return (second, first) if models == [False, True] else (first, second)


def _told_apart(study: Study[Any, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the model and the table in their places. Raises UsageError if the table is missing or given twice."""
    second, usage = given["rows_file"], f"treesens {study.name} MODEL TABLE"
    if second is None:
        if study.needs_table and given["data"] is None:
            raise UsageError("no table is given", remedy=f"name a CSV or Parquet file: {usage}")
        return given
    if given["data"] is not None:
        raise click.UsageError(f"the table is given twice: --data, and an unexpected extra argument ({second})")
    model, data = model_and_table(given["model"], second, given["form"], usage)
    return {**given, "model": model, "data": data}


def run(study: Study[Any, Any], given: dict[str, Any]) -> int:
    """Runs a study, prints and writes its findings, and returns the exit code."""
    asked = _asking(study, given)
    if given.get("fail_on") == "protected":
        _check_protected(asked)
    asked = study.completed(asked)
    outputs = outputs_of(study, asked)
    found: Found[Any] | None = None
    with (
        _remembered(study, given, asked) as memory,
        interruptible() as interruption,
        _progress(study, asked, outputs) as (advance, tell),
    ):
        found = study.asked(replace(asked, stop=interruption.event, memory=memory, advance=advance, say=tell))
    if found is None:
        return INTERRUPTED
    for words in (*found.warnings, *(one.line() for one in found.assumed)):
        say(words, err=True)
    required = getattr(asked.options, "require_certificate", False)
    certified = _certified(study, asked, found) if required else None
    shown = found if certified is None else _without_the_rest(found, certified.proved)
    records, document = [plain(record) for record in shown.records], study.documented(asked, shown)
    if not given["as_json"]:
        outputs.show(records, document, shown)
    folder = None if required else getattr(asked.options, "certificates", None)
    with _kept_answer(document, folder, study.name) if folder and given["as_json"] else nullcontext():
        certified = certified or _certified(study, asked, found)
        if certified.manifest is not None:
            document = {**document, "manifest": plain(certified.manifest)}
        if given["as_json"]:
            outputs.print_document(document)
    outputs.write(records, document, shown)
    over = over_budget(study, found, getattr(asked.options, "budget", None))
    for words in over:
        say(words, err=True)
    if over and not found.interrupted:
        return VIOLATED
    code = exit_code(study, found, list(map(plain, found.records)), given.get("fail_on"))
    return certified.code if code == EXPECTED else code


def _check_protected(asked: Asking[Any]) -> None:
    """Raises UsageError if no protected feature is stated, or if the named sets leave one out: the gate would not see it."""
    protected = dict.fromkeys(name for model in asked.models for name in model.meaning.protected)
    if not protected:
        raise UsageError(
            "--fail-on protected: no protected feature is stated",
            remedy='write protected = ["sex"] in treesens.toml, or add --protected NAME',
        )
    varied = {name for names in asked.options.vary or [protected] for name in names}
    if left := [name for name in protected if name not in varied]:
        raise UsageError(
            f"--fail-on protected: no question varies {', '.join(f'`{name}`' for name in left)}",
            remedy="add the feature with -v, leave out -v, or name the features of the gate with --protected",
        )


@contextmanager
def _kept_answer(document: dict[str, Any], folder: Path, name: str) -> Iterator[None]:
    """Keeps the document as a file in the folder while certificates are made: the document is printed only afterwards, and the
    process might be killed before that. The file is removed at the end.
    """
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, default=str, indent=2) + "\n"
    path = folder / f"{name}.{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}.answer.json"
    written = False
    with suppress(TreesensError, OSError):  # the answer is printed even if it cannot be written here
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
        written = True
    yield
    if written:
        path.unlink(missing_ok=True)


@dataclass(frozen=True)
class _Certified:
    """The outcome of making certificates: the exit code that applies if the findings alone give 0, the manifest (None if it was
    not requested), and the indices of the records whose claims are all accepted.
    """

    code: int
    manifest: ManifestRecord | None = None
    proved: Collection[int] = ()


def _without_the_rest(found: Found[Any], proved: Collection[int]) -> Found[Any]:
    """The findings that have certificates."""
    from treesens.extensions.studies.required import with_nothing_else

    return with_nothing_else(found, set(range(len(found.records))).difference(proved))


def _certified(study: Study[Any, Any], asked: Asking[Any], found: Found[Any]) -> _Certified:
    """Writes certificates, and the manifest of their claims. The answer is kept after a failure or an interruption here, unless
    the answer requires certificates.
    """
    folder = getattr(asked.options, "certificates", None)
    if folder is None or not study.certifies:
        return _Certified(EXPECTED)
    missing = INCONCLUSIVE if asked.options.require_certificate else EXPECTED
    if found.interrupted:
        return _none(missing, "certificates: none, since the study was interrupted")
    from treesens.extensions.certify.produce import proof_budget
    from treesens.extensions.certify.together import write_manifest
    from treesens.extensions.studies.claims import claims_of

    seconds = asked.options.time_limit
    try:
        made = write_manifest(claims_of(asked, found), folder, study.name, budget=lambda: proof_budget(seconds))
        record = manifest_record(made)
    except KeyboardInterrupt:
        return _none(INTERRUPTED, "certificates: none, since making them was interrupted")
    except Exception as error:  # noqa: BLE001 - every kind of error becomes a typed one here
        failed = told(error, f"certificates after {study.name}")
        code = INTERNAL if isinstance(failed, InternalError) else UNREADABLE
        return _none(code, f"error[{failed.code}]: certificates: {failed}")
    say(made.words(), err=True)
    return _Certified(EXPECTED if made.complete else missing, record, made.proved)


def _none(code: int, why: str) -> _Certified:
    """Prints the reason for a missing manifest, and returns the exit code with a record of the reason."""
    say(why, err=True)
    return _Certified(code, ManifestRecord(file=None, sha256=None, parts=0, claims=[], without=[], failed=why))


def over_budget(study: Study[Any, Any], found: Found[Any], budget: Mapping[str, int] | None) -> list[str]:
    """A sentence for each set of features that flips more rows than budgeted. Raises UsageError for an unused budget."""
    if not budget or study.flips is None:
        return []
    flips = study.flips(found.records)
    for name in budget:
        if not any(name in varied for varied, _ in flips) and not found.interrupted:
            remedy = (
                did_you_mean(name, {n for varied, _ in flips for n in varied}) or "add the feature to --vary with a gap"
            )
            raise UsageError(f"--budget: `{name}` was not tried", remedy=remedy)
    return [
        f"budget: {rows} rows flip by {', '.join(varied)}, more than {min(budget[n] for n in varied if n in budget)}"
        for varied, rows in flips
        if any(name in budget and rows > budget[name] for name in varied)
    ]


def exit_code(study: Study[Any, Any], found: Found[Any], records: list[dict[str, Any]], fail_on: str | None) -> int:
    """The exit code of the command of a study."""
    if found.interrupted:
        return INTERRUPTED
    if fail_on is not None and study.fails[fail_on](found.records):
        return VIOLATED
    if have_own_fault(study.faults(records)):
        return INTERNAL
    return EXPECTED if found.decided else INCONCLUSIVE


def _asking(study: Study[Any, Any], given: dict[str, Any]) -> Asking[Any]:
    """The complete arguments of a study: its options, and the files, which are read here."""
    from treesens.data.tables import read_table
    from treesens.frontends.registry import load

    mine = declared(study.options, Door.COMMAND)
    if by_place(study):
        given = _told_apart(study, given)
    paths = [given[name] for name in study.models]
    models = tuple(load(path, given["form"], trust_pickle=given["trust_pickle"]) for path in paths)
    table = None if given.get("data") is None else read_table(given["data"], label=given["label"])
    values = {one.field: given[one.field] for one in mine}
    for one in mine:
        if isinstance(one.option.kind, kinds.TableFile) and values[one.field] is not None:
            values[one.field] = read_table(values[one.field], label=given["label"])
    files = tuple(None if path is None else str(path) for path in (*paths, given.get("data")))
    line = shlex.join(["treesens", *sys.argv[1:]])
    options = in_names_of(models, study.options(**values))
    if study.certifies:
        checked_folder(options.certificates, options.require_certificate)
    source = click.get_current_context().get_parameter_source
    chosen = frozenset(name for name in given if source(name) is ParameterSource.COMMANDLINE)
    return Asking(told_of(models, options), table, options, files=files, command=line, chosen=chosen)


@contextmanager
def _remembered(study: Study[Any, Any], given: dict[str, Any], asked: Asking[Any]) -> Iterator[Any]:
    """The answers of earlier runs, if a journal is named."""
    if not study.journal:
        yield None
        return
    from treesens.extensions.studies.running import library_of

    content = (asked.model.ensemble.source.sha256, given["form"], None if asked.table is None else asked.table.sha256)
    in_library = library_of(asked.model, getattr(asked.options, "replay", "emulated")) is not None
    limit = asked.options.time_limit
    with remembered(given["journal"], limit, study.name, *content, given["label"], in_library) as memory:
        yield memory


@contextmanager
def _progress(
    study: Study[Any, Any], asked: Asking[Any], outputs: Outputs
) -> Iterator[tuple[Callable[[Any], None], Callable[[str], None]]]:
    """Shows progress: a bar if the number of records is known in advance, or a line. Yields callbacks for records and steps."""
    from treesens.report.show import Progress, tracker

    total = study.expected(asked)
    if total is not None:
        with tracker(study.work, total) as advance:
            yield lambda _: advance(), outputs.say
        return
    with Progress(1) as progress:
        if study.work:
            progress.start(0, study.work)

        def tell(words: str) -> None:
            progress.say(words)
            outputs.say(words)

        yield lambda _: None, tell


@contextmanager
def remembered(path: Path | None, time_limit: float, *context: object) -> Iterator[KeptAnswers | None]:
    """The answers in a journal, or None without a path. `context`, on which all answers depend, is a part of their keys."""
    from treesens import __version__

    with open_journal(path) as journal:
        if journal is None:
            yield None
            return
        from treesens.compiler.base.plugins import plugin_versions
        from treesens.records.journal import KeptAnswers

        yield KeptAnswers(journal, "\0".join(map(str, (__version__, *plugin_versions().items(), *context))), time_limit)
