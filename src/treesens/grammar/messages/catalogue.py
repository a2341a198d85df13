"""The catalogue of numbered messages about `.sens` files, with each code's cause and remedy.

S0xx: the text does not parse (grammar). E1xx: a name is unknown. E2xx: a constraint or objective is invalid for its model.
E3xx: a domain is invalid. E4xx: data do not fit their domains (warnings). E5xx: explanations of answers (notes). A code never
changes its meaning, and the number of a removed code is not reused.
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
  the text cannot continue the declaration at this position
  write one of the words listed
S002 unreadable character
  the character has no meaning outside names and strings
  remove it, or put the name in backquotes
S003 name not closed
  a backquote opens a name, but the line ends before the closing backquote
  close the name with a backquote on the same line
S004 string not closed
  a double quote opens a string, but the line ends before the closing quote
  close the string with a double quote on the same line
S005 not a number
  the text starts like a number, but continues with letters or dots
  correct the number, or put the name in backquotes
S006 number too large
  the number has more than 400 digits, or an exponent beyond 400
  use a smaller number, or `inf` for an open end
S007 nested too deeply
  brackets, operators or loops are nested more than 64 deep
  split the constraint into several
S008 not a whole number
  a row, a width and a number of answers are whole numbers
  write a whole number that is not negative
S010 empty file
  the file contains no declaration
  write at least one `model` and one `query`
S011 unknown declaration
  a declaration starts with include, let, param, define, model, data, feature, onehot, domain, measure, decision, query, for
  correct the first word of the line
S012 missing colon
  a colon follows the name of a feature or query, and the head of a loop
  write `:` after the name
S013 missing such that
  `such that` separates the points of a query from its constraints, which only a query with an objective may omit
  write `such that` after the points
S014 empty query
  a query needs a question
  write `find`, `sensitive`, `count` or `explain`
S015 misspelt word
  the word is not allowed here, but similar to an allowed word
  correct the spelling
S016 word of the language as a name
  the word has a special meaning here
  put it in backquotes
S017 name needs backquotes
  plain names consist of letters, digits and `_`, and do not start with a digit
  put the name in backquotes
S018 unfinished
  an operator or word lacks an operand
  write what belongs after it
S019 missing comma
  the members of a list are separated by commas
  write `,` between them
S020 bracket not closed
  an opening bracket is never closed
  close it
S021 bracket not opened
  a closing bracket was never opened
  remove it, or add the opening bracket
S022 empty braces
  a set has at least one member
  write the members, or leave the clause out
S023 path is not a string
  paths are written in double quotes
  write the path in double quotes
S024 declaration within a line
  every declaration starts on a new line
  start a new line before it
S030 operator of another language
  the language writes this operator differently
  use the suggested operator
S031 chained comparison
  one constraint compares two things
  write two comparisons joined by `and`, or `in [lo, hi]`
S032 missing comparison
  a constraint needs a comparison
  add a comparison such as `>= 0.5`
S033 name without a point
  features belong to a point; a name on its own is a value or a point, not a feature
  write `a.NAME` for the feature of point `a`
S034 points compared
  points have no order; they can only be equal, possibly except for some features
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
  the clause may appear only once
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
  `expect share` needs a query that computes the share
  add `share of MEASURE`
S055 file not included
  a text without a path, or a file that includes itself, cannot include the file
  remove the `include`, or write the text to a file
S056 not a constant number
  a named number is computed from numbers, and has a decimal form
  write numbers, names of numbers, `+`, `-`, `*` and `/`
S060 not UTF-8
  the file contains bytes that are not UTF-8 text
  save the file as UTF-8
S061 file too large
  questions are short texts; a file of more than 10 MB is not a question
  check the path
S062 not a text file
  the file contains NUL bytes
  check the path, and save the file as UTF-8 text
S063 file cannot be read
  the file does not exist or may not be read
  check the path and its permissions
S064 no file of questions
  the text is a module of the intermediate representation, and this command needs questions
  pass it to `check`, `compare`, `emit` or `opt`
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
  the file has several models, and the query names none of them
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
  the file has several decisions, and the question names none of them
  write `decision(P, DECISION)`
E121 unknown number
  no `let`, `param`, `for each` or parameter of a definition has this name
  declare it with `let NAME = NUMBER`
E122 defined by itself
  a number or a constraint is used in its own definition
  remove the recursion
E123 number named like a value
  the name of a number is also the name of a class, a category or a feature that is possible here
  write a class or category in double quotes, or rename the number
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
  compare quantities of the same kind
E206 categories have no order
  categories are equal or different
  use `=`, `!=` or `in {..}`
E207 class needed
  the model has more than two classes
  name the class: `margin(P, CLASS)`
E208 class not allowed
  the model has one score
  omit the class
E209 objective not supported
  the objective has none of the supported forms
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
  the query does not name the classes to flip
  add `from CLASS to CLASS`
E215 likelihood is a product
  likelihoods can only be multiplied, and compared with a number
  write a product of likelihoods
E216 models differ
  the two points belong to models with different features
  use models over the same features
E217 clauses contradict
  the clauses of the query cannot be used together
  remove one of them
E218 constant comparison
  neither side depends on a point
  use a quantity of a point on one side
E219 model not supported here
  the constraint is undefined for this kind of model
  see the language reference
E220 not answered yet
  the compiler has no exact form of this constraint over cells
  use one of the forms that the message names
E221 several features in the place of one
  the parameter of the `for each` represents more than one feature here
  use it after `except` or `to`, or loop over single features
E223 share not counted
  shares support constraints on scores, on single features and on typicality
  remove the other constraints, or remove the share
E224 no list of cavities
  membership in a cavity needs a list of cavities, which `limit = all` does not produce
  write `limit = 1500`: the point then lies in one of the first 1500 cavities
E225 no protected features
  `for each f in protected` uses the model's protected features, but none are declared
  name them in treesens.toml next to the model, or write `for each f in {sex, age}`
"""
)

DOMAINS: Final = _entries(
    """
E301 empty interval
  the lower end is above the upper end
  swap the ends
E302 no whole number
  the interval of an integer feature contains no whole number
  widen the interval
E303 value twice
  two categories have the same name or value
  remove one
E304 stored range is empty
  `stored as` maps one interval to another; both need two different ends
  give two different ends
E305 open ends cannot be stored
  `stored as` needs finite, closed intervals on both sides
  give finite ends in square brackets
E306 outside the domain
  the feature can never have this value
  use a value of the domain
E307 domain declared twice
  the feature has two declarations
  remove one
E308 not one-hot
  the domain of a feature in a `onehot` does not contain both 0 and 1
  declare it `integer in [0, 1]`
E309 constraints contradict
  no inputs satisfy the constraints, whatever the model is
  remove one of the clashing constraints
E310 category needs a number
  the model has no names for the categories of this feature
  write `NAME = value`
E311 number not storable
  the number type of the model cannot represent the value
  use a value that the type can represent
E312 domain without a width
  distances are measured in widths of the domains of the features
  declare a finite domain for the feature
E313 missing without a prediction
  the model has no prediction for inputs in which this feature is missing
  declare the feature without `or missing`, and remove such rows from a table that defines the domain
E314 number without a table
  a coefficient of the model multiplies this feature, and the question needs finitely many values of it
  declare the feature `integer in [LOW, HIGH]` or list its values, or train with bins of it
"""
)

DATA: Final = _entries(
    """
E401 rows outside the domain
  some rows have values that no answer can have; these rows still count when anything is learnt from the data
  widen the domain, or remove such rows
E402 missing values in the data
  some rows lack a value that every answer has; these rows are ignored when anything is learnt about that feature
  declare the feature `or missing`, or remove such rows
E403 whole numbers
  the data or the model file contains only whole numbers for some features, so answers do, too
  declare the feature `real` if fractions can occur
E404 note on a model
  the file or the library leaves a point open that readers of the answers should know
  see docs/frontends.md
E405 text in a column without effect
  no tree splits on the column, which contains text or infinite values although features are numbers
  remove the column to avoid this note
E406 columns under the names of features
  the library has changed the names of the training columns
  rename the columns to avoid this note
E408 numbers where the model names categories
  the model stores categories as codes, and numbers in a table are read as codes; another coding means other inputs
  write the names of the categories in the table
E409 features without a domain
  a table has columns for these features, but no declaration makes answers look like its rows
  write `domain from DATA`, or declare the features
"""
)

ANSWERS: Final = _entries(
    """
E501 constraints clash for this model
  no inputs satisfy the constraints together, because of how the model scores them
  relax or remove one of the clashing constraints
E502 disjunction too long to split
  a question is split into cases if its disjunctions yield few; this question was searched as a whole, and is still open
  use fewer alternatives, ask one question per group of alternatives, or raise the time limit
"""
)

CONSTRUCTS: Final = {str(code): code for found in constructs().values() for code in found.codes}
"""Codes of single constructs, defined in the constructs' own files."""

CATALOGUE: Final[dict[str, Code]] = SYNTAX | NAMES | TYPES | DOMAINS | DATA | ANSWERS | CONSTRUCTS
