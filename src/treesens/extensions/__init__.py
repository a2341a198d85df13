"""The extensions of the compiler's core; each registers in `treesens/builtin.py`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # The type checker compares each service (`builtin.SERVICES`) with the protocols of the core's code that calls it.
    from treesens.binder import file as _file
    from treesens.binder import scope as _scope
    from treesens.binder import shares as _binder
    from treesens.binder import typicality as _typicality
    from treesens.commands import check as _check
    from treesens.compiler.model import numbers as _open
    from treesens.extensions.answers import service as _answers
    from treesens.extensions.certify import service as _certificates
    from treesens.extensions.formats.numbers import service as _numbers
    from treesens.extensions.formats.sklearn import service as _compositions
    from treesens.extensions.measure import service as _shares
    from treesens.extensions.sweeps import service as _parts
    from treesens.frontends.sklearn import frontend as _sklearn
    from treesens.frontends.xgboost import model as _xgboost
    from treesens.solve import question as _question

    _in_numbers: tuple[_scope.Numbers, _open.Numbers, _xgboost.LinearBoosters]
    _in_numbers = (_numbers, _numbers, _numbers)
    _typical: _typicality.TypicalScores = _shares
    _rows: tuple[_question.Answers, _file.Explained] = (_answers, _answers)
    _services: tuple[_question.Certificates, _question.Shares, _binder.Shares, _check.Processes, _sklearn.Compositions]
    _services = (_certificates, _shares, _shares, _parts, _compositions)
