"""The compiler: from typed questions to constraint modules, and from solutions to answers."""
