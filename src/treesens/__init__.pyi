from treesens import errors as errors
from treesens import ir as ir
from treesens.extensions import builder
from treesens.extensions.builder.sensitivity import sensitivity as sensitivity
from treesens.extensions.repair.swing_budget import SwingBudget as SwingBudget
from treesens.extensions.studies.python.calls import *
from treesens.extensions.studies.python.rows import Reasons as Reasons
from treesens.extensions.studies.python.rows import Robustness as Robustness
from treesens.extensions.studies.python.rows import Sets as Sets
from treesens.extensions.studies.python.studies import Audit as Audit
from treesens.extensions.studies.python.studies import Count as Count
from treesens.extensions.studies.python.studies import Diff as Diff
from treesens.extensions.studies.python.studies import Gap as Gap
from treesens.extensions.studies.python.studies import Repair as Repair
from treesens.python.api import Answer as Answer
from treesens.python.api import Answers as Answers
from treesens.python.api import check as check
from treesens.python.api import check_text as check_text
from treesens.python.api import explain as explain
from treesens.python.api import info as info
from treesens.python.api import load as load
from treesens.python.questions import session as session
from treesens.report.explain import Explanation as Explanation

query = builder
__version__: str
