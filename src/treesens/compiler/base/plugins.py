"""Registries of named objects, extended by entry points of other distributions: passes, backends, formats, methods, studies.

Nothing is imported before its name is used. Two distributions that provide the same name are an error, and so is a plug-in with
a built-in name, because the code that decides a question must not depend on the order of a search path.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from treesens.compiler.base.diagnostics import did_you_mean
from treesens.errors import TreesensError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True)
class Plugin:
    """A plug-in, as records list it: its kind (`pass`, `backend`, …) and name, the distribution that provides it with its
    version, and its entry point (`module:attribute`).
    """

    kind: str
    name: str
    package: str
    version: str
    entry_point: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name} of {self.package} {self.version}".rstrip()


@dataclass
class Registry:
    """Named objects: `kind` occurs in messages, `group` is an entry-point group, `builtin` maps names to "module:attribute"."""

    kind: str
    group: str
    builtin: Mapping[str, str]
    error: type[TreesensError]
    aliases: Mapping[str, str] = field(default_factory=dict)
    """The current name for each former name."""
    _plugins: dict[str, EntryPoint] | None = field(default=None, repr=False)

    def names(self) -> list[str]:
        """All names, built-in ones first."""
        return [*self.builtin, *self._discover()]

    def canonical(self, name: str) -> str:
        """The current form of a name."""
        return self.aliases.get(name, name)

    def get(self, name: str) -> Any:
        """Returns the object with this name. Raises the registry's error if the name is unknown or cannot be imported."""
        name = self.canonical(name)
        if name in self.builtin:
            module, _, attribute = self.builtin[name].partition(":")
            return getattr(import_module(module), attribute)
        plugins = self._discover()
        if name not in plugins:
            raise self.error(f"unknown {self.kind} `{name}`", remedy=did_you_mean(name, self.names()))
        try:
            found = plugins[name].load()
        except (ImportError, AttributeError) as error:
            raise self.error(
                f"the plug-in {self.kind} `{name}` cannot be imported: {error}",
                remedy=f"reinstall or remove {_owner(plugins[name])}",
            ) from error
        own = getattr(found, "name", name)
        if isinstance(own, str) and own != name:
            # Worker processes and records identify a plug-in by its own name.
            raise self.error(
                f"the plug-in {self.kind} `{name}` of {_owner(plugins[name])} calls itself `{own}`",
                remedy=f'write `name = "{name}"` in its class, or name its entry point `{own}`',
            )
        return found

    def owner(self, name: str) -> str | None:
        """The distribution that provides a plug-in; None for a built-in name. Options in braces after a name are ignored."""
        point = self._discover().get(self.canonical(name.partition("{")[0]))
        return None if point is None else _owner(point)

    def plugin(self, name: str) -> Plugin | None:
        """The plug-in with this name, which may have options in braces; None for a built-in or unknown name."""
        point = self._discover().get(self.canonical(name.partition("{")[0]))
        return None if point is None else _plugin(self.kind, point)

    def _discover(self) -> dict[str, EntryPoint]:
        if self._plugins is None and not may_have_plugins():
            self._plugins = {}
        if self._plugins is None:
            from importlib.metadata import entry_points

            found: dict[str, EntryPoint] = {}
            for point in entry_points(group=self.group):
                if point.name in self.builtin or point.name in self.aliases or point.name in found:
                    other = "treesens itself" if point.name not in found else _owner(found[point.name])
                    raise self.error(
                        f"{_owner(point)} and {other} both provide the {self.kind} `{point.name}`",
                        remedy="uninstall one of them",
                    )
                found[point.name] = point
            self._plugins = found
        return self._plugins


@cache
def may_have_plugins() -> bool:
    """False if no installed distribution has an entry point of treesens.

    `importlib.metadata` parses every distribution, which takes a tenth of a second in a full environment; searching the text of
    each `entry_points.txt`, once per process, takes milliseconds. For archives and other finders the result is True.
    """
    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    if any(getattr(finder, "__name__", "") != "PathFinder" for finder in finders):
        return True
    return any(place is None or b"[treesens." in place for place in _entry_point_files())


@cache
def plugin_versions() -> dict[str, str]:
    """Versions of all distributions with an entry point of treesens, sorted by name: an answer may depend on each of them."""
    if not may_have_plugins():
        return {}
    from importlib.metadata import distributions

    owners = (one for one in distributions() if any(p.group.startswith("treesens.") for p in one.entry_points))
    return dict(sorted((str(one.name), str(one.version)) for one in owners))


_KINDS = {
    "backends": "backend", "commands": "command", "frontends": "model format", "methods": "method", "passes": "pass",
    "predicates": "predicate", "studies": "study", "targets": "format",
}  # fmt: skip
"""The kinds of the groups of entry points, without the prefix `treesens.`."""


def installed_plugins() -> list[Plugin]:
    """All installed plug-ins, sorted by kind and name; nothing is imported. The kind of an unknown group is its name."""
    if not may_have_plugins():
        return []
    from importlib.metadata import entry_points

    groups = [group for group in entry_points().groups if group.startswith("treesens.")]
    found = {
        _plugin(_KINDS.get(group.partition(".")[2], group.partition(".")[2]), point)
        for group in groups
        for point in entry_points(group=group)
    }
    return sorted(found, key=lambda one: (one.kind, one.name, one.package))


def _plugin(kind: str, point: EntryPoint) -> Plugin:
    version = "" if point.dist is None else str(point.dist.version)
    return Plugin(kind, point.name, _owner(point), version, point.value)


def _entry_point_files() -> Iterator[bytes | None]:
    """The text of every entry_points.txt on the search path; None for an archive."""
    for folder in map(str, sys.path):
        if os.path.isfile(folder):
            yield None
        with suppress(OSError):
            for name in os.listdir(folder or "."):
                if name.lower().endswith((".dist-info", ".egg-info", ".egg")):
                    parts = ("EGG-INFO",) if name.lower().endswith(".egg") else ()
                    with suppress(OSError), open(os.path.join(folder, name, *parts, "entry_points.txt"), "rb") as file:
                        yield file.read()


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
