"""The paper's illustrative example for the gallery: two trees, and the program that asks whether `f4` alone changes the class.

The trees are those of the paper's figure, with numbers in place of its letters. The model is written as XGBoost writes it, and
the program by `treesens emit`, while the page is built.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

NAMES = ("f4", "f7", "f9")
C1, C2, C3, C4 = 0.5, 0.5, 0.75, 0.25
FIRST = ("f7", C1, ("f9", C3, 1.0, -0.5), ("f4", C2, 1.5, -1.0))
SECOND = ("f7", C1, ("f9", C3, 0.5, -1.5), ("f9", C4, 0.25, -0.75))
"""A feature, a threshold, what follows where the value is below it, and what follows elsewhere; or a leaf."""
QUESTION = """model m from "two_trees.json"
feature f4: real in [0, 1]
feature f7: real in [0, 1]
feature f9: real in [0, 1]

query f4_alone:
  sensitive m to f4 margin 0.25
"""


def arrays_of(tree: Any) -> dict[str, list[Any]]:
    """The nodes of a tree as XGBoost keeps them, children after their parents."""
    kinds = ("left_children", "right_children", "split_indices", "split_conditions", "parents")
    found: dict[str, list[Any]] = {kind: [] for kind in kinds}
    waiting = [(tree, 2**31 - 1)]
    while waiting:
        node, parent = waiting.pop(0)
        place = len(found["parents"])
        inner = isinstance(node, tuple)
        found["parents"].append(parent)
        found["split_indices"].append(NAMES.index(node[0]) if inner else 0)
        found["split_conditions"].append(node[1] if inner else node)
        after = place + len(waiting) + 1
        found["left_children"].append(after if inner else -1)
        found["right_children"].append(after + 1 if inner else -1)
        waiting += [(child, place) for child in node[2:]] if inner else []
    return found


def write_model(path: Path) -> None:
    """The model in XGBoost's format: the frame of a trained model, with the two trees in it."""
    import numpy as np
    import xgboost as xgb

    rows = np.random.default_rng(0).random((20, 3)).astype(np.float32)
    data = xgb.DMatrix(rows, rows[:, 0] > 0.5, feature_names=list(NAMES))
    options = {"objective": "binary:logistic", "max_depth": 1, "base_score": 0.5, "nthread": 1}
    document = json.loads(xgb.train(options, data, 2).save_raw("json"))
    model = document["learner"]["gradient_booster"]["model"]
    for tree, nested in zip(model["trees"], (FIRST, SECOND), strict=True):
        arrays = arrays_of(nested)
        count = len(arrays["parents"])
        tree.update(arrays)
        tree.update({"default_left": [0] * count, "split_type": [0] * count, "base_weights": [0.0] * count})
        tree.update({"loss_changes": [0.0] * count, "sum_hessian": [1.0] * count})
        tree["tree_param"]["num_nodes"] = str(count)
    path.write_text(json.dumps(document))


def program(folder: Path) -> str:
    """The linear program of the question, as `treesens emit` writes it."""
    write_model(folder / "two_trees.json")
    (folder / "two_trees.sens").write_text(QUESTION)
    target = folder / "two_trees.lp"
    options = ["--to", "lp", "--pipeline", "ensense", "--output", str(target)]
    subprocess.run([sys.executable, "-m", "treesens", "emit", str(folder / "two_trees.sens"), *options], check=True)
    return target.read_text()


def section(text: str) -> str:
    """What the gallery says of it."""
    return (
        "\n## The linear program of two trees\n\n"
        "The paper's illustrative example: the first tree asks for `f7`, `f9` and `f4`, the second one for `f7` and `f9`.\n"
        "Only the first one sees what varies. `treesens emit two_trees.sens --to lp -p ensense` writes this program:\n\n"
        f"```sens\n{QUESTION}```\n\n```text\n{text.strip()}\n```\n"
    )


def main() -> None:
    folder = Path(sys.argv[1])
    (folder / "two_trees.md").write_text(section(program(folder)), "utf-8")


if __name__ == "__main__":
    main()
