"""Writers of solver formats: text that any solver of the kind reads; none of them needs a solver to be written."""
