"""What functions of DuckDB ask of a text among their arguments: a number, a condition, what is asked of the call itself."""

from __future__ import annotations

from dataclasses import replace

from uql.compiler.syntax import Binary, Call, Star

_NUMBER_AGGREGATES = (
    "sum avg mean min max median mad stddev stddev_pop stddev_samp variance var_pop var_samp quantile quantile_cont"
    " quantile_disc approx_quantile product fsum favg kahan_sum sumkahan skewness kurtosis kurtosis_pop sum_no_overflow"
    " corr covar_pop covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy"
)
NUMBER_AGGREGATES = frozenset(_NUMBER_AGGREGATES.split())
NUMBER_FUNCTIONS = frozenset(
    [
        "abs",
        "round",
        "floor",
        "ceil",
        "ceiling",
        "trunc",
        "sqrt",
        "cbrt",
        "ln",
        "log",
        "log2",
        "log10",
        "exp",
        "power",
        "pow",
        "sign",
        "mod",
        "sin",
        "cos",
        "tan",
    ]
)
ORDERED_BY = frozenset(
    ["arg_max", "arg_min", "argmax", "argmin", "max_by", "min_by", "arg_max_null", "arg_min_null"]
)  # the second argument says which row: a number
PASSED_ON = frozenset(
    ["coalesce", "ifnull", "nullif", "greatest", "least", "any_value", "first", "last", "arg_min", "arg_max"]
)
COUNTS_IF = frozenset(("count_if", "countif"))
CONDITION_AGGREGATES = frozenset(("bool_and", "bool_or")) | COUNTS_IF


def counted(call: Call) -> Call:
    """An aggregate count_if(x) as COUNT(*) FILTER (WHERE x), which can be estimated; any other as it is."""
    if call.name not in COUNTS_IF or call.distinct or len(call.args) != 1:
        return call
    condition = call.args[0]
    if call.filter is not None:
        condition = Binary(op="AND", left=call.filter, right=condition, span=call.span)
    return replace(call, name="count", args=(Star(span=call.span),), filter=condition)
