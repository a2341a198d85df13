"""What inputs a promise is about, if nobody has said it: the domain that a model and its tables leave open."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import cast

from treesens.compiler.base.arrays import BoolArray
from treesens.frontends.base import LoadedModel
from treesens.grammar.tree import ast


def possible_inputs(model: LoadedModel, missing: BoolArray, domain: Sequence[ast.Declaration]) -> list[ast.Declaration]:
    """What the domain leaves open: every code of a category without names, also codes that no split lists (they all go one
    way), every category with a name of a feature that misses values, and missing values of the features of the mask `missing`
    bool[features].
    """
    stated = {item.name.text for item in domain if isinstance(item, ast.Feature)}
    found: list[ast.Declaration] = []
    for feature, misses in zip(model.ensemble.features, missing.tolist(), strict=True):
        if feature.name in stated:
            continue
        name, kind = ast.Name(feature.name), cast(ast.FeatureType, ast.Numeric("real"))
        if feature.categories and feature.labels:
            if not misses:
                continue
            kind = ast.Category(tuple(ast.CategoryItem(ast.Name(label), None) for label in map(str, feature.labels)))
        elif feature.categories:
            codes = range(feature.categories + 1)
            kind = ast.Category(tuple(ast.CategoryItem(None, ast.Number(Fraction(code))) for code in codes))
        elif not misses:
            continue
        found.append(ast.Feature(name, kind, missing=misses))
    return found
