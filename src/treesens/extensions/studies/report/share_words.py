"""Shares in the records of studies in words."""

from __future__ import annotations

from typing import Any

from treesens.extensions.studies.largest import Status, swing_of_record
from treesens.extensions.studies.report.largest_words import largest_words
from treesens.report.share_words import estimated, interval, percent

MEANINGS = {
    "uniform": "of all inputs of the domain, by length of ranges and number of values",
    "cells": "of the cells that the model tells apart",
    "marginals": "of inputs that are drawn feature by feature from the columns of the table",
    "chow-liu": "of inputs that are drawn from a Chow-Liu tree of the table",
    "rows": "of the rows of the table",
}


def rarity(share: dict[str, Any]) -> str:
    """How rare something is: the estimate, or what is proved."""
    if share["estimate"] is not None:
        return f"about {percent(share['estimate']['value'])} of inputs"
    return f"{interval(share)} of inputs"


def who_of(share: dict[str, Any]) -> list[str]:
    """Who is concerned, a sentence for every statement that tells those concerned from all."""
    parts = [(100 * one["concerned"], one["words"].replace("`", ""), 100 * one["all"]) for one in share["who"]]
    return [
        f"{part:.0f} % of those concerned have {words} ({everybody:.0f} % of all)" for part, words, everybody in parts
    ]


def typical_of(record: dict[str, Any]) -> str:
    """What is left of a finding among typical inputs, with their largest swing; empty if nobody asked."""
    part = record.get("typical")
    if part is None:
        return ""
    known = swing_of_record(part)
    shown = "" if known.status is Status.UNKNOWN else f", largest swing {largest_words(known)}"
    return f"{part['verdict']}{shown}"


def share_of(record: dict[str, Any]) -> str:
    """What is known of the share of a record of the audit, the estimate if there is one; empty if nobody asked."""
    share = record.get("share")
    return "" if share is None else estimated(share) or interval(share)
