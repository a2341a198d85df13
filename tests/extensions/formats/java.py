"""Models with the libraries that score them in Java, which judge the readers of H2O, PMML and Spark.

A process has at most one Java virtual machine, so the libraries of several formats share it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from treesens.errors import ModelError
from treesens.frontends.base import LoadedModel


def in_java(model: LoadedModel) -> LoadedModel:
    """The model with the margins, leaves and predictions of its library; one of another format as it is."""
    if model.frontend not in ("h2o", "pmml", "spark"):
        return model
    library = import_module(f"tests.extensions.formats.java_{model.frontend}").library_of(model.ensemble)
    return replace(
        model, margins=library.margins, predicts=library.predicts, leaf_ids=getattr(library, "leaf_ids", None)
    )


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
            raise ModelError(f"Java does not start: {error}") from None
    # Libraries load services such as XML parsers through the class loader of the thread.
    own = jpype.JClass("org.jpype.JPypeContext").getInstance().getClassLoader()
    jpype.JClass("java.lang.Thread").currentThread().setContextClassLoader(own)
    return jpype
