"""Every error code: its cause, an example, and its cure. docs/errors.md is made from this table (`python docs/make_errors.py`).

A test compares the codes with those that the source raises, and runs each statement.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """What one code says.

    Args:
        cause: why the error is raised, one or two sentences.
        cure: what to do about it.
        statement: one or more statements that raise it, over the tables that docs/errors.md names.
        situation: an example in words, where no statement alone raises it.
    """

    cause: str
    cure: str
    statement: str = ""
    situation: str = ""


ERROR_CODES: dict[str, ErrorCode] = {
    # ------------------------------------------------------------------------------------------------------- syntax
    "UQL100": ErrorCode(
        "The text is neither a UQL statement nor a statement that DuckDB accepts. The message says what was "
        "expected at the caret.",
        "Write what the help line suggests. The grammar is in grammar.md.",
        statement="SELECT FROM reviews WHERE",
    ),
    "UQL101": ErrorCode(
        "A double-quoted text is one slip away from the name of a visible column, so it is probably a misspelt column.",
        'Write the column name as it is spelt. If the text is meant for the model, write `PROMPT "…"`.',
        statement='SELECT "boddy" FROM reviews',
    ),
    "UQL102": ErrorCode(
        "A warning, not an error: the statement runs, but its reading is often not the one that was meant.",
        "Write the form that the warning shows; `EXPLAIN` prints how each text is read.",
        statement='SELECT COUNT("the review is positive") FROM reviews',
    ),
    "UQL103": ErrorCode(
        "Expressions or sub-queries are nested more deeply than the parser accepts.",
        "Split the statement: `WITH name AS (…)`, a list after IN, or a table made by TO.",
        situation="An expression inside several hundred pairs of parentheses, as query generators make them.",
    ),
    "UQL104": ErrorCode(
        "A clause or an option of WITH (…) is given twice.",
        "Write one clause that says both, for example `WHERE a AND b`.",
        statement="SELECT film FROM reviews WHERE stars > 3 WHERE stars < 5",
    ),
    "UQL105": ErrorCode(
        "A setting does not exist, or its value is not allowed.",
        "Use a name and a value from settings.md. `uql config show` prints where each value comes from.",
        statement="SET uql.bugdet = 64",
    ),
    "UQL106": ErrorCode(
        "A clause stands in a place where it may not stand.",
        "Move the clause to where the help line says; WITH (…) comes last.",
        statement="SELECT film FROM reviews WITH (budget = 64) LIMIT 3",
    ),
    "UQL107": ErrorCode(
        "The text cannot be split into tokens: a quote is not closed, or a character is not part of the language.",
        "Close the quote, or remove the character at the caret.",
        statement="SELECT 'film FROM reviews",
    ),
    # --------------------------------------------------------------------------------------------- names and types
    "UQL200": ErrorCode(
        "An argument of a method of the Python interface is not one expression, or not of the kind that it takes.",
        'Pass each expression as an argument of its own; `uql.sem` takes a text, as in `uql.sem("the customer is '
        'angry")`.',
        situation='`con.table("reviews").select("film; stars")`',
    ),
    "UQL201": ErrorCode(
        "No table, view or data frame has that name.",
        "Use a name from the help line, give the path of a file in single quotes, or register the table first.",
        statement="SELECT * FROM review",
    ),
    "UQL202": ErrorCode(
        "No table of the query has a column of that name.",
        "Use a column from the help line.",
        statement="SELECT COUNT(*) FROM reviews WHERE star > 3",
    ),
    "UQL203": ErrorCode(
        "The statement would create a table, view or file under a name that is taken.",
        "Choose another name, or write CREATE OR REPLACE.",
        statement="SELECT film FROM reviews TO films",
    ),
    "UQL204": ErrorCode(
        "A name is ambiguous: a column of several tables, or the same alias twice.",
        "Qualify the column with its table, or give each table its own alias.",
        statement="SELECT id FROM reviews AS a JOIN reviews AS b ON a.film = b.film",
    ),
    "UQL205": ErrorCode(
        "A text has a hole `{…}` that names no column, or asks for a type that an answer cannot have.",
        "Name a column in the hole; write `{{` and `}}` for braces. The help line lists the types.",
        statement='SELECT film FROM reviews WHERE "{story} is a sad story"',
    ),
    "UQL206": ErrorCode(
        "A text stands where its reading does not fit: a string where a condition or a number is needed, or an "
        "answer that is not BOOLEAN used as a condition.",
        'Write `PROMPT "…"` to ask the model, single quotes for a string, or a cast such as `"…"::DOUBLE`.',
        statement='SELECT film FROM reviews WHERE stars > "the mood of the review"',
    ),
    "UQL207": ErrorCode(
        "The model has nothing to read for this text: the query has no FROM, no column of text, or the column is "
        "private.",
        'Name the columns with `"…" USING (column)`. A column whose comment says private is never sent to a model.',
        statement='SELECT "the mood"',
    ),
    "UQL208": ErrorCode(
        "A number that a clause needs is missing or out of range: a position in ORDER BY or GROUP BY, LIMIT, "
        "OFFSET, INTO.",
        "Write a number in the range that the help line gives.",
        statement="SELECT film FROM reviews ORDER BY 7",
    ),
    "UQL209": ErrorCode(
        "There is no such function, or its arguments have the wrong types.",
        "Use a function that DuckDB has, or ask the model with a text in double quotes.",
        statement="SELECT summary(body) FROM reviews",
    ),
    "UQL210": ErrorCode(
        "A parameter has no value, a value has no parameter, or a Python type has no counterpart in DuckDB.",
        'Pass each `$name` of the statement: `con.uql("… $least", least=3)`.',
        statement="SELECT film FROM reviews WHERE stars > $least",
    ),
    "UQL211": ErrorCode(
        "The numbers of columns do not match, in UNION, INTERSECT, EXCEPT, VALUES, a list of column names or a "
        "sub-query used as a value.",
        "Select the same number of columns on both sides; a sub-query used as a value has one column.",
        statement="SELECT film, stars FROM reviews UNION SELECT title FROM films",
    ),
    "UQL212": ErrorCode(
        "A valid piece of syntax stands in a query where it has no meaning.",
        "Write what the help line suggests.",
        statement="SELECT *",
    ),
    "UQL213": ErrorCode(
        "Parameters are passed as a list and not by name, or the query is too deeply nested to be bound.",
        'Write `$name` and pass `con.uql("SELECT $least", least=3)`; split a deep query with `WITH name AS (…)`.',
        situation='`con.uql("SELECT ?", [3])`',
    ),
    # -------------------------------------------------------------------------------------------------------- plans
    "UQL302": ErrorCode(
        "An expression cannot be written as SQL for DuckDB. It is a limit of the planner that no other error explains.",
        "Store the answers first (`… TO answers`), then query that table; report the statement.",
        situation="A virtual column in a place where only plain SQL can be evaluated.",
    ),
    "UQL304": ErrorCode(
        "A text reads a column of images or audio, and the model does not accept them.",
        'Use a model that does, or name other columns: `"…" USING (column)`.',
        situation='`SELECT id FROM shots WHERE "there is a dog in {picture}"` with a model that reads text only.',
    ),
    "UQL399": ErrorCode(
        "A rule or fusion of the planner made an invalid plan. This is a bug; the message names the rule.",
        "Switch that rule off, `SET uql.disabled_rules = 'rule_name'`, and report the statement.",
        situation="A new rule that drops a column which a node above still reads.",
    ),
    # ----------------------------------------------------------------------------------- models, budgets, the ledger
    "UQL401": ErrorCode(
        "The query needs more LLM calls than the budget leaves, or an estimate would be stored as if it were "
        "exact. Nothing was sent and nothing was changed.",
        "Raise the budget, filter first, use LIMIT or an aggregate; `WITH (partial = true)` accepts a part.",
        statement='SELECT id, "the mood of the review" AS mood FROM reviews WITH (budget = 5)',
    ),
    "UQL402": ErrorCode(
        "The configuration of the model is incomplete: no model, an unknown kind of model, a package that is not "
        "installed, or max_cost with a model of unknown price.",
        "Set `model` to one of the choices, install the extra that the help line names, or configure the price.",
        situation='`uql.connect("bank.duckdb", model="gpt")`: the kind of model is missing, as in `openai:gpt-…`.',
    ),
    "UQL403": ErrorCode(
        "The API key is missing, or the provider refused it. The run ends, whatever `on_error` says.",
        "Run `uql keys set openai`, or set OPENAI_API_KEY in the environment; `uql keys list` prints which keys are set.",
        situation="The provider replies with the HTTP status 401.",
    ),
    "UQL404": ErrorCode(
        "The account at the provider has no credit left.",
        "Add credit, then `uql resume ID`: the paid answers are in the ledger.",
        situation="The provider replies with the HTTP status 402, or with `insufficient_quota`.",
    ),
    "UQL405": ErrorCode(
        "The provider does not know the model, or the model file is not on this machine.",
        "Check the name of the model; fetch a local one with `uql models pull NAME`.",
        situation="`uql --model local:no-such-model …`",
    ),
    "UQL406": ErrorCode(
        "The provider cannot be reached, its replies do not fit, or a local model file cannot be loaded.",
        "Check that the server runs and that its address is right.",
        situation='`model="http://localhost:8000/v1#qwen"` while no server is running there.',
    ),
    "UQL407": ErrorCode(
        "A reply of the model could not be parsed. By default the value of that row is NULL and the row is in "
        "`result.errors`; `on_error = 'raise'` ends the run. So does an aggregate of numbers of which the first 20 rows give words.",
        "Use `result.retry_failed()`, a larger model, or labels: `\"…\" IN ('a', 'b')`.",
        situation="A small model answers `perhaps` to a yes-or-no question.",
    ),
    "UQL410": ErrorCode(
        "The ledger file cannot be opened, or another version of UQL wrote it.",
        'Give another path, `ledger="path"`, or `":memory:"` to keep no answers.',
        situation="The path of the ledger is a folder, or a file without write permission.",
    ),
    "UQL411": ErrorCode(
        "`offline` is set, and the ledger has no answer for some rows.",
        "Run the query once without `offline`.",
        statement='SELECT COUNT(*) FROM reviews WHERE "the review is positive" WITH (offline = true)',
    ),
    "UQL412": ErrorCode(
        "There is no such run in the ledger, or it was not stored completely enough to be continued.",
        "`uql runs` lists the runs; run the statement anew, with a ledger on disk.",
        situation='`con.resume("abc123")` with an unknown id.',
    ),
    "UQL413": ErrorCode(
        "The rows of a table are not those that the resumed run began with.",
        "Run the statement anew: every answer that still fits comes from the ledger.",
        situation="Rows were inserted between an interrupted run and `con.resume()`.",
    ),
    "UQL414": ErrorCode(
        "Another process is working on the run that is to be resumed.",
        "Wait until it ends, or stop it.",
        situation="`uql resume ID` in two terminals at once.",
    ),
    "UQL415": ErrorCode(
        "The ledger's file cannot be read or written: the disk is full, or the file is damaged. Nothing more was sent.",
        "Free some space, or give another path with `ledger=`; move a damaged file away.",
        situation="The disk fills up while answers are kept.",
    ),
    "UQL416": ErrorCode(
        "A statement that came through `uql mcp`, or the definition of a semantic table that the database holds, sets who reads the "
        "rows, which files are read, or a limit above yours.",
        "Leave the setting out of WITH (…); whoever starts the server chooses it, as `uql mcp DATABASE --model …`. Before REFRESH "
        "write `SET uql.model = …`, as the help line says.",
        situation="`SELECT … WITH (model = 'openai:NAME')` by a client of `uql mcp`.",
    ),
    "UQL417": ErrorCode(
        "A statement that came through `uql mcp` would need more calls or USD than the server's caps leave.",
        "Write what the help line suggests: `WITH (budget = n)`, LIMIT, or a narrower plain condition.",
        situation="`WITH (budget = 'all')` over 50,000 rows, by a client of `uql mcp`.",
    ),
    "UQL418": ErrorCode(
        "The run was begun by another user or on another machine, or the ledger's file was changed since.",
        "Read what it would do: `uql resume ID` shows it and asks; `con.resume(id, trust=True)` does not ask.",
        situation='`con.resume("abc123")` of a run in a ledger that others can write.',
    ),
    # --------------------------------------------------------------------------------------------- files, tables, rows
    "UQL500": ErrorCode(
        "The ledger cannot be written or is closed, or an oracle file does not fit the question.",
        "Make room on the disk; correct the oracle file as the message says.",
        situation="The disk of the ledger is full.",
    ),
    "UQL501": ErrorCode(
        "There is no such file, or the data of an oracle have duplicate rows.",
        "Check the path; the help line lists files with similar names. Drop the duplicates.",
        statement="SELECT * FROM 'nowhere.csv'",
    ),
    "UQL502": ErrorCode(
        "A file is not UTF-8, or a row or column is missing from the data of an oracle.",
        "Convert the file, or write `FROM read_csv('file', encoding = 'latin-1')`.",
        situation="`FROM 'umsatz.csv'`, a file in Latin-1.",
    ),
    "UQL503": ErrorCode(
        "A database, table or file cannot be read.",
        "Check the format; the help line lists those that can be read.",
        statement="SELECT * FROM read_csv('nowhere.csv', no_such_option = 1)",
    ),
    "UQL504": ErrorCode(
        "A Python object is not a table, or the table of `examples` or `audit` lacks the columns that are needed.",
        "Pass a data frame or an Arrow table; give the table the columns that the text reads, and a column `answer`.",
        statement="""SELECT COUNT(*) FROM reviews WHERE "the review is positive" WITH (examples = 'judged')""",
    ),
    "UQL505": ErrorCode(
        "There is no such type of files; or an intermediate table of a question is too large, or has a name that "
        "is taken.",
        "Use a type from the help line; aggregate or shorten the intermediate table.",
        situation='`con.register("docs", "folder/", type="painting")`',
    ),
    "UQL506": ErrorCode(
        "The connection is closed, or an error in DuckDB has ended its database.",
        "Open it again with `uql.connect(path)`.",
        situation='`con.close(); con.uql("SELECT 1")`',
    ),
    "UQL509": ErrorCode(
        "DuckDB refused the statement while it ran: a cast, a constraint, a folder that does not exist.",
        "The message is DuckDB's own; correct the statement or the data.",
        statement='INSERT INTO films SELECT film, body, "the mood" FROM reviews',
    ),
    "UQL510": ErrorCode(
        "A folder or file cannot be written, the user has no home folder, or a plot has too many rows or takes too long to draw.",
        "Set HOME, or UQL_HOME to another folder; aggregate or sample before plotting.",
        situation="A plot of 100,000 rows.",
    ),
    "UQL511": ErrorCode(
        "A model file cannot be downloaded, or the read-only web page was given a statement that writes.",
        "Put the file into the folder yourself; start `uql ui DATABASE --write`.",
        situation="`uql models pull` without a network.",
    ),
    "UQL512": ErrorCode(
        "Another process is downloading the same model, or two results that are compared have different columns.",
        "Wait for the download to end; compare results of the same columns.",
        situation="`uql models pull` in two terminals at once.",
    ),
    "UQL513": ErrorCode(
        "The disk is full, an adapter cannot be installed, or a run that is to be compared has no rows.",
        "Make room or set UQL_HOME to another disk; read the last line of pip in the message.",
        situation="`uql models pull` with less free space than the model needs.",
    ),
    "UQL514": ErrorCode(
        "A downloaded model has the wrong checksum, or a file is not a router, not a table of traces, or not a run.",
        "Download again; train the router again with `uql router train`.",
        situation="A model file whose SHA-256 differs from the expected one.",
    ),
    "UQL515": ErrorCode(
        "No provenance is kept for this row, or the answer has no such citation.",
        "Use a row number in the range of the message; bring the row to the front with ORDER BY.",
        situation="`result.why(1_000_000)`",
    ),
    "UQL517": ErrorCode(
        "The labelled rows cannot be used to calibrate or evaluate: no label column, values that are not yes or no, too few "
        "rows, or a model without probabilities.",
        "Give at least as many rows of yes and no as the message asks for, with labels true/false, 1/0 or yes/no.",
        situation="`uql calibrate` with 5 labelled rows.",
    ),
    "UQL518": ErrorCode(
        "`audit` does not apply to this aggregate or query.",
        'Use COUNT, SUM or AVG of stored columns over WHERE "…", or leave `audit` out.',
        statement="""SELECT MEDIAN(stars) FROM reviews WHERE "the review is positive" WITH (audit = 'films')""",
    ),
    "UQL519": ErrorCode(
        "`soft` does not apply: the probabilities of this model and condition were not checked against labels, or "
        "the query is not of a form that it supports.",
        "Calibrate the condition first (`uql calibrate`), give `audit`, or leave `soft` out.",
        statement='SELECT COUNT(*) FROM reviews WHERE "the review is positive" WITH (soft = true)',
    ),
    "UQL520": ErrorCode(
        "There is no such semantic table, or it belongs to another database.",
        "Use a name from the help line; create the table with CREATE SEMANTIC TABLE.",
        statement="REFRESH moods",
    ),
    "UQL521": ErrorCode(
        "The KEY of a semantic table is NULL in some rows, or not unique.",
        "Name columns that identify a row, or leave rows out: `WHERE id IS NOT NULL`.",
        statement='CREATE SEMANTIC TABLE moods AS SELECT film, "the mood" AS mood FROM reviews KEY (film)',
    ),
    "UQL522": ErrorCode(
        "The definition of a semantic table no longer fits its source. Nothing was changed.",
        "Correct the source, or write CREATE OR REPLACE SEMANTIC TABLE.",
        statement='CREATE SEMANTIC TABLE moods AS SELECT *, "the mood" AS mood FROM reviews KEY (id);\n'
        "ALTER TABLE reviews DROP COLUMN stars;\nREFRESH moods",
    ),
    "UQL523": ErrorCode(
        "The database is open read-only, and the statement writes to a semantic table.",
        "Open it without `read_only`.",
        situation="`REFRESH moods` on a connection opened with `read_only=True`.",
    ),
    "UQL524": ErrorCode(
        "The correction cannot be stored: the row has no answer of a model, stands for several rows, or the value "
        "does not fit.",
        "Correct one row of the table and say which column: `result.correct(i, value, column)`.",
        situation="`result.correct(0, True)` on a row of a GROUP BY.",
    ),
    "UQL525": ErrorCode(
        "The query of a semantic table has two columns of one name, a parameter, or a column named like the end "
        "of an interval.",
        "Give each column its own name with AS; write values in place of parameters.",
        statement='CREATE SEMANTIC TABLE moods AS SELECT id, film, stars AS film, "the mood" AS mood FROM reviews KEY (id)',
    ),
    "UQL526": ErrorCode(
        "There is not enough memory for a statement. What was answered is in the ledger.",
        "Close other programs, select fewer columns and rows, or lower `SET memory_limit` so that DuckDB works on disk.",
        situation="`SELECT *` of a table that is larger than the memory, as a data frame.",
    ),
    "UQL527": ErrorCode(
        "A query over a cluster's table would bring more rows to this process than it holds: a join, a sub-query, or each of many rows.",
        "Leave fewer rows by plain conditions, estimate (COUNT, SUM, AVG, GROUP BY with a budget), have the shards write the rows of "
        "one table (COPY (SELECT …) TO 'folder' (FORMAT parquet)), or make a smaller table first.",
        situation="A join of two tables of 10 million rows, on a connection that `cluster = …` opened.",
    ),
    # ------------------------------------------------------------------------------------ questions in natural language
    "UQL610": ErrorCode(
        "A feature needs an optional package that is not installed.",
        "Install the extra that the help line names, for example `pip install 'uql-engine[plot]'`.",
        situation="A question that wants a plot, without altair.",
    ),
    "UQL620": ErrorCode(
        "A statement, plot or Python code that a model wrote does something that is not allowed. It was not run.",
        "The planner tries again with this message; ask in other words, or write UQL yourself.",
        situation="The model writes `SELECT * FROM read_csv('/etc/passwd')`.",
    ),
    "UQL621": ErrorCode(
        "A statement that a model wrote was stopped: too many rows, too much memory, or too much time.",
        "Ask for less, or write a query that aggregates or joins on a condition.",
        situation="The model writes a cross join of two large tables.",
    ),
    "UQL630": ErrorCode(
        "There is no valid plan for the question, or a step of the plan cannot be run.",
        "Ask in other words, use a larger model, or write UQL.",
        situation='`con.ask("")`',
    ),
    "UQL631": ErrorCode(
        "A plan that a model wrote names columns or tables that do not exist, or is not in the format of plans.",
        "The planner tries again with this message; ask in other words.",
        situation="The plan reads `orders.price`, and the column is called `amount`.",
    ),
    "UQL632": ErrorCode(
        "The model gave no usable reply to a prompt of the planner.",
        "Use a larger model, or raise its output limit.",
        situation="The reply ends in the middle of a JSON object, also on the second try.",
    ),
    "UQL633": ErrorCode(
        "There are no tables to ask about, or no operator fits a part of the question.",
        "Open a database, or create a table first.",
        situation="`con.ask(…)` on an empty database.",
    ),
    "UQL635": ErrorCode(
        "No adapter gave a valid answer to a sub-question. The message lists each attempt.",
        "Install an adapter that can read the data, or ask in other words.",
        situation="A sub-question about images, and no adapter reads images.",
    ),
    "UQL640": ErrorCode(
        "The process of an adapter could not be started, ended, or replied with something that is not an answer.",
        "`uql adapters install NAME` repairs its environment; the message has its last line.",
        situation="The environment of the adapter was deleted.",
    ),
    "UQL641": ErrorCode(
        "An adapter gave no answer within its time limit and was stopped.",
        "Ask for fewer rows, or use another adapter.",
        situation="An adapter that reads every row of a large table.",
    ),
    "UQL642": ErrorCode(
        "There is no such adapter, or it is not installed.",
        "`uql adapters list` shows them; `uql adapters install NAME` installs one.",
        situation="`uql adapters install nothing`",
    ),
    "UQL643": ErrorCode(
        "The router was trained with another embedder.",
        "Set that embedder, or train the router again: `uql router train`.",
        situation="A router file from another machine.",
    ),
}
