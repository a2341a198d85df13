"""Files that are read in a process of its own: by a fork from the second one on, with the same answers and the same limits."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from treesens.errors import ModelError
from treesens.extensions.formats import apart
from treesens.extensions.formats.apart import read_apart
from treesens.runtime.child import servers
from treesens.runtime.fork_server import ForkServer
from treesens.runtime.processes import environment

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks of a loaded process are for Linux")
IMPORTS = "import json, os, time"


def read(body: str, *arguments: str) -> str:
    return read_apart(IMPORTS, body, arguments, 10, "the file cannot be read", "f")


def the_server() -> ForkServer:
    return servers.servers[(apart.__name__, "json", "os", "time"), 1]


def test_the_first_is_started_and_the_others_are_forked() -> None:
    parents = [read("sys.stdout.write(str(os.getppid()))") for _ in range(3)]
    assert parents[0] == str(os.getpid()) or IMPORTS in apart._asked
    assert parents[1:] == [str(the_server().process.pid)] * 2
    assert read("sys.stdout.write(json.dumps(sys.argv[3:]) + 'ü')", "a b", "c") == '["a b", "c"]ü'


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("sys.exit('no trees')", "the file cannot be read: no trees"),
        ("raise ValueError('odd')", "the file cannot be read: ValueError: odd"),
        ("os.kill(os.getpid(), 11)", "the file cannot be read: it crashed"),
        ("x = bytearray(3_000_000_000)", "the file cannot be read: MemoryError"),
        ("\nwhile True: pass", "the file cannot be read"),
    ],
)
def test_a_fork_has_the_limits_of_a_process_of_its_own(body: str, words: str) -> None:
    for _ in range(2):
        start = time.monotonic()
        with pytest.raises(ModelError) as caught:
            read(body)
        assert words in str(caught.value)
        assert time.monotonic() - start < 180
    assert read("sys.stdout.write('fine')") == "fine", "the server goes on"


def test_what_a_library_prints_is_no_part_of_the_text() -> None:
    for _ in range(2):
        assert read("os.write(1, bytes([255])); sys.stdout.write('fine')") == "fine"


def test_a_server_that_was_killed_is_started_again() -> None:
    assert read("pass") == read("pass") == ""
    the_server().process.send_signal(signal.SIGKILL)
    assert read("sys.stdout.write('here')") == "here"


def test_an_import_that_fails_is_told_every_time() -> None:
    for _ in range(3):
        with pytest.raises(ModelError, match="No module named 'nothing_like_it'"):
            read_apart("import nothing_like_it", "pass", [], 10, "the file cannot be read", "f")
    assert "PYTHONSAFEPATH" in environment()
