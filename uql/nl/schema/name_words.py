"""The words of a table's or column's name: written apart, short forms in full, without what only says what kind of table it is."""

from __future__ import annotations

import re

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
_LETTER_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


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


def snake(name: str) -> str:
    """A name in lower case with a line between its words.

    >>> snake("companyName"), snake("order_id"), snake("OrderID")
    ('company_name', 'order_id', 'order_id')
    """
    return _LETTER_CASE.sub("_", name).lower()
