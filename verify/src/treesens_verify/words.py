"""The claim of a certificate, line by line: the complete statement, so that the file need not be opened."""

import json
import unicodedata
from collections import Counter

from .form import NAME

MOST_NAMES = 12


def in_words(problem, files=None):
    """The claim of a certificate. `files`: names of files by their SHA-256."""
    yield ("These inputs exist" if problem.found else "No inputs exist") + ", in values as the models store them:"
    yield from stated_words(problem, files)


def stated_words(problem, files=None, *, agreement=True, but=()):
    """A statement line by line, without what the claim itself says: the features in which two points may differ, and the
    values of features (`but`) without a set.
    """
    statement, say = problem.statement, Words(problem)
    yield from models_in_words(statement["models"], problem.models, files)
    for p, point in enumerate(statement["points"]):
        yield f"  {point['name']} is an input of model {point['model']}, with " + say.free(p, but)
    yield from say.rows(statement, "  ")
    if len(problem.points) == 2 and agreement:
        varied = [say.features[f] for f in statement["same_except"] or ()]
        but = f" but {', '.join(varied)}" if varied else ""
        yield f"  the same values of all features{but}" if problem.agree else "  all features may differ"
    yield from say.sets(statement, "  ")
    if "further" in statement:
        yield from in_further_words(say, statement["further"], "  ")


def in_further_words(say, asked, indent):
    """Alternatives, limits of changes, and sums."""
    for limit in asked["changes"]:
        names = ", ".join(say.features[f] for f in sorted(limit["features"]))
        never = "" if limit["most"] >= 0 else ": false"
        yield f"{indent}the points differ in at most {limit['most']} of {names or 'no features'}{never}"
    for limit in asked["apart"]:
        names = ", ".join(say.features[f] for f in sorted(limit["features"]))
        yield f"{indent}the points differ in at least {limit['least']} of {names or 'no features'}"
    yield from (indent + say.relation(one) for one in asked.get("values", []))
    yield from (indent + say.chance(one) for one in asked.get("chances", []))
    for one in asked.get("cavities", []):
        yield from (indent + line for line in say.cavities(one))
    for disjunction in asked["either"]:
        yield f"{indent}and one of these holds:" if disjunction else f"{indent}false"
        for one in disjunction:
            deeper = indent + "    "
            lines = [*say.rows(one, deeper), *say.sets(one, deeper), *in_further_words(say, one, deeper)]
            first, *more = lines or [deeper + "true"]
            yield from (f"{indent}  - {first.removeprefix(deeper)}", *more)


def models_in_words(stated, models, files=None):
    """The models of a statement or claim: their files, the number of trees used, and trusted assumptions."""

    def file(sha256):
        return f"{json.dumps((files or {}).get(sha256, 'a file'), ensure_ascii=False)}, SHA-256 {sha256}"

    for i, (named, model) in enumerate(zip(stated, models)):
        count, total = named["trees"], model.total
        trees = f"all {total} trees" if count == total else f"the first {count} of {total} trees"
        trees += f" divided by {model.average}" * (model.average != 1)
        base = ", ".join(named["base"])
        yield f"  model {i} is {file(named['sha256'])} ({named['format']}): {trees}, base margin {base}"
        if model.learnt:
            yield "    These trees are no model: that they are learnt from rows is trusted, not proved"
        if model.made_from is not None:
            yield f"    It is trusted, not proved, that these are the trees of {file(model.made_from)}"


def names_of(features):
    """Names of features that look different: identifiers as they are, and all others in quotation marks.

    Letters beyond ASCII can look like others, by another script, another normalisation, or invisible signs; such a feature
    gets its number, and so do those that share a name.
    """
    often = Counter(map(plain_name, features))
    return [
        (name if NAME.fullmatch(name) else json.dumps(name, ensure_ascii=False))
        + f"#{f}" * (often[plain_name(name)] > 1 or not name.isascii())
        for f, name in enumerate(features)
    ]


def plain_name(name):
    """The compatible form of a name, without invisible signs."""
    letters = unicodedata.normalize("NFKC", name)
    return "".join(c for c in letters if c.isprintable() and unicodedata.category(c) != "Cf")


def together(domain):
    """The sets of a domain, equal ones of a feature at several points as one: the points, the feature, and the allowed
    values.
    """
    found = {}
    for p, f, allowed in domain:
        found.setdefault((f, json.dumps(allowed, sort_keys=True)), ([], f, allowed))[0].append(p)
    return found.values()


class Words:
    """The parts of a statement in words."""

    def __init__(self, problem):
        self.problem = problem
        self.names = [p["name"] for p in problem.statement["points"]]
        self.features = names_of(problem.features)

    def free(self, p, but=()):
        """The constraints on features without a set in the domain; `but` for some, which the claim states itself."""
        problem, listed = self.problem, {f for q, f, _ in self.problem.statement["domain"] if q == p}
        codes = problem.points[p].categories
        free = [f for f in range(len(self.features)) if f not in listed and f not in but]
        kinds = [
            ("any finite value, not missing", [f for f in free if f not in codes], len(self.features) - len(codes)),
            ("any code of a category (0, 1, 2, ...), not missing", [f for f in free if f in codes], len(codes)),
            ("a code of a category or missing, and as below", sorted(codes & listed), None),
        ]
        found = []
        for kind, mine, total in kinds:
            if len(mine) == total and total > MOST_NAMES:
                found.append(f"all {total} features that have {'codes' if mine[0] in codes else 'no codes'}: {kind}")
            elif mine:
                found.append(f"{', '.join(self.features[f] for f in mine)}: {kind}")
        return "; ".join(found) or "all features as below"

    def rows(self, asked, indent):
        return [indent + self.row(row) for row in asked["rows"]]

    def sets(self, asked, indent):
        """The constraints on single features, in orders and in clauses."""
        found = [self.places(*part) for part in together(asked["domain"])]
        found += [f"{self.at(p, f)} <= {self.at(q, f)} (neither one is missing)" for p, q, f in asked["orders"]]
        found += [" or ".join(self.place(*part) for part in clause) or "false" for clause in asked["clauses"]]
        return [indent + line for line in found]

    def at(self, p, f):
        return f"{self.names[p]}.{self.features[f]}"

    def places(self, points, f, allowed):
        what = self.allowed(allowed)
        if len(points) == 1 or not what:
            return " and ".join(self.place(p, f, allowed) for p in points)
        return f"{' and '.join(self.at(p, f) for p in points)} are each {what}"

    def place(self, p, f, allowed):
        what = self.allowed(allowed)
        return f"{self.at(p, f)} is {what}" if what else f"{self.at(p, f)} is in an empty set: false"

    def allowed(self, allowed):
        """The allowed values of a feature; nothing for an empty set."""
        what = []
        for low, high in allowed.get("runs", []):
            what.append(f"from {plain(low)} to {plain(high)}" if None not in (low, high) else one_end(low, high))
        kind = "a whole number " if allowed.get("whole") else ""
        words = [kind + " or ".join(what)] if what else []
        if allowed.get("values"):
            words.append("one of " + ", ".join(map(plain, allowed["values"])))
        if allowed.get("missing"):
            words.append("missing")
        return " or ".join(words)

    def row(self, row):
        terms = [f"{c} * {self.score(p, o)}" for c, p, o in row["terms"]]
        terms += [self.cost(*cost) for cost in row["costs"]]
        logs = "".join(f" + {c} * ln({a})" for c, a in row["bound"]["logs"])
        return f"{' + '.join(terms) or '0'} {'>' if row['strict'] else '>='} {row['bound']['rational']}{logs}"

    def relation(self, relation):
        """A sum of values and scores. A missing value makes a sum false, except for a distance."""
        terms = [f"{c} * {self.value(p, f, *distance)}" for c, p, f, *distance in relation["terms"]]
        terms += [f"{c} * {self.score(p, o)}" for c, p, o in relation.get("scores", [])]
        return f"{' + '.join(terms) or '0'} {'<' if relation['strict'] else '<='} {relation['most']}"

    def value(self, p, f, other=None, unit=None, power=1):
        if other is None:
            return f"{self.at(p, f)} (not missing)"
        value = other.get("value")
        away = self.at(other["point"], f) if "point" in other else "missing" if value is None else plain(value)
        pair = f"{self.at(p, f)} and {away}"
        what = f"(1 if {pair} are unequal, else 0)"
        if unit is not None:
            what = f"(how far {pair} are apart in units of {unit}; 1 if one of them is missing, 0 if both are)"
        return what + "^2" * (power == 2)

    def chance(self, chance):
        """A sum of probabilities, each 1 / (1 + powers of e)."""
        terms = []
        for factor, exponents, *curve in chance["terms"]:
            if curve:
                terms.append(f"{factor} * {self.curve(exponents, *curve)}")
                continue
            powers = []
            for scores, constant in exponents:
                inner = [*(f"{c} * {self.score(p, o)}" for c, p, o in scores), constant]
                powers.append(f" + e^({' + '.join(inner)})")
            terms.append(f"{factor} / (1{''.join(powers)})")
        return f"{' + '.join(terms) or '0'} {'>' if chance['strict'] else '>='} {chance['least']}"

    def curve(self, scores, curve):
        """A function of a sum of scores; that it is the model's is trusted, not proved."""
        inner = " + ".join(f"{c} * {self.score(p, o)}" for c, p, o in scores) or "0"
        if curve is None:
            return f"({inner})"
        inner = f"1 / (1 + e^-({inner}))" if curve["of_probability"] else inner
        if "slope" in curve:
            return f"1 / (1 + e^({curve['slope']} * ({inner}) + {curve['intercept']}))"
        knots = ", ".join(f"{value} at {at}" for at, value in curve["knots"])
        return f"(straight lines over {inner}: {knots})"

    def cavities(self, asked):
        """Some rows have the cells of a point in any `width` features; that they are rows of a table is trusted, not proved."""
        width, count, point = asked["width"], len(asked["rows"]), self.names[asked["point"]]
        names = ", ".join(self.features[f] for f in asked["features"]) or "no features"
        yield f"{point} lies in no cavity: of any {width} of these, or fewer, one row has the values in its cells: {names}"
        yield f"  It is trusted, not proved, that these are cells of {count} rows of a table:" + " false" * (not count)
        for row in asked["rows"]:
            cells = ["" if i is None else self.allowed(sets[i]) for i, sets in zip(row, asked["cells"])]
            yield "    " + "; ".join(
                f"{self.features[f]} {what or 'nowhere'}" for f, what in zip(asked["features"], cells)
            )

    def score(self, p, o):
        """An output of the model that a point sees, or of learnt trees, whose outputs follow those of the model."""
        models, statement = self.problem.models, self.problem.statement
        seen = statement["points"][p]["model"]
        for m in (seen, *statement.get("learnt", ())):
            if o < len(models[m].base):
                return f"{'margin' if m == seen else f'trees of model {m}'}({self.names[p]}, output {o})"
            o -= len(models[m].base)
        raise IndexError(o)

    def cost(self, p, f, steps, missing):
        starts = ", ".join(f"{c} from {plain(start)} on" if i else c for i, (start, c) in enumerate(steps))
        return f"cost({self.at(p, f)}: {starts}, {missing} if missing)"


def one_end(low, high):
    if low is None and high is None:
        return "of any finite value"
    return f"up to {plain(high)}" if low is None else f"from {plain(low)} on"


def plain(x):
    """A number of JSON, exactly; a whole one without a point."""
    return repr(int(x)) if x == int(x) and abs(x) < 1 << 53 else repr(float(x))


def in_full(problem, inputs):
    """The claimed inputs."""
    say = Words(problem)
    for name, point in zip(say.names, inputs):
        values = (f"{f} {'missing' if x is None else '= ' + plain(x)}" for f, x in zip(say.features, point))
        yield f"  {name}: {', '.join(values)}"
