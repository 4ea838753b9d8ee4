"""What a statement that a model wrote may hold: functions by name, and the nodes of SQL by class. All else is refused."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Functions that read their arguments and nothing else, and whose result is no larger than a small multiple of them. So no file,
# environment, setting, catalog, sequence or clock; no generator of rows; nothing that repeats a text as often as a number says.
FUNCTIONS = _words(
    """
    abs acos any_value approx_count_distinct arg_max arg_min array_agg asin atan atan2 avg bool_and bool_or cardinality cbrt
    ceil ceiling char_length character_length coalesce concat concat_ws contains corr cos count count_if covar_pop covar_samp
    cume_dist date_diff date_part date_sub date_trunc datediff datepart datetrunc day dayname dayofmonth dayofweek dayofyear
    dense_rank ends_with entropy exp first first_value floor greatest group_concat hour ifnull instr isfinite isinf isnan
    jaccard jaro_similarity jaro_winkler_similarity kurtosis lag last last_day last_value lcase lead least left len length
    levenshtein list list_contains list_distinct list_sort listagg ln log log10 log2 lower ltrim mad max max_by
    md5 mean median microsecond min min_by minute mod mode month monthname nth_value ntile nullif percent_rank pi position pow
    power prefix quantile quantile_cont quantile_disc quarter rank regexp_extract regexp_extract_all regexp_full_match
    regexp_matches regexp_replace replace reverse right round row_number rtrim second sign sin skewness split split_part sqrt
    starts_with stddev stddev_pop stddev_samp str_split strftime string_agg string_split strip_accents strlen strpos strptime
    struct_extract substr substring suffix sum tan translate trim trunc try_strptime ucase unicode upper var_pop var_samp
    variance week weekday weekofyear year
    approx_quantile array_aggregate array_contains array_distinct array_length array_slice array_sort array_unique ascii bit_and
    bit_count bit_or bit_xor century chr damerau_levenshtein date_add datesub days_in_month decade degrees
    element_at epoch even fsum gcd geomean geometric_mean greatest_common_divisor hamming hash histogram isodow
    isoyear json_array_length json_exists json_extract json_extract_string json_keys json_type json_valid kahan_sum
    kurtosis_pop lcm least_common_multiple list_aggregate list_any_value list_append list_avg list_concat list_count list_extract
    list_filter list_first list_has list_has_all list_has_any list_indexof list_intersect list_last list_max  list_median
    list_min list_mode list_position list_prepend list_product list_reverse list_reverse_sort list_select list_slice 
    list_stddev_pop list_stddev_samp list_string_agg list_sum list_transform list_unique list_value list_var_pop list_var_samp
    list_where list_zip make_date make_time make_timestamp map map_contains map_entries map_extract map_from_entries map_keys
    map_values millennium ord product radians regexp_split_to_array regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy roundbankers row sem string_to_array struct_insert struct_pack subtract
    time_bucket timezone to_days to_hours to_minutes to_months to_seconds to_timestamp to_weeks to_years translate
    argmax argmin arbitrary array_has array_has_all array_has_any array_intersect array_position array_reverse
    array_to_string countif epoch_ms flatten fmod if json_value list_apply list_histogram list_kurtosis list_skewness str_split_regex
    string_split_regex typeof unnest url_decode url_encode weighted_avg xor yearweek
    cube grouping grouping_id grouping_sets rollup
    """
)

# sqlglot's classes by name: structure, operators, and the functions above as far as it has classes of their own for them.
NODES = _words(
    """
    Select Union Intersect Except Subquery From Join Where Group Having Order Ordered Limit Offset Distinct With CTE TableAlias
    Table Column Identifier Alias Star Paren Tuple Literal Boolean Null Var Window WindowSpec Qualify Filter WithinGroup
    And Or Not Xor EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ Is In Between Like ILike Escape Exists Any All
    Add Sub Mul Div IntDiv Mod Neg DPipe Concat BitwiseAnd BitwiseOr BitwiseXor
    Case If Cast TryCast DataType DataTypeParam Interval IntervalSpan Bracket Array Struct PropertyEQ Dot Slice Extract
    Cube Rollup GroupingSets IgnoreNulls RespectNulls
    Abs Acos AnyValue ApproxDistinct ArgMax ArgMin ArrayAgg Asin Atan Atan2 Avg LogicalAnd LogicalOr Cbrt Ceil Coalesce ConcatWs
    Contains Corr Cos Count CountIf CovarPop CovarSamp CumeDist DateDiff DateSub DateTrunc TimestampTrunc Day Dayname DayOfMonth
    DayOfWeek DayOfWeekIso DayOfYear DenseRank EndsWith Exp First FirstValue Floor Greatest GroupConcat Hour IsInf IsNan
    JarowinklerSimilarity Kurtosis Lag Last LastDay LastValue Lead Least Left Length Levenshtein List ArrayContains ArrayDistinct
    Ln Log Lower Max MD5 Median Min Minute Mode Month Monthname NthValue Ntile Nullif PercentRank PercentileCont
    PercentileDisc Pi StrPosition Pow Quantile Quarter Rank RegexpExtract RegexpExtractAll RegexpFullMatch RegexpLike
    RegexpILike RegexpReplace Replace Reverse Right Round RowNumber Second Sign Sin Skewness Split SplitPart Sqrt StartsWith Stddev
    StddevPop StddevSamp TimeToStr StrToTime StructExtract Substring Sum Tan Translate Trim Trunc Unicode Upper Variance
    VariancePop Week WeekOfYear Year ToChar TsOrDsToDate Date Timestamp
    Explode Unnest Values Lateral Lambda Transform ArrayFilter Comprehension ToMap Map MapFromEntries ColumnDef Collate SimilarTo Glob
    BitwiseNot BitwiseLeftShift BitwiseRightShift JSONExtract JSONExtractScalar JSONPath JSONPathRoot JSONPathKey JSONPathSubscript
    JSONPathWildcard DateAdd DateFromParts TimestampFromParts Radians Degrees Chr RegrAvgx RegrAvgy
    RegrCount RegrIntercept RegrR2 RegrSlope RegrSxx RegrSxy RegrSyy ArraySize ArraySort ArrayReverse ArrayConcat ArraySum ArraySlice
    ArrayToString Flatten ApproxQuantile BitwiseAndAgg BitwiseOrAgg BitwiseXorAgg TryCast UnixToTime TimeToUnix Ascii
    """
)

# Of UQL's tree: every kind of query and expression but parameters; sources are checked apart.
UQL_NODES = _words(
    """
    Select Union CommonTable TableName Derived Join SelectItem GroupKey OrderKey Option
    Name Position Quoted Number String Null Boolean TypedLiteral Star Unary Binary Like InList InQuery Between IsNull IsDistinct When
    Case TypeName Cast Window Call Try Exists ScalarQuery Quantified ListExpr Subscript Lambda Named TableFunction
    """
)
TABLE_FUNCTIONS = frozenset({"values", "unnest"})  # in FROM: rows written out, or that stand in a list
CLOCKS = _words(  # names that ask DuckDB for the time, or who is connected
    """
    current_date current_time current_timestamp localtime localtimestamp
    current_user session_user current_role current_catalog current_schema
    """
)
OPTIONS = frozenset({"error", "confidence", "recall", "precision", "budget"})
