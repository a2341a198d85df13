"""Would the oracle notice? Plants one error at a time in a copy of the sources, and runs the oracle on it.

`python -m tests.oracle.mutations [--seconds 300] [--only NAME]` prints a table, and ends in 1 if an error was not found in
its time. What is judged is the copy; the oracle itself is the one of this folder.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.oracle.engine_mutations import BUILD, ENGINE_MUTATIONS, extension, fails_by_itself, plant
from tests.oracle.mutation import Mutation

SOURCES = Path(__file__).parents[2] / "src" / "treesens"
CHECKER = Path(__file__).parents[2] / "verify" / "src" / "treesens_verify"
START = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
sys.path.insert(0, sys.argv.pop(1))
import treesens
assert treesens.__file__.startswith(sys.path[0]), treesens.__file__
"""
"""A program with other sources, which are its first argument."""
START_ORACLE = f"""{START}
import runpy
sys.argv[0] = "tests.oracle"
runpy.run_module("tests.oracle", run_name="__main__", alter_sys=True)
"""
START_TEST = f"""{START}
import pytest
sys.exit(pytest.main([sys.argv[1], "-q", "-x", "-p", "no:cacheprovider"]))
"""


MUTATIONS = (
    Mutation(
        "a strict comparison made weak", "binder/inputs.py",
        r'case "<":\n(\s+)return \[\(-math\.inf, spec\.at_least\(number\)\)\]',
        r'case "<":\n\1return [(-math.inf, spec.above(number))]',
    ),
    Mutation(
        "of several classes the first score alone depends on the order of additions", "compiler/query/predicted_classes.py",
        r"if len\(own\) == 1:\n", "if own:\n",
        test="tests/extensions/formats/test_sklearn_numbers.py",
    ),
    Mutation(
        "sums of products in float32 have the band of float64", "extensions/formats/links/blend.py",
        r"NumberType\.FLOAT32 if self\.way is Way\.SINGLE else NumberType\.FLOAT64", "NumberType.FLOAT64",
        test="tests/extensions/formats/test_xgboost_linear.py",
    ),
    Mutation(
        "beside a cut-off of scores the order of additions decides nothing", "compiler/query/predicted_classes.py",
        r"return abs\(own\[-1\] - Fraction\(ensemble\.decides_at\)\) <= 2 \* bands\[-1\]", "return False",
        test="tests/extensions/formats/test_xgboost_linear.py",
    ),
    Mutation(
        "a number between two values of its domain has the score of one of them", "compiler/model/ensemble.py",
        r"\n        check_values\(self, rows\)", "",
        test="tests/extensions/formats/test_sklearn_numbers.py",
    ),
    Mutation(
        "calibrated probabilities are compared as their margins are", "binder/scores.py",
        r"rises = one\.link == other\.link and one\.link\.rises",
        "rises = one.link.is_like(other.link) and not one.link.is_share and not one.link.averages",
        test="tests/solve/test_probability_rows.py",
    ),
    Mutation(
        "tangents of a difference of probabilities lie too high", "compiler/query/shares.py",
        r"bound = LogRational\.ln\(\(c \+ p\) / \(1 - c - p\)\)",
        "bound = LogRational(Fraction(1, 4)) + LogRational.ln((c + p) / (1 - c - p))",
        test="tests/solve/test_best_probability.py",
    ),
    Mutation(
        "a relation bounds a sum of features more than once", "values/objective_ranges.py",
        r"bound = self\._over\(rest\) \+ constant \+ share \* limit",
        "bound = self._over(rest) + constant + share * limit - abs(share)",
        test="tests/values/test_feature_ranges.py",
    ),
    Mutation(
        "a category lost from a set", "binder/inputs.py",
        r"(def in_set(?:.|\n)*?), values\.values\)", r"\1, values.values[:2])",
    ),
    Mutation(
        "missing sent the other way", "frontends/columns.py",
        r"nodes\.default_left\[node\] != 0", "nodes.default_left[node] == 0",
    ),
    Mutation(
        "a threshold rounded", "frontends/columns.py",
        r"np\.where\(ordered, threshold, 0\.0\)", "np.where(ordered, np.round(threshold, 2), 0.0)",
    ),
    Mutation(
        "ties given to every class", "binder/classes.py",
        r"(def _leads(?:.|\n)*?    parts: list\[Pending\] = \[\])",
        r"\1\n    if ensemble.n_outputs > 1 and not margin and factor == 1:\n"
        r"        leads = [{_score(voter, wanted): Fraction(1), _score(voter, o): Fraction(-1)} "
        r"for o in range(ensemble.n_outputs) if o != wanted]\n"
        r"        return (all_of if positive else any_of)"
        r'([compare(scope, lead, ">=", LogRational(), positive, name) for lead in leads])',
    ),
    Mutation(
        "a bound off by one unit", "compiler/query/bounds.py",
        r"                return down\n", "                return down + 1\n",
    ),
    Mutation(
        "the order of classes swapped", "binder/terms.py",
        r"    return numbers\.get\(label\.value\)",
        "    return None if label.value not in numbers else len(classes) - 1 - numbers[label.value]",
    ),
    Mutation(
        "`not` dropped over a conjunction", "binder/formulas.py",
        r"case ast\.And\(items\):\n(\s+)return \(all_of if positive else any_of\)",
        r"case ast.And(items):\n\1return (all_of)",
    ),
    Mutation(
        "the objective of other points", "solve/tasks/data_rows.py",
        r"Inputs\(result\.witness\.values, result\.witness\.cells,",
        "Inputs(result.witness.values[::-1], result.witness.cells[::-1],",
    ),
    Mutation(
        "changes lose a feature", "binder/distances.py",
        r"(def counted_features\(.*\n(?:.|\n)*?    return )(.*)\n", r"\1(\2)[1:]\n",
    ),
    Mutation(
        "the region of an answer is that of one point", "extensions/answers/top.py",
        r"if shared and point > 0:", "if point > 0:",
    ),
    Mutation(
        "l2 without its squares", "binder/distances.py",
        r'2 if atom\.norm == "l2" else 1', "1",
    ),
    Mutation(
        "groups of rows near the nearest pair are dropped", "extensions/answers/nearest_pair.py",
        r"            if own_bound >= self\.best\.value:\n", "            if own_bound >= self.best.value * 0.98:\n",
        test="tests/faults/test_third_P14_rows_that_are_nearly_as_near.py",
    ),
    Mutation(
        "a row without an answer counts", "extensions/answers/row_counts.py",
        r"        self\.no = ~exact\n        self\._accept\(np\.flatnonzero\(exact\), x\.take\(np\.flatnonzero\(exact\)\)\)",
        "        self.no = ~exact\n        self.no[:1] = False\n        self.yes[:1] = True\n"
        "        self._accept(np.flatnonzero(exact), x.take(np.flatnonzero(exact)))",
    ),
    Mutation(
        "a decision is asked from its last case on", "records/answers.py",
        r"for outcome, condition in decided\.cases", "for outcome, condition in reversed(decided.cases)",
    ),
    Mutation(
        "two points share the score of a class whose trees ask for what varies", "values/score_clashes.py",
        r"set\(range\(ensemble\.n_outputs\)\) - moved", "set(range(ensemble.n_outputs))",
        test="tests/values/test_contradictions.py",
    ),
)  # fmt: skip

STUDIES = (
    Mutation(
        "audit: a row more flips", "extensions/studies/audit_search.py",
        r'"rows_flipped": len\(order\)', '"rows_flipped": len(order) + 1', True,
    ),
    Mutation(
        "gap: half of the bound", "extensions/studies/optima.py",
        r"bound = bound if bound is None else max\(bound, value\)", "bound = bound if bound is None else bound / 2", True,
    ),
    Mutation(
        "count: a row more is concerned", "extensions/studies/count_search.py",
        r'"rows_concerned": sure', '"rows_concerned": sure + 1', True,
    ),
    Mutation(
        "sets: a feature too few", "extensions/studies/sets_search.py",
        r"features=self\._named\(one\), minimal", "features=self._named(one)[1:], minimal", True,
    ),
    Mutation(
        "range: the ends swapped", "extensions/studies/range_search.py",
        r'end="smallest" if self\.sense is Sense\.MINIMIZE', 'end="smallest" if self.sense is Sense.MAXIMIZE', True,
    ),
    Mutation(
        "robust: a bound too large", "extensions/studies/robust_search.py",
        r"best\.distance, best\.bound, best\.point", "best.distance, best.bound and 2 * best.bound, best.point", True,
    ),
    Mutation(
        "why: a contrast cut short", "extensions/studies/why_search.py",
        r"sorted\(known\.contrast\)\)", "sorted(known.contrast)[:1])", True,
    ),
    Mutation(
        "diff: a row more changes", "extensions/studies/diff_search.py",
        r'"changed": len\(self\.changed\)', '"changed": len(self.changed) + 1', True,
    ),
    Mutation(
        "shape: half of a bound", "extensions/studies/shape_search.py",
        r"bound = min\(bound, max\(result\.objective\.bound, 0\.0\)\)", "bound = min(bound, result.objective.bound / 2)", True,
    ),
    Mutation(
        "groups: a share of one row less", "extensions/studies/groups_search.py",
        r"share = Fraction\(number, len\(rows\)\)", "share = Fraction(number, max(1, len(rows) - 1))", True,
    ),
    Mutation(
        "reasons: one feature fewer may suffice", "extensions/studies/reasons_search.py",
        r"if len\(chosen\) > self\.options\.most:(\s+reason = f\"no values)", r"if len(chosen) >= self.options.most:\1", True,
    ),
    Mutation(
        "learn: a row more supports", "extensions/studies/learn_search.py",
        r"support=rule\.support", "support=rule.support + 1", True,
    ),
)  # fmt: skip
"""An error in each study; the questions of the language do not see them."""


READERS = (
    Mutation(
        "xgboost: a base between 0 and 1 is taken for a margin", "frontends/xgboost/model.py",
        r"margins = np\.array\(\[_logit\(field, score, version\) for score in scores\]\)", "margins = scores",
    ),
    Mutation(
        "lightgbm: x <= t is read as x < t", "frontends/lightgbm/model.py", r'comparison="<="', 'comparison="<"',
        test="tests/frontends/test_lightgbm_fidelity.py",
    ),
    Mutation(
        "onnx: a threshold is a float lower", "extensions/formats/onnx/trees.py",
        r"threshold = np\.where\(strict, next_down_array\(values, NumberType\.FLOAT32\), values\)",
        "threshold = next_down_array(values, NumberType.FLOAT32)",
        test="tests/extensions/formats/test_onnx_fidelity.py",
    ),
    Mutation(
        "catboost: the last splits come first", "extensions/formats/catboost/frontend.py",
        r"asked = \[question\(split\) for split in fields\.items\(\)\]",
        "asked = [question(split) for split in fields.items()][::-1]",
    ),
    Mutation(
        "scikit-learn: a forest counts one tree more", "frontends/sklearn/model.py",
        r"average=len\(nodes\.tree_offset\) - 1,", "average=len(nodes.tree_offset),",
    ),
    Mutation(
        "scikit-learn: the constant of a booster is left out", "frontends/sklearn/model.py",
        r"        base=base,\n        notes=\(\"exponential", "        base=0 * base,\n        notes=(\"exponential",
    ),
)  # fmt: skip
"""Errors in what reads the files of the libraries."""

PROOFS = (
    Mutation(
        "a disjunction is proved without its last part", "extensions/certify/cases.py",
        r"for part in constraint\.parts\]", "for part in constraint.parts[:-1]]",
        test="tests/extensions/certify/test_cases.py",
    ),
    Mutation(
        "fewer changes are proved than are asked for", "extensions/certify/cases.py",
        r"combinations\(mine, min\(most, len\(mine\)\)\)", "combinations(mine, min(max(most - 1, 0), len(mine)))",
        test="tests/extensions/certify/test_cases.py",
    ),
    Mutation(
        "costs of cells are rounded down", "extensions/certify/sums.py",
        r"unit\.ceil\(-\(min\(present\) if v is None else v\)\)",
        "unit.floor(-(min(present) if v is None else v)) - (1 << 24)",
        test="tests/extensions/certify/test_cases.py",
    ),
    Mutation(
        "a manifest needs no set inside of one that has none", "extensions/treesens_verify/together.py",
        r"require\(any\(rest <= n for n in lacking\)", "require(True or any(rest <= n for n in lacking)",
        test="tests/extensions/certify/test_manifests.py",
    ),
    Mutation(
        "parts of a domain may leave a hole", "extensions/treesens_verify/together.py",
        r"    require\(start <= .*\n", "",
        test="tests/extensions/certify/test_manifests.py",
    ),
    Mutation(
        "a case of a question is answered by no part", "extensions/treesens_verify/cases.py",
        r"require\(any\(one\.varied is None", "require(True or any(one.varied is None",
        test="tests/extensions/certify/test_whole.py",
    ),
    Mutation(
        "a part asks for more than its case", "extensions/treesens_verify/cases.py",
        r" and other\.asked <= self\.asked", "",
        test="tests/extensions/certify/test_whole.py",
    ),
    Mutation(
        "the first cell of the upper part is in no part", "extensions/sweeps/parts.py",
        r"frozen\(\(np\.arange\(n_cells\) >= self\.cell\) == self\.upper, bool\)",
        "frozen(np.arange(n_cells) > self.cell if self.upper else np.arange(n_cells) < self.cell, bool)",
        test="tests/extensions/sweeps/test_parts.py",
    ),
    Mutation(
        "open parts are forgotten", "extensions/sweeps/conquer.py",
        r"done = not known\.open and not known\.lost and set\(known\.leaves\(\)\) == set\(known\.closed\)",
        "done = bool(known.closed)",
        test="tests/extensions/sweeps/test_parts.py",
    ),
    Mutation(
        "an alternative implies as many changes as its best part", "values/stated_changes.py",
        r"min\(least for _, least in chosen\)", "max(least for _, least in chosen)",
        test="tests/values/test_stated_changes.py",
    ),
    Mutation(
        "a share passes without a certificate", "solve/question.py",
        r"if options\.require_certificate and not all\(", "if False and not all(",
        test="tests/extensions/certify/test_shares.py",
    ),
    Mutation(
        "an answer of a row satisfies less than any case asks", "extensions/treesens_verify/cases.py",
        r"if shown\.has_all_of\(Asked\(case\)\) and ", "if ",
        test="tests/extensions/certify/test_answers_in_cases.py",
    ),
    Mutation(
        "an answer of a row satisfies the statement alone", "extensions/treesens_verify/cases.py",
        r"if at_once and shown\.has_all_of", "if shown.has_all_of",
        test="tests/extensions/certify/test_by_value.py",
    ),
    Mutation(
        "the output of other learnt trees is taken for that of a question", "extensions/treesens_verify/cases.py",
        r"    at_once = at_once and shown\.places == own\.places\n", "",
        test="tests/extensions/certify/test_by_value.py",
    ),
    Mutation(
        "a strict limit of a sum of values is reached", "extensions/treesens_verify/by_value.py",
        r"total < most if relation\[\"strict\"\] else total <= most", "total <= most",
        test="tests/extensions/certify/test_by_value.py",
    ),
    Mutation(
        "a row that is too close to a bound counts as none", "extensions/treesens_verify/by_value.py",
        r"choose = min if self\.sure else max", "choose = min",
        test="tests/extensions/certify/test_by_value.py",
    ),
    Mutation(
        "a calibrated probability is that without its calibration", "extensions/treesens_verify/by_value.py",
        r"ends = share\(\[-x\]\) if curve\[\"of_probability\"\] else \[x\]", "ends = [x]",
        test="tests/extensions/certify/test_by_value.py",
    ),
    Mutation(
        "a missing value is near to every other", "extensions/treesens_verify/by_value.py",
        r"not all\(gone\) and \(any\(gone\) or x != y\)", "not any(gone) and x != y",
        test="tests/extensions/certify/test_by_value.py",
    ),
    Mutation(
        "one of several alternatives holds without being looked at", "extensions/treesens_verify/by_value.py",
        r"all\(any\(map\(self\.satisfies, alternatives\)\)", "all(bool(alternatives)",
        test="tests/extensions/certify/test_by_value.py",
    ),
    Mutation(
        "a constraint of an answer that no statement says is left out", "extensions/certify/whole.py",
        r"elif isinstance\(constraint, ValueSum\) and not is_order\(constraint\):", "elif False:",
        test="tests/extensions/certify/test_by_value.py",
    ),
    Mutation(
        "a cavity is looked for among one feature less", "extensions/treesens_verify/by_value.py",
        r"return can_hit\(apart, cavities\[\"width\"\]\)", 'return can_hit(apart, cavities["width"] - 1)',
        test="tests/extensions/certify/test_all_cavities.py",
    ),
    Mutation(
        "a row has the cells of a point in all features but one", "extensions/treesens_verify/by_value.py",
        r"item in min\(sets, key=len\)\)", "item in list(min(sets, key=len))[1:])",
        test="tests/extensions/certify/test_all_cavities.py",
    ),
    Mutation(
        "a box of answers does not mind cavities", "extensions/treesens_verify/shares.py",
        r"for name in BY_VALUE\), \"a box", 'for name in BY_VALUE[:2]), "a box',
        test="tests/extensions/certify/test_all_cavities.py",
    ),
    Mutation(
        "an answer is shown by rows that leave a cavity", "extensions/certify/whole.py",
        r"apart = few\.separating\(cells, 1\)", "apart = []",
        test="tests/extensions/certify/test_all_cavities.py",
    ),
    Mutation(
        "two relations are bounded by the first one's limit", "extensions/certify/combined_rows.py",
        r"limit = sum\(\(weight \* one\.limit", "limit = sum(((weight == 1) * one.limit",
        test="tests/extensions/certify/test_combined_rows.py",
    ),
    Mutation(
        "merged cells are named by the first of them", "extensions/certify/proof_text.py",
        r"        ends=True,", "        ends=False,",
        test="tests/extensions/certify/test_merged_cells.py",
    ),
    Mutation(
        "relations are taken together with negative numbers, too", "extensions/certify/combined_rows.py",
        r"if rest is not None and min\(rest\) > 0", "if rest is not None and any(rest)",
        test="tests/extensions/certify/test_combined_rows.py",
    ),
    Mutation(
        "a square lies above its tangents by nothing", "extensions/certify/combined_rows.py",
        r"yield line, term\.factor \* rise", "yield line, 0 * rise",
        test="tests/extensions/certify/test_combined_rows.py",
    ),
    Mutation(
        "a distance of points that may be missing has slopes", "extensions/certify/combined_rows.py",
        r"if not term\.unordered and not \(grid\.missing and legal\[grid\.missing_cell\]\):", "if not term.unordered:",
        test="tests/extensions/certify/test_combined_rows.py",
    ),
    Mutation(
        "a row about one of two models is said on the grid of both", "extensions/certify/statement.py",
        r" or self\._is_about_some_models\(constraint\.form\):", ":",
        test="tests/extensions/certify/test_formats.py",
    ),
    Mutation(
        "rows that clash have no proof of one line", "extensions/certify/produce.py",
        r"if may_clash\(statement\):", "if False:",
        test="tests/extensions/certify/test_clashes.py",
    ),
    Mutation(
        "boxes of a share may meet", "extensions/treesens_verify/shares.py",
        r"            apart\(below, above, problem\.number\)\n", "",
        test="tests/extensions/certify/test_share_boxes.py",
    ),
    Mutation(
        "what lies in a box in part counts", "extensions/treesens_verify/shares.py",
        r"if not wide or ", "if not wide and ",
        test="tests/extensions/certify/test_share_boxes.py",
    ),
    Mutation(
        "values beyond the domain are answers of a share", "extensions/treesens_verify/shares.py",
        r"seen\.mass\(\(\*path, \*seen\.allowed\(\)\)\)", "seen.mass(path)",
        test="tests/extensions/certify/test_share_boxes.py",
    ),
    Mutation(
        "one row of a share is not looked at", "extensions/treesens_verify/shares.py",
        r'require\(len\(certificates\) == len\(stated\["rows"\]\), "one part for each row is needed"\)\n', "pass\n",
        test="tests/extensions/certify/test_share_boxes.py",
    ),
    Mutation(
        "answers of a share may miss a clause", "extensions/treesens_verify/shares.py",
        r"require\(met or self\.mass\(counted, rest\) == 0, ", "require(True, ",
        test="tests/extensions/certify/test_share_boxes.py",
    ),
    Mutation(
        "what a group is drawn after does not matter", "extensions/treesens_verify/shares.py",
        r"waiting\[after\] = list\(map\(mul, waiting\[after\], said\)\) if after in waiting else said", "pass",
        test="tests/extensions/certify/test_share_boxes.py",
    ),
    Mutation(
        "a share is proved of bins without their parents", "extensions/certify/draws.py",
        r"after = self\._number\.get\(parent\)  # other", "after = None  # other",
        test="tests/extensions/certify/test_share_boxes.py",
    ),
    Mutation(
        "cases of what is not proved as a whole are left behind", "extensions/certify/answers.py",
        r"return whole_or_nothing\(claim, folder, query, prove_cases\)", "return prove_cases(folder)",
        test="tests/extensions/certify/test_what_has_none.py",
    ),
    Mutation(
        "models are the same if their trees have as many nodes", "extensions/treesens_verify/models.py",
        r"return self\.nodes == other\.nodes", "return self.size == other.size",
        test="tests/extensions/certify/test_formats.py",
    ),
    Mutation(
        "a node of a trees file may have two parents", "extensions/treesens_verify/models.py",
        r"len\(\{\*left, \*right\}\) == 2 \* len\(left\)", "True",
        test="tests/extensions/certify/test_formats.py",
    ),
    Mutation(
        "the columns of a tree are put together the other way round", "extensions/treesens_verify/models.py",
        r"zip\(self\.at, zip\(\*self\.splits\)\)", "zip(self.at[::-1], zip(*self.splits))",
        test="tests/extensions/certify/test_formats.py",
    ),
    Mutation(
        "values of boxes are rounded down", "extensions/treesens_verify/boxes.py",
        r"return -\(-x >> shift\)", "return x >> shift",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "boxes hold no missing values", "extensions/treesens_verify/boxes.py",
        r"meets \|= self\.column\(v, 2\)\.take\(boxes\)", "pass",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "a box ends a cell too early", "extensions/treesens_verify/boxes.py",
        r"self\.column\(v, 1\)\.take\(boxes\) > low", "self.column(v, 1).take(boxes) > low + 1",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "a few boxes have the values of other ones", "extensions/treesens_verify/bits.py",
        r"True, layer\.value\.take\(boxes\), factor", "True, layer.value[: len(boxes)], factor",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "bits forget boxes with a missing value alone", "extensions/treesens_verify/bits.py",
        r"packed\(meets \| self\.column\(v, 2\) if kind == ABOVE_OR_MISSING else meets\)", "packed(meets)",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "a value that may no longer be missing needs no cell", "extensions/treesens_verify/bits.py",
        r"second\[i\] = self\.number\(v, ABOVE, start\)", "pass",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "the last cell below a cut is left out in bits", "extensions/treesens_verify/bits.py",
        r"mine < cells if", "mine < cells - 1 if",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "a tree whose best boxes are far behind counts for nothing", "extensions/treesens_verify/bits.py",
        r"np\.add\.at\(total, leaf, self\.best\(at, found\)\)", "pass",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "leaves with weights that few have are not looked at", "extensions/treesens_verify/bits.py",
        r"require\(bound\(now, weights, exponent\) < 0", "require(bound is not None",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "cells left out of a domain are taken to be there in bits", "extensions/treesens_verify/bits.py",
        r"if allowed is not None and low < high:", "if False:",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "two points that take one way are at one leaf from the first split on", "extensions/treesens_verify/boxes.py",
        r"np\.where\(along, child, n\)", "np.where(n == old[j], child, n)",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "only the last split of a path counts for the greatest value", "extensions/treesens_verify/boxes.py",
        r"np\.maximum\(top\[self\.left\[level\]\], top\[self\.right\[level\]\]\)", "top[self.right[level]]",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "points that part below a node go along", "extensions/treesens_verify/boxes.py",
        r"along\[level\] &= along\[self\.left\[level\]\] & along\[self\.right\[level\]\]", "pass",
        test="tests/extensions/certify/test_boxes.py",
    ),
    Mutation(
        "points whose distance may be 0 are taken to differ", "values/stated_changes.py",
        r"if not lowering or not between or not _is_above\(-relation\.limit, strict=relation\.strict\):",
        "if not lowering or not between:",
        test="tests/extensions/certify/test_cases.py",
    ),
    Mutation(
        "a set of features that stays open is taken for one without an answer", "extensions/methods/fewest_changes.py",
        r"if result\.verdict is not Verdict\.NONE or result\.proof is Proof\.LIBRARY:",
        "if result.verdict is Verdict.FOUND:",
        test="tests/extensions/methods/test_fewest_changes.py",
    ),
    Mutation(
        "features that are not counted may not differ", "extensions/methods/fewest_changes.py",
        r"SameExcept\(0, 1, free \| self\.uncounted\)", "SameExcept(0, 1, free)",
        test="tests/extensions/methods/test_fewest_changes.py",
    ),
)  # fmt: skip
"""Errors in what proofs of several parts rest on."""

ROOMS = (
    Mutation(
        "merged guards: one predicate more than the hole has", "compiler/passes/merge_guards.py",
        r"for j in range\(position\[a\]\[1\], position\[b\]\[1\]\):",
        "for j in range(position[a][1], min(position[b][1] + 1, len(v) - 1)):",
        test="tests/compiler/test_pass_conformance.py",
    ),
    Mutation(
        "relaxed rows: negative coefficients are rounded away from 0", "compiler/legalise/rounding.py",
        r"    shrunk = -floor_shift\(-coefficients, dropped\) if relax else floor_shift\(coefficients, dropped\)\n",
        "    shrunk = -floor_shift(-coefficients, dropped) if relax else floor_shift(coefficients, dropped)\n"
        "    if relax:\n        shrunk = np.where(coefficients < 0, floor_shift(coefficients, dropped), shrunk)\n",
        test="tests/compiler/legalise/test_rounding.py",
    ),
    Mutation(
        "a group of just the smallest size is not compared", "extensions/studies/groups_search.py",
        r"len\(group\.rows\) >= options\.smallest \* rows", "len(group.rows) > options.smallest * rows",
        test="tests/extensions/studies/test_groups.py",
    ),
    Mutation(
        "the key of an answer leaves the tolerance out", "records/journal.py",
        r'NO_PART_OF_A_KEY = frozenset\(\{', 'NO_PART_OF_A_KEY = frozenset({"tolerance", "absolute_tolerance", ',
        test="tests/extensions/sweeps/test_answers.py::test_every_setting_that_can_change_an_answer_is_part_of_its_key",
    ),
    Mutation(
        "the key of an answer leaves the demand for a certificate out", "records/journal.py",
        r'NO_PART_OF_A_KEY = frozenset\(\{', 'NO_PART_OF_A_KEY = frozenset({"require_certificate", ',
        test="tests/extensions/sweeps/test_answers.py::test_every_setting_that_can_change_an_answer_is_part_of_its_key",
    ),
    Mutation(
        "lightgbm: a missing value goes right at the threshold 0", "frontends/lightgbm/model.py",
        r"zero_goes_left = tree\.threshold >= 0", "zero_goes_left = tree.threshold > 0",
        test="tests/frontends/test_lightgbm_fidelity.py",
    ),
)  # fmt: skip
"""Errors that random questions hardly ever meet: the test of the room finds each in seconds."""

ALL = (*MUTATIONS, *STUDIES, *READERS, *PROOFS, *ROOMS, *ENGINE_MUTATIONS)


def source_of(mutation: Mutation) -> Path:
    """The file that an error is planted in."""
    inside = Path(mutation.file)
    return CHECKER / inside.name if inside.parent.name == CHECKER.name else SOURCES / inside


def mutate(mutation: Mutation, folder: Path) -> None:
    """A copy of the package in `folder` with the error in it; one of the engine is planted beside it, and not built."""
    copy = folder / "treesens"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
    _add_extension(copy)
    shutil.copytree(CHECKER, copy / "extensions" / CHECKER.name, dirs_exist_ok=True)
    path = copy / mutation.file
    changed, times = re.subn(mutation.pattern, mutation.replacement, path.read_text(), count=1)
    if not times:
        raise SystemExit(f"the place of `{mutation.name}` is no longer in {mutation.file}; adapt its pattern")
    path.write_text(changed)
    if mutation.file.startswith("engine/"):
        plant(mutation, changed)


def _add_extension(copy: Path) -> None:
    """The compiled engine, from where the installed package has it."""
    import treesens._engine

    built = Path(str(treesens._engine.__file__))
    if not (copy / built.name).exists():
        shutil.copy(built, copy / built.name)


def find(mutation: Mutation, seconds: float, seed: int) -> tuple[bool, float, str]:
    """Whether the oracle finds the error, after how many seconds, and what it says.

    A failure that the sources without the error have, too, is none of its own: the search goes on with the next seed.
    """
    start, said = time.monotonic(), "no failure"
    kind = ["--only-studies"] if mutation.study else []
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        mutate(mutation, Path(folder))
        if mutation.file.startswith("engine/"):
            if test := fails_by_itself(random_problems()):
                return True, time.monotonic() - start, test
            built = extension()
            copy = Path(folder) / "treesens"
            shutil.copy(built, next(copy.glob("_engine*.so"), copy / built.name))
        if mutation.test and _fails(mutation.test, folder):
            return True, time.monotonic() - start, mutation.test
        while (left := seconds - (time.monotonic() - start)) > 1:
            told = failures(["--seconds", str(left), "--seed", str(seed), "--stop", *kind], folder)
            if not told:
                break
            met, said = int(told[0]["seed"]), f"{told[0]['kind']}: {told[0]['detail']}"
            honest = failures(["--cases", "1", "--seed", str(met), *kind], None)
            if any(f.get("query") not in {h.get("query") for h in honest} for f in told):
                return True, time.monotonic() - start, said
            seed = met + 1
    return False, time.monotonic() - start, said


def _fails(test: str, sources: str) -> bool:
    """Whether a test that passes on the sources as they are fails on others."""
    command = [sys.executable, "-W", "ignore", "-c", START_TEST, sources, test]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{test} could not be asked: {done.stdout[-1000:]}{done.stderr[-1000:]}")
    return done.returncode == 1


def failures(options: Sequence[str], sources: str | None) -> list[dict[str, Any]]:
    """The failures of a run of the oracle, on other sources if they are given."""
    environment = dict(os.environ)
    command = [sys.executable, "-W", "ignore", "-m", "tests.oracle"]
    if sources is not None:
        environment |= {"ORACLE_SOURCES": sources, "ORACLE_START": START_ORACLE}
    with tempfile.TemporaryDirectory(prefix="mutation-out-") as out:
        command += [*options, "--shrink", "0", "--others", "0", "--output", out]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=environment, cwd=SOURCES.parents[1]
        )
        if done.returncode not in (0, 1):
            raise SystemExit(f"the oracle ended with {done.returncode}: {done.stderr[-1000:]}")
        return [json.loads(line) for line in (Path(out) / "failures.jsonl").read_text().splitlines()]


def random_problems() -> Path:
    """300 problems as `make cpp-test` draws them, made once."""
    place = BUILD / "modules.txt"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [sys.executable, "-m", "tests.cpp.modules.write", "300", "1", place], check=True, cwd=SOURCES.parents[1]
        )
    return place


def words(said: str) -> str:
    """One line of a table."""
    return " ".join(said.replace("|", "/").split())[:100]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.mutations", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="time for each error")
    parser.add_argument("--seed", type=int, default=100_000)
    parser.add_argument("--only", default=None, help="errors whose name holds this text")
    parser.add_argument("--turn", type=int, default=None, help="one error: this number, counted round")
    options = parser.parse_args(argv)
    missed = 0
    print("| planted error | found after | how |\n| --- | ---: | --- |", flush=True)
    for mutation in ALL if options.turn is None else (ALL[options.turn % len(ALL)],):
        if options.only and options.only not in mutation.name:
            continue
        found, seconds, said = find(mutation, options.seconds, options.seed)
        missed += not found
        print(f"| {mutation.name} | {f'{seconds:.0f} s' if found else 'not found'} | {words(said)} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
