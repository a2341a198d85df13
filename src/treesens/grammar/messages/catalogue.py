"""The numbered catalogue of messages about `.sens` files: each code's cause and remedy.

S0xx: the text does not parse (grammar). E1xx: a name is unknown. E2xx: a constraint or objective is invalid for its
model. E3xx: a domain is invalid. E4xx: data do not fit their domains (warnings). E5xx: why an answer is what it is (notes).
A code keeps its meaning for ever; the number of a removed one is not used again.
"""

from __future__ import annotations

from typing import Final

from treesens.compiler.base.diagnostics import Code
from treesens.grammar.constructs.registry import constructs


def _entries(text: str) -> dict[str, Code]:
    """Three lines per entry: code and title, cause, remedy."""
    lines = [line.strip() for line in text.strip().splitlines()]
    rows = zip(lines[::3], lines[1::3], lines[2::3], strict=True)
    return {title[:4]: Code(title[:4], title[5:], cause, remedy) for title, cause, remedy in rows}


SYNTAX: Final = _entries(
    """
S001 unexpected text
  the text does not continue any sentence of the language
  write one of the words listed
S002 unreadable character
  the character has no meaning outside names and strings
  remove it, or put the name in backquotes
S003 name not closed
  a backquote opens a name and the line ends before the second one
  close the name with a backquote on the same line
S004 string not closed
  a double quote opens a string and the line ends before the second one
  close the string with a double quote on the same line
S005 not a number
  the text starts like a number and goes on with letters or dots
  correct the number, or put the name in backquotes
S006 number too large
  the number has more than 400 digits before or after the point
  use a smaller number, or `inf` for an open end
S007 nested too deeply
  more than 64 brackets, operators or loops stand inside one another
  split the constraint into several
S008 not a whole number
  a row, a width or a number of answers counts things
  write a whole number that is not negative
S010 empty file
  the file holds no declaration
  write at least one `model` and one `query`
S011 unknown declaration
  a declaration starts with model, data, feature, onehot, domain, measure, decision, query or for each
  correct the first word of the line
S012 missing colon
  a colon separates the name of a feature, query or loop from what it is
  write `:` after the name
S013 missing such that
  the points of a query and its constraints are separated by `such that`; only an objective makes up for constraints
  write `such that` after the points
S014 empty query
  a query has to ask something
  write `find`, `sensitive`, `count` or `explain`
S015 misspelt word
  the word is none of those that may stand here, but close to one
  write the word that is meant
S016 word of the language as a name
  the word has a meaning of its own here
  put it in backquotes
S017 name needs backquotes
  plain names hold letters, digits and `_`, and do not start with a digit
  put the name in backquotes
S018 unfinished
  an operator or word has nothing to work on
  write what belongs after it
S019 missing comma
  the members of a list are separated by commas
  write `,` between them
S020 bracket not closed
  an opening bracket has no partner
  close it
S021 bracket not opened
  a closing bracket has no partner
  remove it, or open it before
S022 empty braces
  a set has at least one member
  write the members, or leave the clause out
S023 path is not a string
  paths are written in double quotes
  write the path in double quotes
S024 declaration within a line
  every declaration starts on a line of its own
  start a new line before it
S030 operator of another language
  the language writes this operator differently
  write the operator that is named
S031 chained comparison
  one constraint compares two things
  write two comparisons joined by `and`, or `in [lo, hi]`
S032 missing comparison
  a constraint says how two things compare
  add a comparison such as `>= 0.5`
S033 name without a point
  features belong to a point, and a bare name is only a value or a point
  write `a.NAME` for the feature of point `a`
S034 points compared
  points have no order; they are equal, or equal except some features
  write `a = b except {..}`, or `changes(a, b) >= 1`
S035 a row as a value
  only a point can equal a row
  write `a = row N of DATA`
S040 unknown function
  no function has this name
  use one of the functions of the language
S041 wrong arguments
  the function takes other arguments
  call it as the message shows
S042 missing norm
  a distance is measured in a norm
  add one of l0, l1, l2, linf
S043 misplaced except or by
  `except` belongs to `P = Q`, and `by` to `class(P) = C`
  remove it, or write the constraint it belongs to
S050 clause given twice
  the clause may be given once
  remove one of the two
S051 constraint after the objective
  constraints come before the objective, `top` and `expect`
  move the constraint up
S052 wrong number of points
  a query is about one or two points
  name one or two points
S053 unknown choice
  only the words listed are possible
  use one of them
S054 no share
  a bound on a share is expected of a query that asks for the share
  add `share of MEASURE`
S060 not UTF-8
  the file holds bytes that are not UTF-8 text
  save the file as UTF-8
S061 file too large
  a question is a short text; more than 10 MB is something else
  check the path
S062 not a text file
  the file holds NUL bytes
  check the path, and save the file as UTF-8 text
S063 file cannot be read
  the file does not exist or may not be read
  check the path and its permissions
S064 no file of questions
  the text is a module of the intermediate representation, as `opt` reads and prints it
  give it to `treesens opt`
"""
)

NAMES: Final = _entries(
    """
E101 unknown model
  no `model` declaration has this name
  declare the model, or use a declared one
E102 unknown data
  no `data` declaration has this name
  declare the data, or use a declared one
E103 unknown feature
  the model has no feature of this name
  use the name of a feature of the model
E104 unknown point
  the query does not name this point
  use a point after `find` or `as`
E105 unknown class
  the model has no class of this name
  use the name or number of a class
E106 unknown category
  the feature has no category of this name
  use a declared category
E107 declared twice
  two declarations of a kind have the same name
  rename or remove one
E108 unknown column
  the table has no column of this name
  use the name of a column
E109 model not named
  the file has several models, and the query does not say which
  add `in MODEL`
E110 no such row
  the table has fewer rows
  use a row from 0 to the last
E112 no model
  the file declares no model
  declare one with `model NAME from "FILE"`
E113 unused parameter
  the parameter of a `for each` does not occur in the query
  use it, or remove the loop
E114 name is taken
  a point, parameter or feature hides another of the same name
  rename it
E116 feature without a column
  the table has no column for a feature of the model
  rename the column, or declare the domain
E117 unknown measure
  no `measure` declaration has this name
  declare the measure, or use a declared one
E118 unknown decision
  no `decision` declaration has this name
  declare the decision, or use a declared one
E119 unknown outcome
  the decision has no outcome of this name
  use one of its outcomes
E120 decision not named
  the file has several decisions, and the question does not say which
  write `decision(P, DECISION)`
"""
)

TYPES: Final = _entries(
    """
E201 prob of a regressor
  a regressor predicts a value, not a probability
  write `value(P)`
E202 value of a classifier
  a classifier predicts a class, not a value
  write `prob(P)` or `margin(P)`
E204 not linear
  two unknown quantities are multiplied or divided
  multiply by constants only
E205 kinds differ
  the two sides of the comparison are of different kinds
  compare things of one kind
E206 categories have no order
  categories are equal or different
  use `=`, `!=` or `in {..}`
E207 class needed
  the model has more than two classes
  name the class: `margin(P, CLASS)`
E208 class not allowed
  the model has one score
  leave the class out
E209 objective not supported
  the objective is none of the forms of the language
  use one of the documented objectives
E211 probability outside (0, 1)
  the model predicts probabilities strictly between 0 and 1
  use a number between 0 and 1
E212 gap out of range
  a gap lies above 0 and below 0.5; factors are at least 1
  use a number in that range
E213 two points needed
  the constraint relates two points
  name a second point after `find`
E214 classes needed
  the query flips a class that it does not name
  add `from CLASS to CLASS`
E215 likelihood is a product
  likelihoods can only be multiplied, and compared with a number
  write a product of likelihoods
E216 models differ
  the two points live in models whose features differ
  use models over the same features
E217 clauses contradict
  the clauses of the query cannot be used together
  remove one of them
E218 constant comparison
  neither side depends on a point
  compare a quantity of a point
E219 model not supported here
  the constraint has no meaning for this kind of model
  see the language reference
E220 not answered yet
  the compiler knows no exact form of this constraint over cells
  use one of the forms that the message names
E221 several features in the place of one
  the parameter of the `for each` stands for more than one feature here
  use it after `except` or `to`, or loop over single features
E223 share not counted
  shares are counted of constraints on scores, on single features and on what is typical
  leave the other constraints out, or ask for an answer alone
E224 no list of cavities
  to lie in a cavity is asked of a list of them, and there is none of all cavities
  write `limit = 1500`: then the point lies in one of so many
E225 no protected features
  `for each f in protected` asks about the protected features of the model, and nobody has named any
  name them in treesens.toml beside the model, or write `for each f in {sex, age}`
"""
)

DOMAINS: Final = _entries(
    """
E301 empty interval
  the lower end lies above the upper end
  swap the ends
E302 no whole number
  the interval of an integer feature holds no whole number
  widen the interval
E303 value twice
  two categories have the same name or value
  remove one
E304 stored range is empty
  `stored as` maps one interval onto another; both need a width
  give two different ends
E305 open ends cannot be stored
  `stored as` needs finite, closed intervals on both sides
  give finite ends in square brackets
E306 outside the domain
  the value can never be taken
  use a value of the domain
E307 domain declared twice
  the feature has two declarations
  remove one
E308 not one-hot
  a feature of a `onehot` cannot be 0 or 1
  declare it `integer in [0, 1]`
E309 constraints contradict
  no inputs satisfy the constraints, whatever the model says
  remove one of the clashing constraints
E310 category needs a number
  the model has no names for the categories of this feature
  write `NAME = value`
E311 number not storable
  the number type of the model cannot hold the value
  use a value the type can hold
E312 domain without a width
  distances are measured in widths of the domains of the features
  declare a finite domain for the feature
E313 missing without a prediction
  the model predicts nothing for inputs in which this feature is missing
  declare the feature without `or missing`, and leave such rows out of a table that gives the domain
E314 number without a table
  a coefficient of the model multiplies this feature, and the question needs finitely many values of it
  declare the feature `integer in [LOW, HIGH]` or list its values, or train with bins of it
"""
)

DATA: Final = _entries(
    """
E401 rows outside the domain
  some rows hold values that no answer can have; they still count in what is learnt from the data
  widen the domain, or leave such rows out
E402 missing values in the data
  some rows lack a value that no answer can lack; they take no part in what is learnt about that feature
  declare the feature `or missing`, or leave such rows out
E403 whole numbers
  the data, or the model file, has whole numbers only for some features, so answers have too
  declare the feature `real` if fractions can occur
E404 note on a model
  the file leaves open, or the library does, what a reader of the answers should know
  see docs/frontends.md
E405 text in a column without effect
  no tree asks about the column, which holds text or infinite values if features are numbers
  leave the column out if the note is unwanted
E406 columns under the names of features
  the library has changed the names of the columns it was trained on
  rename the columns if the note is unwanted
E408 numbers where the model names categories
  a model stores categories by code, and numbers in a table are read as these; another order of codes means other inputs
  write the names of the categories in the table
E409 features without a domain
  a table has the columns of these features, and nothing says that answers look like its rows
  write `domain from DATA`, or declare the features
"""
)

ANSWERS: Final = _entries(
    """
E501 constraints clash for this model
  no inputs satisfy the constraints together, because of how the model scores them
  relax or remove one of the clashing constraints
E502 disjunction too long to split
  a question is answered case by case if its disjunctions make few cases; this one is searched as a whole, and is still open
  ask with fewer alternatives, one question for each group of them, or give it more time
"""
)

CONSTRUCTS: Final = {str(code): code for found in constructs().values() for code in found.codes}
"""Codes of single constructs, which are defined in their own files."""

CATALOGUE: Final[dict[str, Code]] = SYNTAX | NAMES | TYPES | DOMAINS | DATA | ANSWERS | CONSTRUCTS
