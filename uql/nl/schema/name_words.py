"""The words of a table's or column's name: written apart, short forms in full, without its kind of table; singulars and stems."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

Near = Callable[[str, Sequence[str]], Sequence[float]]  # a text and others → how alike they are
_WORD = re.compile(r"[^\W_]+")
# dim_customer, fact_sales and tblOrders are customers, sales and orders.
_KIND = re.compile(r"\b(?:tbl_?(?=[A-Z])|(?:tbl|dim|fact|fct|stg|vw|lkp)_)|_(?:tbl|dim|fact|fct)\b")
_APART = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SQUARE = re.compile(r"\b(?i:sq)(?:_| |(?=[A-Z]))?(?i:m|ft|km|mi)\b")  # sqm, sq_ft, SqM
_SHORT_WORDS = """
acct=account addr=address amt=amount appt=appointment avg=average cnt=count csat=satisfaction ctry=country curr=currency cust=customer
dept=department dest=destination dob=birth_date dt=date emp=employee fname=first_name freq=frequency hrs=hours inv=invoice
lang=language lname=last_name loc=location mfr=manufacturer mgr=manager msg=message nbr=number nm=name num=number org=organization
pop=population pos=position prod=product pts=points qty=quantity sal=salary subj=subject tech=technician tel=telephone
temp=temperature trx=transaction txn=transaction vol=volume wk=week wt=weight yr=year yrs=years
"""
_SHORT = {short: full.replace("_", " ") for short, _, full in (pair.partition("=") for pair in _SHORT_WORDS.split())}
_SHORT_FORM = re.compile(rf"\b(?:{'|'.join(_SHORT)})\b", re.IGNORECASE)
# Plurals that no rule of endings makes.
_PLURAL_WORDS = (
    "children=child women=woman men=man people=person feet=foot teeth=tooth mice=mouse geese=goose wives=wife knives=knife shelves=shelf "
    "thieves=thief halves=half"
)
_PLURALS = dict(pair.split("=") for pair in _PLURAL_WORDS.split())


def in_common(text: str, others: Sequence[str]) -> list[float]:
    """How alike a text and others are, in [0, 1]: the share of equal words, where nothing else tells.

    >>> in_common("Which shops are open?", ["which shops are closed", "open!", ""])
    [0.6, 0.25, 0.0]
    """
    mine, *theirs = ({*_WORD.findall(each.lower())} for each in (text, *others))
    return [len(mine & each) / max(1, len(mine | each)) for each in theirs]


def spaced(name: str) -> str:
    """A name, or a text with names, in words.

    >>> spaced("birthDate_ofPlayer"), spaced("tblOrders"), spaced("fact_sales"), spaced("emp_dob"), spaced("sq_ft")
    ('birth Date of Player', 'Orders', 'sales', 'employee birth date', 'area')
    """
    apart = _APART.sub(" ", _SQUARE.sub("area", _KIND.sub("", name))).replace("_", " ")
    return in_full(apart)


def in_full(text: str) -> str:
    """A text with its short forms in full.

    >>> in_full("avg qty per dept")
    'average quantity per department'
    """
    return _SHORT_FORM.sub(lambda found: _SHORT[found[0].lower()], text)


def stem(word: str) -> str:
    """A word without its ending, roughly.

    >>> [stem(word) for word in ("notes", "prices", "boxes", "cities", "seen", "joined", "children", "ratings")]
    ['note', 'price', 'box', 'city', 'seen', 'join', 'child', 'rat']
    """
    word = _one(word)
    return next((word[: -len(end)] for end in ("ed", "ing") if word.endswith(end) and len(word) - len(end) >= 3), word)


def singular(name: str) -> str:
    """A name without the plural of its last word.

    >>> [singular(name) for name in ("order_items", "companies", "people", "glass", "boxes", "bookings")]
    ['order_item', 'company', 'person', 'glass', 'box', 'booking']
    """
    before, line, last = name.rpartition("_")
    return f"{before}{line}{_one(last)}"


def _one(word: str) -> str:
    """A word without its plural."""
    if word in _PLURALS or len(word) < 4 or word.endswith("ss"):
        return _PLURALS.get(word, word)
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 5 else word[:-1]
    return word[:-2] if word.endswith(("sses", "xes", "ches", "shes")) else word.removesuffix("s")
