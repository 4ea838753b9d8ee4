"""What functions of DuckDB ask of a text among their arguments: a number, a condition, what is asked of the call itself."""

from __future__ import annotations

from dataclasses import replace

from uql.compiler.bind.uses import (
    ANY,
    ARGUMENT,
    CONDITION,
    LIST,
    NUMBER,
    PRESENCE,
    PRINTED,
    TEXT,
    WORDS,
    Place,
    Want,
    is_numeral,
    is_time,
)
from uql.compiler.syntax import Call, Case, Expr, Number, String, Unary, When

_NUMBER_AGGREGATES = (
    "sum avg mean min max median mad stddev stddev_pop stddev_samp variance var_pop var_samp quantile quantile_cont"
    " quantile_disc approx_quantile product fsum favg kahan_sum sumkahan skewness kurtosis kurtosis_pop sum_no_overflow"
    " corr covar_pop covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy"
)
NUMBER_AGGREGATES = frozenset(_NUMBER_AGGREGATES.split())
_NUMBER_FUNCTIONS = "abs round floor ceil ceiling trunc sqrt cbrt ln log log2 log10 exp power pow sign mod sin cos tan"
NUMBER_FUNCTIONS = frozenset(_NUMBER_FUNCTIONS.split())
# the second argument says which row: a number
ORDERED_BY = frozenset(["arg_max", "arg_min", "argmax", "argmin", "max_by", "min_by", "arg_max_null", "arg_min_null"])
PASSED_ON = frozenset(
    ["coalesce", "ifnull", "nullif", "greatest", "least", "any_value", "first", "last", "arg_min", "arg_max"]
)
_TEXT_FUNCTIONS = (
    "ascii bit_length char_length character_length contains ends_with initcap instr lcase left length levenshtein lower lpad ltrim"
    " md5 position prefix regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace replace reverse"
    " right rpad rtrim split starts_with string_split strip_accents strlen strpos strptime substr substring suffix translate trim"
    " ucase unicode upper"
)
TEXT_FUNCTIONS = frozenset(_TEXT_FUNCTIONS.split())  # their first argument is not a number
CONCATENATIONS = frozenset(("concat", "concat_ws"))
LEAST_OR_MOST = frozenset(("min", "max"))
COUNTS_IF = frozenset(("count_if", "countif"))
CONDITION_AGGREGATES = frozenset(("bool_and", "bool_or")) | COUNTS_IF

LISTS = ("unnest", "flatten", "list_", "array_")  # how the functions of lists begin
OF_ITEMS = frozenset(["list_value", "list_pack", "array_value"])  # these make lists
OF_FIELDS = frozenset(["row", "struct_pack"])
BOTH_LISTS = frozenset(
    f"{kind}_{name}" for kind in ("list", "array") for name in ("concat", "cat", "has_any", "has_all", "intersect")
)


def asked_of(call: Call, aggregate: bool, want: Want) -> tuple[Want, Want]:
    """What a call asks of a text as its first argument, and of one among the others; `want` is asked of the call.

    Args:
        aggregate: the call is one of an aggregate function.
        want: of the call.
    Returns: of the first argument, of the others.
    """
    name = call.name
    if name in CONDITION_AGGREGATES or (name == "if" and call.args):
        first = CONDITION
    elif aggregate and name in LEAST_OR_MOST:
        first = _of_values(want)
    elif (aggregate and name in NUMBER_AGGREGATES) or name in NUMBER_FUNCTIONS:
        first = NUMBER
    elif name in CONCATENATIONS:
        return PRINTED, PRINTED
    elif name in TEXT_FUNCTIONS or (name in PASSED_ON and any(map(_is_word, call.args))):
        first = TEXT
    elif name in PASSED_ON:
        beside_number = name not in ORDERED_BY and any(isinstance(arg, Number) for arg in call.args)
        first = NUMBER if beside_number else want
    elif name == "count" and not call.distinct:
        first = PRESENCE
    elif aggregate or name in OF_FIELDS:
        first = ANY
    elif name.startswith(LISTS) and name not in OF_ITEMS:
        return LIST, LIST if name in BOTH_LISTS else WORDS
    else:
        first = ARGUMENT
    if name == "if":
        return first, want
    return first, NUMBER if name in ORDERED_BY | LEAST_OR_MOST else first


def _is_word(expr: Expr) -> bool:
    """Is it a string that is not a number?"""
    return isinstance(expr, String) and not is_numeral(expr.value)


def _of_values(want: Want) -> Want:
    """What MIN and MAX ask of the values of which they give one: what their place compares it with, a time, a condition; anything
    where it is printed; else a number."""
    if want.type == "BOOLEAN" or is_time(want.type):
        return want
    if want is PRINTED or want == Want(Place.CAST, "VARCHAR"):
        return ANY
    compared = (
        want.place is Place.COMPARE and want is not WORDS and want is not ARGUMENT
    )  # any other function may only print it
    if compared and want.type == "VARCHAR" and not (want.labels and all(map(is_numeral, want.labels))):
        return WORDS
    return NUMBER


def counted(call: Call) -> Call:
    """An aggregate count_if(x) as the sum of 1 and 0, which can be estimated, and is NULL where each x is; any other as it is."""
    if call.name not in COUNTS_IF or call.distinct or len(call.args) != 1:
        return call
    condition = call.args[0]
    branches = (When(condition, Number("1")), When(Unary("NOT", condition, span=call.span), Number("0")))
    return replace(call, name="sum", args=(Case(None, branches, None, span=call.span),))
