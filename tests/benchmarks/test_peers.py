"""An oracle behind OpenAI's protocol finds rows and questions in prompts that others wrote, and answers in their forms."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import sys

import duckdb
import httpx
import pytest

from uql.base.errors import ConfigError, DataError
from uql.benchmarks.peers.environments import PEERS, fitting
from uql.benchmarks.peers.reading import Prompts, plain
from uql.benchmarks.peers.replies import form_of
from uql.benchmarks.peers.server import Service, app, serve, tokens
from uql.benchmarks.peers.verdicts import table as verdict_table
from uql.benchmarks.runner.records import Record
from uql.benchmarks.runner.summary import cells
from uql.llm.prompts import fused
from uql.llm.prompts.json_schema import json_form
from uql.llm.providers.oracle import Oracle
from uql.llm.questions import Cell, Choice, Extract, Predicate, Row

TEXTS = ['A joy,\nfrom "start" to end', "Dull", "Dull and long, and then some more of it all", "It's naïve\tfun"]
LOTUS = "Your job is to …\n<Your answer here. The answer should be either True or False>\nContext:\n[Text]: «{row}»\n\nClaim: [Text]: the review is positive"
DIGIT = (
    'Does the following item satisfy the condition "the review is positive"? Answer with 1 for yes, 0 for no.\n{row}'
)
PAIRS = (
    "Identify pairs that satisfy the join condition \"the reviews {{}} and {{}} agree\". Write only the IDs of matching pairs\n"
    "L0:\n{0}\nL1:\n{1}\nR0:\n{2}\nR1:\n{3}"
)  # fmt: skip


@pytest.fixture
def service(tmp_path):
    rows = [(i, text, i in (0, 3)) for i, text in enumerate(TEXTS)]
    con = duckdb.connect()
    con.execute("CREATE TABLE t (id INTEGER, text VARCHAR, positive BOOLEAN)")
    con.executemany("INSERT INTO t VALUES ($1, $2, $3)", rows)
    con.sql("SELECT id, text FROM t").write_parquet(str(tmp_path / "data.parquet"))
    con.sql("SELECT id, positive, 3 AS stars FROM t").write_parquet(str(tmp_path / "labels.parquet"))
    (tmp_path / "o.toml").write_text(
        'data = "data.parquet"\nlabels = "labels.parquet"\nkey = "id"\n[answers]\n"the review is positive" = "positive"\n'
        '"the number of stars" = "stars"\n"the reviews {a.text} and {b.text} agree" = "a.positive = b.positive"\n'
    )
    return Service(Oracle(tmp_path / "o.toml"))


def reply(service: Service, prompt: str) -> str:
    return asyncio.run(service.reply(prompt))[0]


def test_a_row_is_found_however_it_is_quoted():
    prompts = Prompts(["q"], TEXTS)
    for row, text in enumerate(TEXTS):
        for shown in (text, json.dumps(text), text.upper(), f"<<{text}>>", text.replace(" ", "\n\n")):
            assert [hit.row for hit in prompts.rows(f"About this:\n{shown}\nSay.")] == [row]


def test_a_row_within_a_longer_one_and_within_a_word_is_not_found():
    prompts = Prompts(["q"], TEXTS)
    assert [hit.row for hit in prompts.rows(f"x {TEXTS[2]} y")] == [2]
    assert prompts.rows("Dullness") == []


def test_rows_come_in_the_order_of_the_prompt():
    assert [hit.row for hit in Prompts(["q"], TEXTS).rows(f"{TEXTS[3]} | {TEXTS[0]}")] == [3, 0]


def test_the_longest_question_that_fits_is_asked():
    prompts = Prompts(["it is so", "it is so and more", "the {a} and the {b} agree"], TEXTS)
    assert prompts.question("say whether It is so, and more.") == "it is so and more"
    assert prompts.question("do the [left] and the [right] agree?") == "the {a} and the {b} agree"
    with pytest.raises(DataError, match="it knows"):
        prompts.question("nothing")


def test_what_stands_between_the_pieces_of_a_question_counts_against_it():
    texts = ["the film {text} is odd", "the film {text} is a very long comedy"]
    row = f"It tells of {'much ' * 9} and is a very long comedy of manners."
    assert Prompts(texts, TEXTS).question(f"Claim: the film [Text] is odd.\nContext: {row}") == texts[0]
    assert Prompts(texts, TEXTS).question(f"Claim: the film [Text] is a very long comedy.\nContext: {row}") == texts[1]


def test_a_text_with_escapes_of_its_own_is_found_when_it_is_escaped_again():
    held = r"First.\n\nSecond \"part\" of a longer text"
    assert [hit.row for hit in Prompts(["q"], [held]).rows(f"Row: {json.dumps(held)} end")] == [0]


def test_a_row_whose_text_is_a_word_of_the_question_is_not_the_row_that_is_asked_about():
    prompts = Prompts(["one of these places is in Rome: {places}"], ["Rome", "Oslo, Paris"])
    asked = 'Does it hold that "one of these places is in Rome"? '
    question = prompts.question(asked)
    assert [hit.row for hit in prompts.rows(asked + "Oslo, Paris", question)] == [1]
    assert [hit.row for hit in prompts.rows(asked + "Rome", question)] == [0]


def test_words_are_compared_without_signs():
    assert plain('a\\n"b"\\u00e9') == "a b é"


def test_each_engine_gets_the_answer_in_its_form(service):
    assert [reply(service, LOTUS.replace("{row}", text)) for text in TEXTS[:2]] == ["Answer: True", "Answer: False"]
    assert [reply(service, DIGIT.format(row=text)) for text in TEXTS] == ["1", "0", "0", "1"]
    assert reply(service, f"The number of stars? Answer with the number only.\n{TEXTS[0]}") == "3"
    assert asyncio.run(service.reply(PAIRS.format(*TEXTS))) == ("L0-R1,L1-R0.", 4)
    assert form_of("anything else").name == "value"


def asked(service: Service, system: str, user: str, **body: object) -> dict[str, object]:
    """What the endpoint says to a chat of this engine."""
    return asked_whole(service, system, user, **body)["choices"][0]


def asked_whole(service: Service, system: str, user: str, **body: object) -> dict[str, object]:
    """That with what it used."""

    async def sent():
        transport = httpx.ASGITransport(app=app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://oracle") as http:
            messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
            return await http.post("/v1/chat/completions", json={"messages": messages, **body})

    reply = asyncio.run(sent())
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_this_engine_is_answered_in_the_words_that_it_asks_for(service):
    positive = Predicate("the review is positive")
    for text, said in zip(TEXTS, ("true", "false", "false", "true"), strict=True):
        prompt = fused.word(positive, Row((Cell("text", text),)))
        assert asked(service, prompt.system, prompt.user)["message"]["content"] == said
    agree = Predicate("the reviews {a.text} and {b.text} agree")
    prompt = fused.word(agree, Row((Cell("text", TEXTS[0], "a"), Cell("text", TEXTS[3], "b"))))
    assert asked(service, prompt.system, prompt.user)["message"]["content"] == "true"


def test_this_engine_is_answered_by_the_object_that_it_asks_for(service):
    questions = (
        Predicate("the review is positive"),
        Extract("the number of stars", type="INTEGER"),
        Choice("the number of stars", ("2", "3", TEXTS[1]), none_of_these=False),
    )
    prompt = fused.prompt(questions, Row((Cell("text", TEXTS[0]),)), 1)
    form = json_form("answers", fused.schema(questions))
    said = asked(service, prompt.system, prompt.user, response_format=form)["message"]["content"]
    assert [a.value for a in fused.read(said, questions, Row())] == [True, 3, "3"]
    trial = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
    reply = asked(service, "", "Is water wet?", response_format=json_form("ok", trial), logprobs=True)
    assert (reply["message"]["content"], reply["logprobs"]) == ('{"ok": true}', None)
    assert (service.stats.calls, service.stats.refused) == (1, 0)


def test_a_schema_and_tools_are_counted_as_tokens_as_the_words_are(service):
    def used(**more):
        return asked_whole(service, "", DIGIT.format(row=TEXTS[0]), **more)["usage"]["prompt_tokens"]

    alone = used()
    tool = {"type": "function", "function": {"name": "say", "parameters": {"type": "object", "properties": {}}}}
    assert used(tools=[tool]) == alone + tokens(json.dumps({"tools": [tool]}))
    assert service.stats.input_tokens == 2 * alone + tokens(json.dumps({"tools": [tool]}))
    form = json_form("answers", fused.schema((Predicate("the review is positive"),)))
    prompt = fused.prompt((Predicate("the review is positive"),), Row((Cell("text", TEXTS[0]),)), 1)
    whole = asked_whole(service, prompt.system, prompt.user, response_format=form)
    words = tokens(f"{prompt.system}\n{prompt.user}")
    assert whole["usage"]["prompt_tokens"] == words + tokens(json.dumps({"response_format": form}))


def test_a_seed_decides_which_answers_are_wrong(service):
    service.oracle.error = 0.5

    async def answers(seed):
        transport = httpx.ASGITransport(app=app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://oracle") as http:
            assert (await http.post(f"/stats?seed={seed}")).json()["calls"] == 0
        return [(await service.reply(DIGIT.format(row=text)))[0] for text in TEXTS]

    found = {seed: asyncio.run(answers(seed)) for seed in range(8)}
    assert len(set(map(tuple, found.values()))) > 3
    assert asyncio.run(answers(5)) == found[5]


def test_wins_and_losses_stand_in_one_table():
    def runs(system, query, qualities, calls):
        return [
            Record("peers", "movie", system, query, "labels", n, quality=q, calls=calls)
            for n, q in enumerate(qualities)
        ]

    records = [
        *runs("uql", "q1", [1.0], 7), *runs("lotus", "q1", [1.0], 2000), *runs("uql", "q2", [1.0], 33), *runs("lotus", "q2", [1.0], 30),
        *runs("uql", "q10", [0.6, 0.62, 0.58], 128), *runs("lotus", "q10", [1.0], 2000),
        *runs("uql", "q3", [0.70, 0.90, 0.80], 10), *runs("lotus", "q3", [0.75, 0.95, 0.79], 10),
        *runs("uql", "q9", [1.0], 128), *runs("thalamusdb", "q9", [0.0], 0), *runs("uql-exact", "q1", [1.0], 9),
    ]  # fmt: skip
    found = verdict_table("t", cells(records), "uql", ("uql", "uql-exact"))
    assert found.head[1:] == (
        "better",
        "as good, fewer calls",
        "as good, as many calls",
        "as good, more calls",
        "worse",
    )
    assert found.rows == (("lotus", "–", "q1", "q3", "q2", "q10"), ("thalamusdb", "q9", "–", "–", "–", "–"))


def test_decisions_are_answered_in_the_layout_of_jevdb(service):
    """The body is one that jevdb 0.1.0 sent, shortened."""

    async def asked(body):
        transport = httpx.ASGITransport(app=app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://oracle") as client:
            reply = await client.post("/v1/systemone", json={"model": "jev-1.13.0", **body})
            return reply, (await client.get("/stats")).json()

    def of(condition, type, records, criteria=None):
        more = {} if criteria is None else {"criteria": criteria}
        questions = {
            f"p{i}": {"type": type, "instructions": {**r, "question": "…?"}, **more} for i, r in enumerate(records)
        }
        return {"state": {"condition": condition}, "questions": questions}

    rows = [{"text": text} for text in TEXTS]
    reply, stats = asyncio.run(asked(of("the review is positive", "noul", rows)))
    assert [a["noul"] > 0.5 for a in reply.json()["answers"].values()] == [True, False, False, True]
    assert (stats["requests"], stats["calls"]) == (1, 4)
    pairs = [{"left": TEXTS[0], "right": TEXTS[3]}, {"left": TEXTS[0], "right": TEXTS[1]}]
    reply, _ = asyncio.run(asked(of("the reviews left and right agree", "noul", pairs)))
    assert [a["noul"] > 0.5 for a in reply.json()["answers"].values()] == [True, False]
    reply, _ = asyncio.run(asked(of("the number of stars", "score", rows[:1], ["1", "2", "3", "4"])))
    assert reply.json()["answers"] == {"p0": {"score": 2.0}}
    reply, _ = asyncio.run(asked(of("the number of stars", "choice", rows[:1], {"3": "three", "4": "four"})))
    assert reply.json()["answers"] == {"p0": {"choice": "3"}}
    reply, stats = asyncio.run(asked(of("the review is positive", "noul", [{"text": "no row of the data"}])))
    assert reply.status_code == 400 and stats["refused"] == 1
    assert asyncio.run(asked({"state": {}}))[0].status_code == 400


def test_the_endpoint_counts_calls_and_refuses_what_it_cannot_read(service):
    async def talk():
        transport = httpx.ASGITransport(app=app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            content = [{"type": "text", "text": DIGIT.format(row=TEXTS[0])}]
            good = await http.post(
                "/v1/chat/completions", json={"model": "m", "messages": [{"role": "user", "content": content}]}
            )
            bad = await http.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "hello"}]})
            counted = (await http.get("/stats")).json()
            await http.post("/stats")
            return good.json(), bad, counted, (await http.get("/stats")).json(), (await http.get("/v1/models")).json()

    good, bad, counted, fresh, models = asyncio.run(talk())
    assert good["choices"][0]["message"]["content"] == "1"
    assert good["usage"]["prompt_tokens"] == counted["input_tokens"] - 2
    assert (bad.status_code, bad.json()["error"]["code"]) == (400, "UQL502")
    assert (counted["calls"], counted["refused"], fresh["calls"]) == (2, 1, 0)
    assert models["data"][0]["id"] == "oracle"


def test_a_request_that_is_none_is_refused_in_words_and_no_call(service):
    bodies = [
        "nope",
        "[]",
        "{}",
        '{"messages": [3]}',
        '{"messages": [{"content": 5}]}',
        '{"messages": [{"content": [{"type": "text"}]}]}',
    ]

    async def talk():
        transport = httpx.ASGITransport(app=app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            said = [await http.post("/v1/chat/completions", content=body) for body in bodies]
            return [*said, await http.post("/v1/embeddings", content="{}")]

    for reply in asyncio.run(talk()):
        assert reply.status_code == 400
        assert reply.json()["error"]["code"] == "UQL502"
    assert service.stats.calls == service.stats.requests == 0


@pytest.mark.parametrize("usage", [False, True])
def test_a_reply_is_streamed_where_that_is_asked_for(service, usage):
    async def talk():
        transport = httpx.ASGITransport(app=app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            messages = [{"role": "user", "content": DIGIT.format(row=TEXTS[0])}]
            asked = {"messages": messages, "stream": True, "stream_options": {"include_usage": usage}}
            return (await http.post("/v1/chat/completions", json=asked)).text

    *events, last = [line.removeprefix("data: ") for line in asyncio.run(talk()).split("\n\n") if line]
    chunks = [json.loads(event) for event in events]
    assert last == "[DONE]"
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"]) == "1"
    assert [c["usage"]["completion_tokens"] for c in chunks if "usage" in c] == [1] * usage


def test_a_port_that_another_has_is_an_error_in_words(service):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="cannot be had"):
            serve(service, taken.getsockname()[1], lambda address: None)


def test_without_a_server_it_is_said_what_to_install(service, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ConfigError, match="needs starlette and uvicorn"):
        serve(service, 1, lambda address: None)


def test_embeddings_and_the_probabilities_of_a_model_that_errs_are_served(service):
    pytest.importorskip("wordllama")
    service.oracle.error = 0.1

    async def talk():
        transport = httpx.ASGITransport(app=app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://oracle") as http:
            vectors = await http.post("/v1/embeddings", json={"input": ["a dog", "a puppy", "the interest rate"]})
            asked = {
                "model": "x",
                "messages": [{"role": "user", "content": LOTUS.format(row=TEXTS[1])}],
                "logprobs": True,
            }
            return vectors.json(), (await http.post("/v1/chat/completions", json=asked)).json()

    vectors, chat = asyncio.run(talk())
    dog, puppy, rate = (item["embedding"] for item in vectors["data"])
    assert sum(a * b for a, b in zip(dog, puppy, strict=True)) > sum(a * b for a, b in zip(dog, rate, strict=True))
    (said,) = [t for t in chat["choices"][0]["logprobs"]["content"] if len(t["top_logprobs"]) == 2]
    odds = {top["token"]: round(math.exp(top["logprob"]), 6) for top in said["top_logprobs"]}
    assert odds == {said["token"]: 0.9, "True" if said["token"] == "False" else "False": 0.1}


def test_a_column_that_the_data_do_not_have_is_an_error(service):
    with pytest.raises(DataError, match="columns: id, text"):
        Service(service.oracle, "body")


def test_a_peer_that_no_python_fits_is_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.setenv("UQL_HOME", str(tmp_path))
    from dataclasses import replace

    with pytest.raises(ConfigError, match=r"needs Python 4\.0"):
        fitting(replace(PEERS["lotus"], least=(4, 0), below=(5, 0)))
    assert all(peer.worker.is_file() and "==" in peer.packages[0] for peer in PEERS.values())
