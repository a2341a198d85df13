"""Progress in a real kernel of Jupyter, and silence elsewhere."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from treesens.extensions.studies.python.study import in_notebook, progress_bar

CELL = """
from tests.extensions.studies.grids import two_classes
from treesens.extensions.studies.python import study as notebook_progress
import treesens as ts

notebook_progress._SECONDS = 0.0
trained = two_classes("xgboost")
found = ts.audit(trained.estimator, trained.frame, gap=0.05, time_limit=1)
"""


def test_a_kernel_shows_how_far_a_study_is() -> None:
    pytest.importorskip("ipykernel")
    from jupyter_client.manager import KernelManager

    manager = KernelManager(kernel_name="python3")
    manager.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        seen: list[dict[str, Any]] = []
        reply = client.execute_interactive(CELL, timeout=120, output_hook=seen.append, stop_on_error=False)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert reply["content"]["status"] == "ok", reply["content"]
    kinds = ("display_data", "update_display_data")
    pages = [m["content"]["data"]["text/html"] for m in seen if m["msg_type"] in kinds]
    assert "auditing: 0 done" in pages[0]
    assert "<progress" in pages[0]
    assert any("auditing: 3 done" in page for page in pages)
    assert pages[-1] == ""


def test_elsewhere_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert not in_notebook()
    with progress_bar("auditing", 3) as advance:
        advance(None)
    assert capsys.readouterr() == ("", "")
