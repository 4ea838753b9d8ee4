"""Embeddings of the vendors on loopback; spans of calls."""

from __future__ import annotations

import base64
import io
import json
import math
import time

import numpy as np
import pytest
from loopback import serve
from scripted import Scripted, row
from starlette.responses import Response

import uql
from uql.base.errors import AuthError, BackendError, ConfigError, DataError, ModelError
from uql.base.settings import Settings
from uql.llm import limiter
from uql.llm.embed import TOKENS_AT_ONCE, OpenAIEmbedder, Voyage, batches, open_embedder, tokens_at_most
from uql.llm.gate import Gate, Run
from uql.llm.providers.base import Answer, Capabilities
from uql.llm.questions import Predicate


def vectors(texts: list[str], reverse: bool = False) -> dict:
    data = [{"object": "embedding", "index": i, "embedding": [float(len(t)), 1.0, 0.0]} for i, t in enumerate(texts)]
    return {
        "object": "list",
        "model": "m",
        "data": data[::-1] if reverse else data,
        "usage": {"total_tokens": len(texts), "prompt_tokens": 1},
    }


def test_batches_keep_order_and_both_limits() -> None:
    texts = ["x" * 50_000] * 9 + ["y"] * 300
    made = list(batches(texts))
    assert [t for b in made for t in b] == texts and all(
        len(b) <= 128 and sum(map(tokens_at_most, b)) <= TOKENS_AT_ONCE for b in made
    )


@pytest.mark.parametrize("vendor", ["openai", "voyage"])
def test_texts_are_embedded_once_in_order_with_nulls_as_zeros(vendor: str) -> None:
    def handler(body, headers):
        assert headers["authorization"] == "Bearer k" and 1 <= len(body["input"]) <= 128
        return vectors(body["input"], reverse=vendor == "openai")

    with serve({"/v1/embeddings": handler}) as told:
        kind = OpenAIEmbedder if vendor == "openai" else Voyage
        embedder = kind("m", api_key="k", url=f"{told.url}/v1")
        texts = ["a", None, "bbb", "", "a"] + [f"text {n}" for n in range(150)]
        made = embedder.embed(texts)
        assert made.shape == (155, 3) and made.dtype == np.float32
        assert not made[1].any() and not made[3].any() and made[0].tolist() == made[4].tolist()
        assert made[2].tolist() == pytest.approx([3 / math.sqrt(10), 1 / math.sqrt(10), 0])
        assert embedder.requests == 2 and embedder.tokens == 152


@pytest.mark.parametrize("spoiled", [[0.1], [math.nan, 1.0], [math.inf, 1.0], [1e30, 1.0]], ids=str)
def test_vectors_that_are_none_are_an_error_of_the_server(spoiled: list[float]) -> None:
    def handler(body, headers):
        made = [[0.6, 0.8] for _ in body["input"][1:]] + [spoiled]
        data = [{"index": i, "embedding": vector} for i, vector in enumerate(made)]
        return Response(json.dumps({"data": data}), media_type="application/json")

    with serve({"/v1/embeddings": handler}) as told:
        embedder = OpenAIEmbedder("m", api_key="k", url=f"{told.url}/v1")
        with pytest.raises(BackendError, match="differ in length"):
            embedder.embed([f"text {n}" for n in range(130)])


def test_an_embedder_tries_again_and_then_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limiter, "FIRST_PAUSE_S", 0.0001)
    seen: list[int] = []

    def busy(body, headers):
        seen.append(1)
        return (429, {"error": {"message": "slow"}, "detail": "slow"}) if len(seen) < 3 else vectors(body["input"])

    for kind in (OpenAIEmbedder, Voyage):
        seen.clear()
        with serve({"/v1/embeddings": busy}) as told:
            assert kind("m", api_key="k", url=f"{told.url}/v1").embed(["a"]).shape == (1, 3) and len(seen) == 3
        with (
            serve({"/v1/embeddings": lambda b, h: (401, {"error": {"message": "no"}, "detail": "no"})}) as told,
            pytest.raises(AuthError),
        ):
            kind("m", api_key="k", url=f"{told.url}/v1").embed(["a"])
        with (
            serve({"/v1/embeddings": lambda b, h: (503, {"error": {"message": "no"}, "detail": "no"})}) as told,
            pytest.raises(BackendError),
        ):
            kind("m", api_key="k", url=f"{told.url}/v1").embed(["a"])


def busy_for_a_minute(asked: list[float]):
    def handler(body, headers):
        asked.append(time.monotonic())
        content = json.dumps({"error": {"message": "busy"}, "detail": "busy"})
        return Response(content, 429, headers={"retry-after": "60"}, media_type="application/json")

    return {"/v1/embeddings": handler}


@pytest.mark.parametrize("kind", [OpenAIEmbedder, Voyage])
def test_an_embedder_does_not_outlast_the_seconds_of_the_run(kind: type[OpenAIEmbedder] | type[Voyage]) -> None:
    asked: list[float] = []
    with serve(busy_for_a_minute(asked)) as told:
        embedder = kind("m", api_key="k", url=f"{told.url}/v1")
        embedder.deadline = time.monotonic() + 1
        with pytest.raises(BackendError, match="max_seconds ended"):
            embedder.embed(["a"])
    assert asked and max(asked) < embedder.deadline and time.monotonic() < embedder.deadline + 2


def test_a_statement_gives_its_seconds_to_the_embedder(tmp_path) -> None:
    with (
        serve(busy_for_a_minute([])) as told,
        uql.connect(ledger=":memory:", model=Scripted(), embedder=f"{told.url}/v1#m", max_seconds=1) as con,
    ):
        con.sql(
            "CREATE TABLE t AS SELECT i AS id, 'a text of some length, number ' || i AS body FROM range(400) AS t(i)"
        )
        began = time.monotonic()
        with pytest.raises(BackendError, match="max_seconds ended"):
            con.uql('SELECT COUNT(*) AS n FROM t WHERE "it is good" WITH (budget = 50)').fetchall()
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("usage", [[1], "none"])
def test_a_reply_of_another_form_is_an_error_of_the_server(usage: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limiter, "FIRST_PAUSE_S", 0.0001)
    with (
        serve({"/v1/embeddings": lambda body, _: {**vectors(body["input"]), "usage": usage}}) as told,
        pytest.raises(BackendError, match="form of its protocol"),
    ):
        OpenAIEmbedder("m", api_key="k", url=f"{told.url}/v1").embed(["a"])


def test_images_are_embedded_by_a_multimodal_model() -> None:
    from PIL import Image

    picture = io.BytesIO()
    Image.new("RGB", (4, 4), "red").save(picture, "PNG")

    def handler(body, headers):
        content = body["inputs"][0]["content"][0]
        assert content["type"] == "image_base64" and base64.b64decode(content["image_base64"].split(",")[1])
        data = [{"object": "embedding", "index": i, "embedding": [1.0, 0.0]} for i in range(len(body["inputs"]))]
        return {
            "object": "list",
            "model": "m",
            "data": data,
            "usage": {"text_tokens": 0, "image_pixels": 16, "video_pixels": 0, "total_tokens": 5},
        }

    with serve({"/v1/multimodalembeddings": handler}) as told:
        made = Voyage("voyage-multimodal-3", api_key="k", url=f"{told.url}/v1").embed_images([picture.getvalue(), None])
        assert made.tolist() == [[1.0, 0.0], [0.0, 0.0]]


def picture(color: str, width: int = 4) -> bytes:
    from PIL import Image

    held = io.BytesIO()
    Image.new("RGB", (width, 4), color).save(held, "PNG")
    return held.getvalue()


@pytest.fixture
def multimodal():
    """A server that embeds texts and pictures by how red they are, as vLLM does."""
    from PIL import Image

    def handler(body, headers):
        assert headers["authorization"] == "Bearer none" and body["model"] == "m" and body["encoding_format"] == "float"
        if "input" in body:
            return {"data": [{"index": i, "embedding": [float("red" in t), 1.0]} for i, t in enumerate(body["input"])]}
        ((message,),) = (body["messages"],)
        ((part,),) = (message["content"],)
        kind, _, data = part["image_url"]["url"].partition(";base64,")
        assert (message["role"], part["type"], kind) == ("user", "image_url", "data:image/jpeg")
        red, _, blue = Image.open(io.BytesIO(base64.b64decode(data))).getpixel((1, 1))
        return {"data": [{"index": 0, "embedding": [float(red > blue), 1.0]}], "usage": {"total_tokens": 7}}

    with serve({"/v1/embeddings": handler}) as told:
        yield told


def test_a_server_by_its_address_embeds_texts_and_images_in_one_space(multimodal) -> None:
    embedder = open_embedder(f"{multimodal.url}/v1#m")
    assert embedder.embeds_images
    texts, images = (
        embedder.embed(["it is red", "blue"]),
        embedder.embed_images([picture("red"), None, picture("blue"), b"no picture"]),
    )
    assert not images[3].any()
    assert texts[0] == pytest.approx(images[0]) and texts[1] == pytest.approx(images[2]) and not images[1].any()
    assert embedder.name == f"{multimodal.url}/v1#m" and embedder.tokens == 14


def test_bytes_without_a_picture_among_them_are_an_error_in_words(multimodal) -> None:
    with pytest.raises(DataError, match=r"UQL503: .*none of 1 images can be read"):
        open_embedder(f"{multimodal.url}/v1#m").embed_images([b"no picture"])


def test_pictures_near_a_text_are_found_by_a_server_of_both(multimodal, tmp_path) -> None:
    """With a vector for the text the search begins with the red ones; colours alone would begin anywhere."""
    for i in range(80):
        (tmp_path / f"{i}.png").write_bytes(picture("red" if i in (7, 23, 31) else "blue", 4 + i))

    def red(request, number):
        yes = any(request.row.cells[0].value == picture("red", 4 + i) for i in (7, 23, 31))
        return [Answer(yes, float(yes)) for _ in request.questions]

    model = Scripted(red)
    model.capabilities = Capabilities(probabilities=True, images=True)
    settings = {"embedder": f"{multimodal.url}/v1#m", "folder": str(tmp_path), "budget": 10}
    with uql.connect(model=model, ledger=":memory:", **settings) as con:
        con.execute("CREATE TABLE shots AS SELECT i, i || '.png' AS file FROM range(80) t(i)")
        con.execute("COMMENT ON COLUMN shots.file IS 'image'")
        found = con.uql('SELECT i FROM shots WHERE "it is red" LIMIT 3')
        assert sorted(found.fetchall()) == [(7,), (23,), (31,)]
    assert found.cost.calls <= 6  # at random some 60


def test_a_server_that_embeds_texts_alone_leaves_images_to_their_colours() -> None:
    from uql.features.images import ImageDescriptors, image_embedder

    def handler(body, headers):
        return vectors(body["input"]) if "input" in body else (400, {"error": {"message": "input is missing"}})

    with serve({"/v1/embeddings": handler}) as told:
        embedder = open_embedder(f"{told.url}/v1#m")
        assert isinstance(image_embedder(embedder), ImageDescriptors)
        assert len(told.bodies) == 1
        assert embedder.embed(["a"]).shape == (1, 3)
        offline = open_embedder(f"{told.url}/v1#m", Settings(offline=True))
        assert not offline.embeds_images and len(told.bodies) == 2


def test_an_embedder_without_a_key_or_of_no_known_kind_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    with pytest.raises(AuthError, match="VOYAGE_API_KEY"):
        open_embedder("voyage:voyage-3.5")
    with pytest.raises(ConfigError, match="choices"):
        open_embedder("word2vec")


def test_each_call_is_a_span_without_the_row(run, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = pytest.importorskip("opentelemetry.trace")
    from uql.llm.telemetry import spans

    made: list[tuple[str, dict]] = []

    class Span:
        def __init__(self, name: str) -> None:
            self.attributes: dict = {}
            made.append((name, self.attributes))

        def set_attribute(self, name: str, value: object) -> None:
            self.attributes[name] = value

        def set_status(self, *_: object) -> None: ...

        def end(self, end_time: int) -> None: ...

    class Tracer:
        def start_span(self, name: str, start_time: int) -> Span:
            return Span(name)

    monkeypatch.setattr(trace, "get_tracer", lambda name: Tracer())

    async def go() -> None:
        async with Gate.open(Settings(ledger=":memory:"), model=Scripted(), calls=None, run=Run("r7")) as g:
            g.listeners.append(spans())
            await g.ask(Predicate("it is so"), [row("a secret row")])

    run(go())
    with uql.connect(model=Scripted(), ledger=":memory:") as con:  # its other events are no spans
        con.sql("CREATE TABLE t AS SELECT 'a secret text that is long enough' AS text")
        con.on_event(spans())
        before = len(made)
        con.uql('SELECT "the name" AS n FROM t').fetchall()
        assert len(made) == before + 1 and "secret" not in str(made)
        del made[before:]
    ((name, attributes),) = made
    assert name == "uql call" and attributes["uql.run"] == "r7" and "secret" not in str(attributes)


def test_a_batch_that_is_too_large_is_sent_in_halves_and_a_text_that_is_too_long_is_cut() -> None:
    sent: list[list[int]] = []

    def handler(body, headers):
        sent.append([len(text) for text in body["input"]])
        if sum(sent[-1]) > 9_000:
            return 400, {"error": {"message": "maximum context length is 8192 tokens", "code": "x"}}
        return vectors(body["input"])

    with serve({"/v1/embeddings": handler}) as told:
        embedder = OpenAIEmbedder("m", api_key="k", url=f"{told.url}/v1")
        texts = ["a" * 4_000, "b" * 4_100, "c" * 30_000, "d" * 100]
        assert np.linalg.norm(embedder.embed(texts), axis=1) == pytest.approx(np.ones(4))
        assert sent[0] == [4_000, 4_100, 30_000, 100] and [7_500] in sent and sum(map(len, sent)) <= 12


def test_texts_are_announced_before_they_leave_and_offline_none_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    told: list[tuple[str, int]] = []
    offline = open_embedder("voyage:m", Settings(offline=True), announce=lambda *what: told.append(what))
    assert not offline.embed([None, ""]).any()
    with pytest.raises(ModelError, match="UQL411"):
        offline.embed(["a text"])
    assert not told, "nothing was about to leave"
    with serve({"/v1/embeddings": lambda body, headers: vectors(body["input"])}) as server:
        embedder = OpenAIEmbedder("m", api_key="k", url=f"{server.url}/v1")
        embedder.announce = lambda *what: told.append((*what, len(server.bodies)))
        embedder.embed(["a", "b", "a"])
        embedder.embed(["c"])
    assert told == [("openai:m", 2, 0)], "once, before the first request"
