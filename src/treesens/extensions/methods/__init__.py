"""Methods that close questions of special kinds; each such question has an answer by the methods of the core, too."""
