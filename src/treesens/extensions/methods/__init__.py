"""Methods for questions of special kinds; the methods of the core can answer each such question too."""
