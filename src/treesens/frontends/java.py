"""The Java machine of this process, of which there can be one alone: libraries of several formats share it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from treesens.errors import ModelError


def java_with(jars: Iterable[Path]) -> Any:
    """JPype with the classes of these archives, whether its machine runs already or not.

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
    # What a library looks up by name, such as a parser of XML, is searched where this thread says.
    own = jpype.JClass("org.jpype.JPypeContext").getInstance().getClassLoader()
    jpype.JClass("java.lang.Thread").currentThread().setContextClassLoader(own)
    return jpype
