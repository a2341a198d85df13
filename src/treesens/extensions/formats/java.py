"""The Java virtual machine of this process. A process has at most one, so the libraries of several formats share it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from treesens.errors import ModelError


def java_with(jars: Iterable[Path]) -> Any:
    """Add archives to the class path of the Java virtual machine, start it if necessary, and return JPype.

    Raises ImportError without JPype, and ModelError if Java does not start.
    """
    import jpype

    for jar in jars:
        jpype.addClassPath(str(jar))
    if not jpype.isJVMStarted():
        try:
            jpype.startJVM(convertStrings=False)
        except (OSError, jpype.JVMNotFoundException) as error:
            raise ModelError(f"Java does not start: {error}", remedy="install Java, or use replay=emulated") from None
    # Libraries load services such as XML parsers through the class loader of the thread.
    own = jpype.JClass("org.jpype.JPypeContext").getInstance().getClassLoader()
    jpype.JClass("java.lang.Thread").currentThread().setContextClassLoader(own)
    return jpype
