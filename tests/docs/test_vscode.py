"""The extension for VS Code names what exists: its files, its commands, the server and the ending of files."""

from __future__ import annotations

import json
import re
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "editors" / "vscode"
PACKAGE = json.loads((FOLDER / "package.json").read_text("utf-8"))
CODE = (FOLDER / "extension.js").read_text("utf-8")


def test_what_is_contributed_exists() -> None:
    contributed = PACKAGE["contributes"]
    (language,), (grammar,) = contributed["languages"], contributed["grammars"]
    assert language["extensions"] == [".sens"]
    json.loads((FOLDER / language["configuration"]).read_text("utf-8"))
    built = json.loads((FOLDER.parents[1] / "docs" / Path(grammar["path"]).name).read_text("utf-8"))
    assert built["scopeName"] == grammar["scopeName"]
    assert grammar["language"] == language["id"]
    assert built["fileTypes"] == [ending.removeprefix(".") for ending in language["extensions"]]


def test_commands_and_settings_are_those_of_the_code() -> None:
    contributed = PACKAGE["contributes"]
    assert {c["command"] for c in contributed["commands"]} == set(re.findall(r'registerCommand\("([^"]+)"', CODE))
    settings = {name.removeprefix("treesens.") for name in contributed["configuration"]["properties"]}
    assert settings == set(re.findall(r'settings\.get\("([^"]+)"\)', CODE))


def test_the_server_has_the_options_that_it_is_given() -> None:
    from treesens.extensions.editor.command import command

    options = {text for parameter in command.params for text in parameter.opts}
    given = set(re.findall(r'"(--[\w-]+)"', CODE))
    assert given
    assert given <= options


def test_its_version_is_that_of_the_package() -> None:
    pyproject = (FOLDER.parents[1] / "pyproject.toml").read_text("utf-8")
    assert f'version = "{PACKAGE["version"]}"' in pyproject
