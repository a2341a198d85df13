"""A named pipeline is a list like any other, and errors point into the text that the user wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from treesens.compiler.passes.registry import PASSES
from treesens.compiler.pipeline import PIPELINES, Pipeline, pipeline_for, pipeline_to_confirm
from treesens.errors import PipelineError


def names(text: str) -> list[str]:
    return [step.name for step in Pipeline.parse(text).steps]


@pytest.mark.parametrize("name", PIPELINES)
def test_a_name_stands_for_its_passes(name: str) -> None:
    passes = names(PIPELINES[name])
    assert names(name) == names(f" {name} ") == passes
    assert names(f"{name},leaf-rows") == [*passes, "leaf-rows"]
    assert names(f"leaf-rows , {name},{name}") == ["leaf-rows", *passes, *passes]


def test_the_options_of_passes_in_a_name_are_kept() -> None:
    text = Pipeline.parse("order-predicates{by=uses},independent").text
    assert text.startswith("order-predicates{by=uses},")
    assert text.endswith(",order-predicates{by=gain}")


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("kant,nosuch", 6, "unknown pass `nosuch`"),
        ("default,  leaf-rows{interval=true}", 11, "no option `interval`"),
        ("default,order-predicates{by=luck}", 9, "cannot be `luck`"),
        ("share-copies,kant{x=1}", 14, "`kant` has no options"),
        ("kant,,share-copies", 6, "neither a pass nor a pipeline"),
        ("independent,Share", 13, "neither a pass nor a pipeline"),
    ],
)
def test_an_error_points_into_the_written_text(text: str, position: int, words: str) -> None:
    with pytest.raises(PipelineError) as raised:
        Pipeline.parse(text)
    assert raised.value.place == f"`{text}`, character {position}"
    assert words in raised.value.message
    assert raised.value.remedy


def test_no_pass_has_the_name_of_a_pipeline() -> None:
    assert not set(PIPELINES) & set(PASSES.builtin)


@pytest.mark.parametrize("backend", ["native", "auto"])
def test_the_engine_gets_its_own_part_of_a_list(backend: str) -> None:
    assert pipeline_for(backend, "default,leaf-rows") == "native,leaf-rows"
    assert (
        pipeline_for(backend, "leaf-rows{intervals=false}, bounded ,default")
        == "leaf-rows{intervals=false}, native ,native"
    )
    assert pipeline_for(backend, "independent,leaf-rows") == "independent,leaf-rows"


@pytest.mark.parametrize("text", ["default", "default,leaf-rows", "kant", "drop-dead,bounded"])
def test_solvers_get_the_list_as_it_is(text: str) -> None:
    assert pipeline_for("z3", text) == text


def test_a_second_opinion_by_a_solver_does_without_the_engine() -> None:
    helped = {"warm-start", "bound-fixing"}
    for text in ("default", "default,leaf-rows"):
        assert helped & set(names(text))
        assert not helped & set(names(pipeline_to_confirm("z3", text)))
        assert pipeline_to_confirm("native", text) == text
    assert names(pipeline_to_confirm("z3", "default,leaf-rows"))[-1] == "leaf-rows"


def test_options_compare_names_in_one_place_each() -> None:
    """A list with `default` in it is no `default`: what compares the option means the name alone."""
    sources = Path(__file__).parents[2] / "src" / "treesens"
    found = {
        path.relative_to(sources).as_posix()
        for path in sources.rglob("*.py")
        if 'pipeline == "default"' in (text := path.read_text("utf-8")) or 'pipeline != "default"' in text
    }
    assert found == {"solve/fits.py", "extensions/methods/least_cost.py"}
