"""The language server as an editor sees it: a real process, driven through the protocol."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.commands.test_command_line import STUMP
from tests.trials import at_night
from treesens.extensions.editor.documents import Lines
from treesens.grammar.printing.formatter import format_text

pytest.importorskip("pygls", reason="the language server is an extra")
from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.client import LanguageClient

SERVER = "from treesens.cli import main; main(['lsp'])"
HEAD = """model m from "m.json"
data people from "people.csv" label "y"
feature sex: category {Female = 0, Male = 1}
feature age: real in [0, 100]
"""
GOOD = HEAD + "query q:\n  find a, b in m such that\n    a = b except sex\n    margin(a) >= 0.5\n"


class Client(LanguageClient):
    """Keeps what the server tells."""

    def __init__(self) -> None:
        super().__init__("tests", "1")
        self.told: asyncio.Queue[types.PublishDiagnosticsParams | None] = asyncio.Queue()
        self.logged: list[str] = []

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def diagnostics(params: types.PublishDiagnosticsParams) -> None:
            self.told.put_nowait(params)

        @self.feature(types.WINDOW_LOG_MESSAGE)
        def log(params: types.LogMessageParams) -> None:
            self.logged.append(params.message)
            self.told.put_nowait(None)

    async def diagnostics(self, version: int) -> list[types.Diagnostic]:
        """The messages about a version of the document."""
        while True:
            params = await asyncio.wait_for(self.told.get(), 120)
            assert params is not None, self.logged
            if params.version == version:
                return list(params.diagnostics)


class Editor:
    """One open document."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client = client
        self.uri = (folder / "credit.sens").as_uri()
        self.text = ""
        self.version = 0

    async def write(self, text: str) -> list[types.Diagnostic]:
        """Opens the document, or replaces its text; the messages about it."""
        self.text, self.version = text, self.version + 1
        if self.version == 1:
            item = types.TextDocumentItem(self.uri, "sens", self.version, text)
            self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        else:
            document = types.VersionedTextDocumentIdentifier(self.version, self.uri)
            changes = [types.TextDocumentContentChangeWholeDocument(text)]
            self.client.text_document_did_change(types.DidChangeTextDocumentParams(document, changes))
        return await self.client.diagnostics(self.version)

    def position(self, offset: int) -> types.Position:
        """UTF-16, counted by Python's own codec."""
        before = self.text[:offset]
        line = before[before.rfind("\n") + 1 :]
        return types.Position(before.count("\n"), len(line.encode("utf-16-le")) // 2)

    def shown(self, place: types.Range) -> str:
        """The text of a range."""
        starts = [0]
        for line in self.text.split("\n"):
            starts.append(starts[-1] + len(line.encode("utf-16-le")) // 2 + 1)
        units = self.text.encode("utf-16-le")
        ends = [2 * (starts[p.line] + p.character) for p in (place.start, place.end)]
        return units[ends[0] : ends[1]].decode("utf-16-le")

    async def complete(self, text: str) -> dict[str, types.CompletionItem]:
        """What is proposed at the `|` of a text, by label."""
        offset = text.index("|")
        await self.write(text.replace("|", ""))
        found = await self.client.text_document_completion_async(
            types.CompletionParams(types.TextDocumentIdentifier(self.uri), self.position(offset))
        )
        assert isinstance(found, types.CompletionList)
        return {item.label: item for item in found.items}

    async def hover(self, place: str, inside: int = 0) -> str:
        """What is known of the text at `place`; empty for nothing."""
        params = types.HoverParams(
            types.TextDocumentIdentifier(self.uri), self.position(self.text.index(place) + inside)
        )
        found = await self.client.text_document_hover_async(params)
        if found is None:
            return ""
        assert isinstance(found.contents, types.MarkupContent)
        return found.contents.value

    async def fixed(self, found: list[types.Diagnostic]) -> str:
        """The text after the quick fixes that are offered for messages, applied from the last to the first."""
        everything = types.Range(types.Position(0, 0), self.position(len(self.text)))
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(self.uri), everything, types.CodeActionContext(found)
        )
        actions = await self.client.text_document_code_action_async(params) or []
        edits = []
        for action in actions:
            assert isinstance(action, types.CodeAction)
            assert action.edit is not None
            assert action.edit.changes is not None
            edits += action.edit.changes[self.uri]
        lines = Lines(self.text)
        text = self.text
        for edit in sorted(edits, key=lambda one: (one.range.start.line, one.range.start.character), reverse=True):
            start, end = (lines.offset(at.line, at.character) for at in (edit.range.start, edit.range.end))
            text = text[:start] + edit.new_text + text[end:]
        return text

    async def formatted(self) -> list[types.TextEdit]:
        options = types.FormattingOptions(tab_size=2, insert_spaces=True)
        params = types.DocumentFormattingParams(types.TextDocumentIdentifier(self.uri), options)
        return list(await self.client.text_document_formatting_async(params) or [])


@asynccontextmanager
async def editing(folder: Path) -> AsyncIterator[Editor]:
    """A started server with a folder; checks that it ends well and never tells a traceback."""
    client = Client()
    await client.start_io(sys.executable, "-c", SERVER)
    capabilities = types.ClientCapabilities()
    done = await client.initialize_async(
        types.InitializeParams(capabilities=capabilities, root_uri=folder.as_uri(), process_id=None)
    )
    assert done.capabilities.position_encoding in (None, types.PositionEncodingKind.Utf16)
    assert done.capabilities.completion_provider is not None
    assert done.capabilities.hover_provider
    assert done.capabilities.document_formatting_provider
    assert done.capabilities.code_action_provider
    client.initialized(types.InitializedParams())
    yield Editor(client, folder)
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    assert not client.logged


def session(folder: Path, script: Callable[[Editor], Awaitable[None]]) -> None:
    async def run() -> None:
        async with editing(folder) as editor:
            await script(editor)

    asyncio.run(run())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.json").write_text(json.dumps(STUMP))
    (tmp_path / "people.csv").write_text("age,sex,y\n30,0,1\n40,1,0\n50,1,1\n")
    return tmp_path


def codes(found: list[types.Diagnostic]) -> list[Any]:
    return [item.code for item in found]


def test_messages_while_typing(folder: Path) -> None:
    async def script(editor: Editor) -> None:
        assert await editor.write(GOOD) == []
        (found,) = await editor.write(GOOD.replace("except sex", "exept sex"))
        assert (found.code, editor.shown(found.range)) == ("S015", "exept")
        assert found.severity == types.DiagnosticSeverity.Error
        assert "did you mean `except`?" in found.message
        # Names, types and domains are checked too, all at once, and parse errors do not hide them.
        broken = GOOD.replace("except sex", "except sexe") + "    a.age >= 200\n    prob(a >= 1\n"
        broken += "query r:\n  find a in n such that\n    value(a) >= 1\nquery s: find a such that value(a) >= 1\n"
        found_all = await editor.write(broken)
        assert {"S020", "E101", "E202"} <= set(codes(found_all))
        places = {item.code: editor.shown(item.range) for item in found_all}
        assert places["E101"] == "n"
        assert places["E202"] == "value(a)"
        two = await editor.write(GOOD + "    a.age >= 200\n    b.agee = 3\n")
        assert codes(two) in (["E103"], ["E306", "E103"])
        assert await editor.write(GOOD) == []
        # A declaration that does not parse is one message, not one for every use.
        assert codes(await editor.write(GOOD.replace('from "m.json"', "form m.json"))) == ["S015"]

    session(folder, script)


def test_a_request_after_a_document_is_closed_is_no_internal_error(folder: Path) -> None:
    """An editor closes a file that was never saved while its requests are under way."""

    async def script(editor: Editor) -> None:
        await editor.write(GOOD)
        identifier = types.TextDocumentIdentifier(editor.uri)
        editor.client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))
        with pytest.raises(JsonRpcInvalidParams, match="not open"):
            await editor.client.text_document_code_lens_async(types.CodeLensParams(identifier))
        assert editor.client.logged == []

    session(folder, script)


@pytest.mark.parametrize(
    "name", ["with a blank, é, a+b, a%41 (x) #", *map(at_night, ["with a blank", "é", "a+b", "a%41", "(x)", "#"])]
)
def test_folders_whose_addresses_have_escapes(folder: Path, name: str) -> None:
    """Editors of Windows escape every address (`file:///c%3A/...`)."""
    inside = folder / name
    inside.mkdir()
    for file in ("m.json", "people.csv"):
        (folder / file).rename(inside / file)

    async def script(editor: Editor) -> None:
        assert "%" in editor.uri
        assert codes(await editor.write(GOOD.replace("except sex", "exept sex"))) == ["S015"]
        assert await editor.write(GOOD) == []
        assert "**sex**" in await editor.hover("except sex", 8)

    session(inside, script)


def test_quick_fixes_write_the_name_that_was_meant(folder: Path) -> None:
    async def run(editor: Editor) -> None:
        right = GOOD + "    a.age >= 30 # 𝔘\n    a.sex = Female\n"
        for wrong in ("a = b except sxe", "a.aeg >= 30", "a.sex = Femal", "magin(a) >= 0.5", "in mm such"):
            meant = {"sxe": "sex", "aeg": "age", "Femal": "Female", "magin": "margin", "mm": "m"}
            spelled = next(word for word in meant if re.search(rf"\b{word}\b", wrong))
            correct = re.sub(rf"\b{spelled}\b", meant[spelled], wrong)
            assert correct in right
            found = await editor.write(right.replace(correct, wrong))
            assert found, wrong
            assert await editor.fixed(found) == right, [item.message for item in found]
        assert await editor.fixed(await editor.write(GOOD)) == GOOD

    session(folder, run)


def test_columns_are_utf_16_units(folder: Path) -> None:
    async def script(editor: Editor) -> None:
        text = GOOD + "    a.`𝒳🦊` >= 1; a.nope >= 2  # 🦊\n"
        found = await editor.write(text)
        assert [editor.shown(item.range) for item in found] == ["`𝒳🦊`", "nope"]
        assert found[1].range.start.character == len("    a.`𝒳🦊` >= 1; a.".encode("utf-16-le")) // 2
        items = await editor.complete(GOOD + "    a.`𝒳🦊` >= 1; a.se|")
        edit = items["sex"].text_edit
        assert isinstance(edit, types.TextEdit)
        assert editor.shown(edit.range) == "se"
        await editor.write(GOOD + "    a.`𝒳🦊` >= 1; a.sex = Male")
        assert "**sex**" in await editor.hover("; a.sex", 5)

    session(folder, script)


def test_models_and_tables_that_cannot_be_read(folder: Path) -> None:
    async def script(editor: Editor) -> None:
        found = await editor.write(GOOD.replace("m.json", "absent.json").replace("people.csv", "absent.csv"))
        assert codes(found) == ["M001", "D001"]
        assert [editor.shown(item.range) for item in found] == ['"absent.json"', '"absent.csv"']
        # Everything else still works: declared features are known without their model.
        items = await editor.complete(GOOD.replace("m.json", "absent.json") + "    a.|")
        assert {"sex", "age"} <= set(items)
        (folder / "late.json").write_text("{}")
        assert codes(await editor.write(GOOD.replace("m.json", "late.json"))) == ["M001"]
        (folder / "late.json").write_text(json.dumps(STUMP))
        assert await editor.write(GOOD.replace("m.json", "late.json") + "# read again when it changes\n") == []

    session(folder, script)


COMPLETIONS: list[tuple[str, set[str], set[str]]] = [
    ("|", {"model", "data", "feature", "query", "domain from", "for each"}, {"find", "and", "a"}),
    (HEAD + "query q:\n  |", {"find", "sensitive", "count", "for each"}, {"maximize", "sex"}),
    (HEAD + "query q:\n  find a, b in |", {"m"}, {"people", "sex", "and"}),
    (HEAD + "query q:\n  find a, b |", {"in", "such that", "maximize", "minimize"}, {"and", "m"}),
    (HEAD + "query q:\n  find a in m\n  |", {"such that", "maximize", "minimize"}, {"and", "a"}),
    (GOOD + "    |", {"a", "b", "margin", "prob", "not", "maximize", "expect", "or", "query"}, {"sex", "m", "gap"}),
    (GOOD + "    a.|", {"sex", "age"}, {"people", "m", "and", "prob"}),
    (GOOD + "    a = b except |", {"sex", "age"}, {"a", "and", "m"}),
    (GOOD + "    a = b except {sex, |", {"sex", "age"}, {"a", "m"}),
    (GOOD + "    a.sex = |", {"Female", "Male", "a", "b"}, {"age", "m"}),
    (GOOD + "    a.sex in {|", {"Female", "Male"}, {"age", "a", "m"}),
    (GOOD + "    margin(a, |", {"0", "1"}, {"sex", "a", "and"}),
    (GOOD + "    class(a) = |", {"0", "1"}, {"sex"}),
    (GOOD + "    a, b avoid cavities(|", {"people"}, {"m", "a", "sex"}),
    (GOOD + "    a, b avoid cavities(people, |", {"width", "limit"}, {"m", "a"}),
    (GOOD + "    a, b |", {"avoid", "typical"}, {"prob", "sex"}),
    (GOOD + "    a, b typical of |", {"people"}, {"m", "a"}),
    (GOOD + "    a, b typical of people |", {"at", "by"}, {"m", "sex"}),
    (GOOD + "    a, b typical of people at |", {"95 %"}, {"m", "sex"}),
    (GOOD + "    a, b typical of people by |", {"chow-liu", "isolation"}, {"m", "sex"}),
    (GOOD + "measure v: |", {"uniform", "cells", "marginals", "chow-liu", "rows"}, {"m", "sex", "people"}),
    (GOOD + "measure v: rows of |", {"people"}, {"m", "sex"}),
    ("measure v: cells\n" + GOOD + "  share of |", {"v"}, {"m", "people"}),
    (GOOD + "  share of v expect |", {"none", "some", "share"}, {"m", "sex"}),
    (GOOD + "    a, b avoid |", {"cavities"}, {"prob", "m"}),
    (GOOD + "    distance(a, |", {"a", "b", "row", "nearest row of"}, {"l1", "m"}),
    (GOOD + "    distance(a, b, |", {"l0", "l1", "l2", "linf"}, {"a", "m"}),
    (GOOD + "    a = row 1 of |", {"people"}, {"m", "a"}),
    (GOOD + "    margin(a >= 1\n    a.|", {"sex", "age"}, {"m"}),
    (GOOD + "  maximize |", {"margin", "likelihood", "distance", "a"}, {"sex", "query"}),
    (HEAD + "query q: sensitive |", {"m", "to"}, {"sex", "people", "find"}),
    (HEAD + "query q: sensitive m to |", {"sex", "age"}, {"m", "people"}),
    (HEAD + "query q: sensitive m to sex |", {"gap", "margin", "near", "from", "expect"}, {"sex", "find"}),
    (HEAD + "query q: sensitive m to sex near |", {"people"}, {"m", "sex"}),
    (HEAD + "query q: sensitive m to sex near people using |", {"likelihood", "cavities", "both", "distance"}, {"sex"}),
    (HEAD + "query q: for each f in |", {"features", "pairs"}, {"m"}),
    (HEAD + "query q: for each f in features: sensitive m to |", {"f", "sex"}, {"m"}),
    (HEAD + "domain from |", {"people"}, {"m", "sex"}),
    (HEAD + "feature |", set(), {"sex", "age", "m"}),
    (HEAD + "feature x: |", {"real", "integer", "category"}, {"m", "sex"}),
    ('data d from "people.csv" label |', {"y", "age", "sex"}, {"rows", "m"}),
    ('model x from "m.json" as |', {"xgboost", "lightgbm"}, {"m"}),
    ('model x from "|', set(), {"model", "xgboost"}),
    (HEAD + "# a comment |", set(), {"model", "query"}),
]


def test_completion(folder: Path) -> None:
    async def script(editor: Editor) -> None:
        for text, wanted, unwanted in COMPLETIONS:
            found = set(await editor.complete(text))
            line = text.splitlines()[-1] if text != "|" else text
            assert wanted <= found, (line, wanted - found, found)
            assert not unwanted & found, (line, unwanted & found)
        quoted = await editor.complete(GOOD.replace("feature age", "feature `my age`") + "    a.`my|")
        edit = quoted["my age"].text_edit
        assert isinstance(edit, types.TextEdit)
        assert (edit.new_text, editor.shown(edit.range)) == ("`my age`", "`my")

    session(folder, script)


def test_hover(folder: Path) -> None:
    async def script(editor: Editor) -> None:
        await editor.write(GOOD + "    a.age >= 30 and likelihood(a, people) >= 0.1\n")
        sex = await editor.hover("except sex", 8)
        assert "guards: 1" in sex
        assert "`Female` = 0, `Male` = 1" in sex
        assert "threshold 0.5" in sex
        age = await editor.hover("a.age", 2)
        assert "real in [0, 100]" in age
        assert "guards: 0" in age
        model = await editor.hover("in m such", 3)
        assert "1 trees, 2 leaves, 2 features" in model
        assert "3 rows, 3 columns" in await editor.hover("people)", 1)
        assert "label: `y`" in await editor.hover('"people.csv"', 3)
        assert await editor.hover("margin", 1) == "`margin(P) or margin(P, CLASS)`"
        assert "constraints follow" in await editor.hover("such that", 1)
        assert await editor.hover("0.5", 1) == ""
        await editor.write("query q: find a such that a.x >= (((")
        assert await editor.hover("a.x", 2) == ""

    session(folder, script)


def test_formatting(folder: Path) -> None:
    async def script(editor: Editor) -> None:
        text = GOOD.replace("    margin(a) >= 0.5", " margin( a )>=0.5 # 🦊")
        await editor.write(text)
        (edit,) = await editor.formatted()
        assert editor.shown(edit.range) == text
        assert edit.new_text == format_text(text) != text
        await editor.write(edit.new_text)
        assert await editor.formatted() == []
        await editor.write(text.replace("except", "exept"))
        assert await editor.formatted() == []

    session(folder, script)


def test_broken_text_of_every_kind(folder: Path) -> None:
    async def script(editor: Editor) -> None:
        for cut in range(0, len(GOOD), 23):
            await editor.write(GOOD[:cut] + "`")
            await editor.complete(GOOD[:cut] + "|")
        for text in ("", "\0", "((((", "query", "`", "a\r\nb\rc", "\u2028 model", "]" * 300, "not " * 200):
            assert await editor.write(text)
            await editor.complete(text + "|")
        assert await editor.write(GOOD) == []

    session(folder, script)


def test_two_documents_and_one_that_is_closed(folder: Path) -> None:
    async def script(editor: Editor) -> None:
        other = Editor(editor.client, folder)
        other.uri, other.version = "untitled:Untitled-1", 0
        assert codes(await editor.write("query q: find a such that a.x >= 1")) == ["E112"]
        other.version = 0
        assert codes(await other.write('model m from "m.json"\nquery q: find a such that value(a) >= 1')) == ["E202"]
        document = types.TextDocumentIdentifier(editor.uri)
        editor.client.text_document_did_close(types.DidCloseTextDocumentParams(document))
        gone = await asyncio.wait_for(editor.client.told.get(), 60)
        assert gone is not None
        assert (gone.uri, list(gone.diagnostics)) == (editor.uri, [])

    session(folder, script)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in the file system")
@pytest.mark.parametrize("politely", [True, False])
def test_a_file_that_cannot_be_read_to_its_end_does_not_keep_the_server_alive(folder: Path, politely: bool) -> None:
    os.mkfifo(folder / "endless.csv")
    text = HEAD.replace("people.csv", "endless.csv")
    document = {"uri": (folder / "q.sens").as_uri(), "languageId": "sens", "version": 1, "text": text}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"capabilities": {}, "processId": None, "rootUri": None}},
        {"method": "initialized", "params": {}},
        {"method": "textDocument/didOpen", "params": {"textDocument": document}},
    ]
    last: list[dict[str, Any]] = [{"id": 2, "method": "shutdown"}, {"method": "exit"}] if politely else []
    with subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        for message in messages:
            server.stdin.write(framed(message))
        server.stdin.flush()
        assert server.stdout.readline().startswith(b"Content-Length")
        # A named pipe is refused as it is no regular file; a server that opened it would wait for a writer for ever.
        for message in last:
            server.stdin.write(framed(message))
        server.stdin.close()
        assert server.wait(300) == 0


def framed(message: dict[str, Any]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_positions_and_offsets_are_inverse(encoding: str) -> None:
    text = "aé🦊\r\n\u2028b\rc\n\n𝒳"
    lines = Lines(text, encoding)
    positions = [lines.position(i) for i in range(len(text) + 1)]
    assert positions == sorted(positions)
    assert [p[0] for p in positions] == [0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 4, 4]
    for offset, (line, column) in enumerate(positions):
        if text[offset - 1 : offset + 1] != "\r\n":
            assert lines.offset(line, column) == offset
    units = {"utf-8": [0, 1, 3, 7], "utf-16": [0, 1, 2, 4], "utf-32": [0, 1, 2, 3]}[encoding]
    assert [p[1] for p in positions[:4]] == units
    assert lines.offset(0, 99) == 3
    assert lines.offset(99, 0) == len(text)


def test_without_pygls_the_command_says_what_to_install(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['pygls'] = None; sys.modules['lsprotocol'] = None; " + SERVER
    done = subprocess.run([sys.executable, "-c", hide], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'treesens[lsp]'" in done.stderr
    assert "Traceback" not in done.stderr
