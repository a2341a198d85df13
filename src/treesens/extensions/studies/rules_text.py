"""Mined rules as text of the language, and as records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

import numpy as np

from treesens.compiler.base.budget import Budget, working_within
from treesens.compiler.base.floats import round_to_float32
from treesens.errors import DataError
from treesens.extensions.studies.learn import FeatureRecord, LearnOptions, RuleRecord, RulesDocument
from treesens.extensions.studies.rule_columns import ColumnDomain
from treesens.extensions.studies.rules import Mined, Rule, RuleOptions, ValueSet, mine
from treesens.extensions.studies.study import Asking, Found
from treesens.grammar.printing.print_terms import Unwritable, decimal, name_text, string_text
from treesens.grammar.tree import ast

POINT = "a"
_DIGITS = 9
_LISTED = 10


def ask(asked: Asking[LearnOptions]) -> Found[RuleRecord]:
    """What the study finds."""
    assert asked.table is not None
    options = asked.options
    with working_within(Budget.of(options.time_limit, asked.stop)):
        mined = mine(asked.table, RuleOptions(options.exceptions, options.rows, options.share))
    document = rules_document(mined)
    return Found(document.rules, (), asked.stop.is_set(), not mined.unfinished, document)


def rules_text(mined: Mined) -> str:
    """A file: `feature` and `onehot` declarations, and each relation as a comment that starts with `# rule:`. What is after
    it up to the next `#` is a constraint on a point `a`.
    """
    table = mined.table
    lines = [f"# mined from {table.rows:,} rows; a rule to approve goes into a query, for each of its points"]
    lines += [_declaration(domain) for domain in mined.domains]
    lines += [f"onehot {{{', '.join(_name(name) for name in group)}}}" for group in mined.one_hot]
    lines += [f"# rule: {constraint_text(rule, mined)}  # {_support(rule)}" for rule in mined.rules]
    if mined.unfinished:
        lines.append(f"# the time was over before these were searched through: {', '.join(mined.unfinished)}")
    if mined.left_out:
        lines.append(f"# {len(mined.left_out)} columns were not searched for relations: too many values in all")
    return "\n".join(lines) + "\n"


def domain_lines(mined: Mined, names: Sequence[str]) -> list[str]:
    """The declarations of some columns."""
    return [_declaration(domain) for domain in mined.domains if domain.name in names]


def rules_document(mined: Mined) -> RulesDocument:
    """Domains, groups and rules of a table whose name somebody else knows."""
    return RulesDocument(
        data="",
        rows=mined.table.rows,
        features=[FeatureRecord(feature=d.name, kind=d.kind, text=_declaration(d)) for d in mined.domains],
        onehot=[list(group) for group in mined.one_hot],
        rules=[rule_record(rule, mined) for rule in mined.rules],
        not_searched=list(mined.left_out),
        unfinished=list(mined.unfinished),
        text=rules_text(mined),
    )


def rule_record(rule: Rule, mined: Mined) -> RuleRecord:
    """A rule with its support and its exceptions."""
    return RuleRecord(
        kind=rule.kind,
        columns=[rule.left.column, rule.right.column],
        left=list(rule.left.values),
        right=list(rule.right.values),
        dependency=rule.dependency,
        support=rule.support,
        exceptions=rule.exceptions.tolist(),
        constraint=constraint_text(rule, mined),
    )


def constraint_text(rule: Rule, mined: Mined) -> str:
    """A rule as a constraint on the point `a`. A relation of numbers is only about values that are present."""
    left, right = _side(rule.left), _side(rule.right)
    if rule.kind == "equivalence":
        return f"({left} implies {right}) and ({right} implies {left})"
    if rule.kind == "implication":
        return f"{left} implies {right}"
    relation = f"{left} {'=' if rule.kind == 'equal' else '<='} {right}"
    absent = {domain.name for domain in mined.domains if domain.missing}
    present = [f"present({_side(s)})" for s in (rule.left, rule.right) if s.column in absent]
    return f"{' and '.join(present)} implies {relation}" if present else relation


def _side(side: ValueSet) -> str:
    feature = f"{POINT}.{_name(side.column)}"
    if not side.values:
        return feature
    values = [_value(value) for value in side.values]
    return f"{feature} = {values[0]}" if len(values) == 1 else f"{feature} in {{{', '.join(values)}}}"


def _support(rule: Rule) -> str:
    count = len(rule.exceptions)
    if not count:
        return f"{rule.support:,} rows, no exception"
    rows = ", ".join(str(row) for row in rule.exceptions[:_LISTED]) + (", .." if count > _LISTED else "")
    return f"{rule.support:,} rows, {count:,} exception{'s' if count > 1 else ''}: row{'s' if count > 1 else ''} {rows}"


def _name(name: str) -> str:
    """A column as the language names it. DataError for one that it cannot."""
    try:
        return name_text(ast.Name(name))
    except Unwritable:
        raise DataError(
            f"no text of the language can hold the name of the column {name[:60]!r}",
            remedy="rename the column, or drop it from the table; a name is one line without backquotes, and not empty",
        ) from None


def _value(value: float | str) -> str:
    return string_text(value) if isinstance(value, str) else decimal(Fraction(Decimal(repr(value))))


def _declaration(domain: ColumnDomain) -> str:
    name = _name(domain.name)
    missing = " or missing" if domain.missing else ""
    match domain.kind:
        case "other":
            return f"# {name}: no domain (text of many values, no value, or infinite ones)"
        case "category":
            return f"feature {name}: category {{{', '.join(map(_value, domain.values))}}}{missing}"
        case "integer":
            return f"feature {name}: integer in [{_value(domain.low)}, {_value(domain.high)}]{missing}"
        case "steps":
            ends = f"[{_value(domain.low)}, {_value(domain.high)}]"
            return f"feature {name}: integer in [0, {domain.steps}] stored as {ends}{missing}"
        case _:
            return f"feature {name}: real in [{', '.join(_ends(domain.low, domain.high))}]{missing}"


def _ends(low: float, high: float) -> Iterator[str]:
    """Decimals that enclose both numbers as float64 and as float32, which a model may read: an end is never rounded inwards."""
    for value, rounding, end in ((low, ROUND_FLOOR, min), (high, ROUND_CEILING, max)):
        narrow = round_to_float32(Fraction(value))
        reached = end(value, narrow) if np.isfinite(narrow) else value
        yield decimal(Fraction(_short(Decimal(repr(value)), Decimal(reached), rounding)))


def _short(written: Decimal, reached: Decimal, rounding: str) -> Decimal:
    """A decimal of few digits beyond `reached`: the number as it is written, if it is that far out, or with a digit more."""
    outward = -1 if rounding == ROUND_FLOOR else 1
    step = Decimal(1).scaleb(int(written.as_tuple().exponent) - 1)
    for short in (written, written + outward * step) if len(written.as_tuple().digits) < _DIGITS else ():
        if (short - reached) * outward >= 0:
            return short
    return Context(prec=_DIGITS, rounding=rounding).create_decimal(reached)
