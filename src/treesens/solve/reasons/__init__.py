"""Why a model decides a row as it does: features whose values alone decide its class."""
