"""The plug-ins that took part in an answer, derived from the fields of the question and of the result."""

from __future__ import annotations

from treesens.backends.base import BACKENDS
from treesens.compiler.base.plugins import Plugin
from treesens.compiler.passes.registry import PASSES
from treesens.compiler.pipeline import plugin_passes
from treesens.compiler.query.query import Query
from treesens.compiler.result import Result
from treesens.solve.methods.registry import PLUGINS as METHODS


def plugins_of(query: Query | None, result: Result) -> tuple[Plugin, ...]:
    """The plug-ins of an answer, sorted by kind and name: formats of its models, predicates of the question (None for a module
    without a question), passes of the pipelines, and the backends and methods of all attempts. For a result from a journal,
    the plug-ins that it stored are included.
    """
    answers = (result, *(() if result.ranked is None else result.ranked.answers))
    attempts = [attempt for one in answers for attempt in one.attempts]
    pipelines = dict.fromkeys((*(one.pipeline for one in answers), *(one.pipeline for one in attempts)))
    runners = (*((one.backend, one.confirmed_by or "") for one in answers), *((one.backend,) for one in attempts))
    names = dict.fromkeys(name for group in runners for name in group)
    passes = (PASSES.plugin(name) for pipeline in pipelines for name in plugin_passes(pipeline))
    backends = (registry.plugin(name) for name in names for registry in (BACKENDS, METHODS))
    known = (
        *(() if query is None else query.plugins),
        *passes,
        *backends,
        *(plugin for one in answers for plugin in one.plugins),
    )
    return tuple(sorted({one for one in known if one is not None}, key=lambda one: (one.kind, one.name)))
