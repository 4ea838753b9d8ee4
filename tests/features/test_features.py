"""Rows as vectors: shapes, the cache, similarity to a condition."""

import json
import logging
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

from uql.features import table as table_module
from uql.features.cache import VectorCache, content_hashes, distinct, own_folder
from uql.features.lsa import Lsa, load_lsa, save_lsa
from uql.features.similarity import with_similarity
from uql.features.static import static_embedder
from uql.features.store import FeatureStore
from uql.features.table import table_features

TOPICS = {
    "card": ["my card was stolen in the city", "i lost my bank card yesterday", "someone took the card from my bag"],
    "rain": ["heavy rain is expected tomorrow", "the storm brings rain and wind", "clouds and rain over the coast"],
}
TEXTS = [f"{text} number {i}" for i in range(20) for topic in TOPICS.values() for text in topic]


class Counting:
    """An embedder that counts what it embeds: letters of the alphabet."""

    def __init__(self, name="letters"):
        self.name, self.seen = name, []

    def embed(self, texts):
        self.seen += list(texts)
        out = np.array([[(t or "").count(c) for c in "abcdefghijklmnop"] for t in texts], np.float32)
        return out / np.maximum(np.linalg.norm(out, axis=1, keepdims=True), 1e-9)


needs_static = pytest.mark.skipif(static_embedder() is None, reason="wordllama is not installed")


@needs_static
def test_the_static_embedder_gives_unit_rows_and_zeros_for_nothing():
    vectors = static_embedder().embed(["a lost card", None, "", "  ", "rain", "x" * 100_000, "\ud800"[:0]])
    lengths = np.linalg.norm(vectors, axis=1)
    assert vectors.shape == (7, 256) and vectors.dtype == np.float32
    assert lengths[[0, 4, 5]] == pytest.approx(1, abs=1e-5)
    assert lengths[[1, 2, 6]] == pytest.approx(0)


@needs_static
def test_near_texts_have_near_vectors():
    a, b, c = static_embedder().embed(["my card was stolen", "someone took my bank card", "heavy rain tomorrow"])
    assert a @ b > a @ c


def test_features_have_mean_zero_and_mean_squared_norm_one():
    matrix = table_features(TEXTS).matrix
    assert len(matrix) == len(TEXTS) and matrix.dtype == np.float32 and matrix.flags.c_contiguous
    assert abs(matrix.mean(axis=0)).max() < 1e-2
    assert (matrix**2).sum(axis=1).mean() == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    "texts", [[], ["a"], [None], [None, ""], ["a b c", "a b c"], ["one two", None, "two three four"]]
)
def test_small_and_empty_tables_work(texts):
    found = table_features(texts)
    assert len(found.matrix) == len(texts) and np.isfinite(found.matrix).all()
    matrix, prior = with_similarity(found, "is it so", ["yes it is"], ["no"])
    assert len(matrix) == len(prior) == len(texts) and np.isfinite(matrix).all() and np.isfinite(prior).all()


@pytest.mark.parametrize("n", [2, 3, 5, 17, 50])
def test_few_rows_give_few_components(n):
    found = table_features(TEXTS[:n]).matrix
    assert 0 < found.shape[1] <= 2 * (n - 1)


def test_similarity_puts_rows_of_the_condition_first():
    found = table_features(TEXTS)
    matrix, prior = with_similarity(found, "a card was lost or stolen", ["i cannot find my card"], ["rain and wind"])
    card = np.array(["card" in text for text in TEXTS])
    assert matrix.shape == (len(TEXTS), found.matrix.shape[1] + 3)
    assert prior[card].mean() > prior[~card].mean()
    assert with_similarity(found, "a card was lost")[0].shape[1] == found.matrix.shape[1] + 1


def test_without_wordllama_lsa_serves_alone_and_says_so(monkeypatch):
    monkeypatch.setattr(table_module, "static_embedder", lambda: None)
    found = table_features(TEXTS)
    assert "wordllama" in found.note and found.matrix.shape[1] > 0
    _, prior = with_similarity(found, "card", ["my card was stolen"], ["rain"])
    card = np.array(["card" in text for text in TEXTS])
    assert prior[card].mean() > prior[~card].mean()


def test_only_new_texts_are_embedded_and_the_result_is_the_same(tmp_path):
    first, second, fresh = Counting(), Counting(), Counting()
    table_features(TEXTS[:100], key="t", cache_dir=tmp_path, embedder=first)
    again = table_features(TEXTS[::-1], key="t", cache_dir=tmp_path, embedder=second)
    assert sorted(first.seen) == sorted(set(TEXTS[:100])) and sorted(second.seen) == sorted(
        set(TEXTS) - set(TEXTS[:100])
    )
    whole = table_features(TEXTS[::-1], embedder=fresh)
    assert np.allclose(
        again.blocks[0].vectors[again.blocks[0].index], whole.blocks[0].vectors[whole.blocks[0].index], atol=1e-2
    )


def test_a_table_read_twice_is_embedded_once(tmp_path):
    embedder = Counting()
    made = table_features(TEXTS, key="t", cache_dir=tmp_path, embedder=embedder)
    embedder.seen.clear()
    again = table_features(TEXTS, key="t", cache_dir=tmp_path, embedder=embedder)
    assert embedder.seen == [] and isinstance(again.blocks[0].vectors, np.memmap)
    assert (made.matrix == again.matrix).all()


@pytest.mark.skipif(os.name != "posix", reason="there are no locks of files")
def test_threads_that_need_the_same_vectors_at_once_embed_each_text_once(tmp_path):
    class Slow(Counting):
        def embed(self, texts):
            time.sleep(0.05)
            return super().embed(texts)

    embedder = Slow()
    parts = [TEXTS, TEXTS[:40], TEXTS[30:], TEXTS]
    with ThreadPoolExecutor(len(parts)) as threads:
        found = threads.map(lambda part: table_features(part, key="t", cache_dir=tmp_path, embedder=embedder), parts)
        assert [len(features.matrix) for features in found] == [len(part) for part in parts]
    assert sorted(embedder.seen) == sorted(TEXTS)


def test_a_folder_whose_files_are_being_moved_is_used(tmp_path):
    """Two runs embed one table: what the first one writes is moved into its place while the second one looks."""
    folder, looked = own_folder(tmp_path, "t"), Event()

    def moved():
        while not looked.is_set():
            (folder / "sub").mkdir(parents=True)
            (folder / "sub" / "new.part").write_bytes(b"half")
            (folder / "sub" / "new.part").replace(folder / "made.npy")
            (folder / "sub").rmdir()

    with ThreadPoolExecutor(1) as thread:
        mover = thread.submit(moved)
        try:
            found = {own_folder(tmp_path, "t") for _ in range(2_000)}
        finally:
            looked.set()
        mover.result()
    assert found == {folder}


def test_texts_keep_their_features_whatever_else_of_the_table_is_read(tmp_path):
    parts = [TEXTS[:40], TEXTS, TEXTS[:60], TEXTS[:50], TEXTS[30:110], TEXTS[100:]]
    first = [table_features(part, key="t", cache_dir=tmp_path).matrix for part in parts]
    again = [table_features(part, key="t", cache_dir=tmp_path).matrix for part in parts[::-1]]
    assert all(map(np.array_equal, first, again[::-1]))
    assert len(list(tmp_path.rglob("terms.txt"))) <= 4


def test_texts_have_the_same_features_whatever_was_read_before(tmp_path):
    alone = table_features(TEXTS[:100], key="t").matrix
    table_features(TEXTS, key="t", cache_dir=tmp_path)
    assert np.array_equal(table_features(TEXTS[:100], key="t", cache_dir=tmp_path).matrix, alone)


def test_another_embedder_drops_the_cache(tmp_path):
    table_features(TEXTS, key="t", cache_dir=tmp_path, embedder=Counting("one"))
    other = Counting("two")
    table_features(TEXTS, key="t", cache_dir=tmp_path, embedder=other)
    assert other.seen
    kept = [json.loads(p.read_text())["embedder"] for p in tmp_path.glob("*/*/manifest.json")]
    assert kept == ["two"]


def test_a_damaged_cache_is_made_again(tmp_path):
    embedder = Counting()
    table_features(TEXTS, key="t", cache_dir=tmp_path, embedder=embedder)
    for path in tmp_path.rglob("*.npy"):
        path.write_bytes(b"no array")
    embedder.seen.clear()
    assert table_features(TEXTS, key="t", cache_dir=tmp_path, embedder=embedder).matrix.shape[0] == len(TEXTS)
    assert embedder.seen
    for path in tmp_path.rglob("manifest.json"):
        path.write_text("{")
    assert table_features(TEXTS, key="t", cache_dir=tmp_path, embedder=embedder).matrix.shape[0] == len(TEXTS)


MANIFEST = {"version": 1, "embedder": "letters", "segments": ["s"], "dimensions": 16}


@pytest.mark.parametrize(
    "manifest",
    ["[" * 100_000, "5", json.dumps({**MANIFEST, "segments": 5}), json.dumps({**MANIFEST, "dimensions": "x"})],
)
@pytest.mark.parametrize("vectors", [np.zeros(60, np.float16), np.zeros((60, 3), np.float16), np.array("x")])
def test_whatever_a_cache_holds_is_made_again(tmp_path, manifest, vectors):
    expected = table_features(TEXTS, key="t", embedder=Counting()).matrix
    table_features(TEXTS, key="t", cache_dir=tmp_path, embedder=Counting())
    for path in tmp_path.rglob("*.vectors.npy"):
        np.save(path, vectors)
    assert np.array_equal(table_features(TEXTS, key="t", cache_dir=tmp_path, embedder=Counting()).matrix, expected)
    for path in tmp_path.rglob("manifest.json"):
        path.write_text(manifest)
    assert np.array_equal(table_features(TEXTS, key="t", cache_dir=tmp_path, embedder=Counting()).matrix, expected)


@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
@pytest.mark.parametrize("place", ["*", "*/letters-*", "*/lsa", "*/lsa/vectors", "*.lock"])
def test_a_link_in_a_cache_that_somebody_sent_changes_no_file_of_another_folder(tmp_path, place):
    expected = table_features(TEXTS, key="t", cache_dir=tmp_path / "made", embedder=Counting()).matrix
    mine = tmp_path / "mine"
    (mine / "page").mkdir(parents=True)
    for path in (mine / "page" / "manifest.json", mine / "manifest.json", mine / "numbers.npy", mine / "terms.txt"):
        path.write_text("mine")
    linked = next(p for p in (tmp_path / "made").glob(place) if p.is_dir() or place == "*.lock")
    shutil.rmtree(linked) if linked.is_dir() else linked.unlink()
    linked.symlink_to(mine if place != "*.lock" else mine / "new")
    before = sorted(mine.rglob("*"))
    for embedder in (Counting(), Counting("other")):
        matrix = table_features(TEXTS, key="t", cache_dir=tmp_path / "made", embedder=embedder).matrix
        assert np.array_equal(matrix, expected)
    assert sorted(mine.rglob("*")) == before and (mine / "manifest.json").read_text() == "mine"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes")
def test_a_pipe_in_a_cache_is_not_waited_for(tmp_path):
    table_features(TEXTS, key="t", cache_dir=tmp_path, embedder=Counting())
    for path in list(tmp_path.rglob("manifest.json")):
        path.unlink()
        os.mkfifo(path)
    assert table_features(TEXTS, key="t", cache_dir=tmp_path, embedder=Counting()).matrix.shape[0] == len(TEXTS)


def test_a_stray_file_of_a_killed_run_is_swept(tmp_path):
    cache = VectorCache(tmp_path / "c", "letters")
    cache.vectors(["a"], content_hashes(["a"]), Counting())
    stray = tmp_path / "c" / "0123.vectors.npy"
    stray.write_bytes(b"half")
    again = VectorCache(tmp_path / "c", "letters")
    again.vectors(["a", "b"], content_hashes(["a", "b"]), Counting())
    assert not stray.exists() and len(VectorCache(tmp_path / "c", "letters")) == 2


def test_segments_are_merged(tmp_path):
    for i in range(40):
        cache = VectorCache(tmp_path / "c", "letters")
        cache.vectors([f"t{i}"], content_hashes([f"t{i}"]), Counting())
    assert len(list((tmp_path / "c").glob("*.vectors.npy"))) <= 17
    embedder = Counting()
    texts = [f"t{i}" for i in range(40)]
    VectorCache(tmp_path / "c", "letters").vectors(texts, content_hashes(texts), embedder)
    assert embedder.seen == []


def test_a_large_matrix_lies_in_a_file_and_is_the_same(tmp_path, monkeypatch):
    plain = table_features(TEXTS, key="t", cache_dir=tmp_path / "a")
    monkeypatch.setattr(table_module, "LARGE", 0)
    mapped = table_features(TEXTS, key="t", cache_dir=tmp_path / "b")
    assert mapped.matrix.base is not None and plain.matrix.base is None
    assert np.array_equal(mapped.matrix, plain.matrix)
    for features in (plain, mapped):  # twice: pages that were let go are read again
        matrix, _ = with_similarity(features, "it is about a delay")
        again, _ = with_similarity(features, "it is about a delay")
        assert np.array_equal(matrix, again) and np.array_equal(matrix[:, :-1], plain.matrix)
    assert not list((tmp_path / "b").rglob("tmp*"))


def test_progress_ends_at_the_number_of_new_texts():
    seen = []
    table_features(TEXTS, embedder=Counting(), progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, len(set(TEXTS))) and seen[-1] == (len(set(TEXTS)), len(set(TEXTS)))


def test_equal_texts_are_one():
    first, index = distinct(content_hashes(["b", "a", "b", None, ""]))
    assert first.tolist() == [0, 1, 3] and index.tolist() == [0, 1, 0, 2, 2]


def test_a_kept_lsa_is_the_same(tmp_path):
    lsa, _ = Lsa.fit_embed(TEXTS)
    save_lsa(tmp_path / "l", lsa)
    again = load_lsa(tmp_path / "l")
    assert again is not None and again.name == lsa.name
    assert np.allclose(lsa.embed(TEXTS[:5]), again.embed(TEXTS[:5]), atol=1e-6)
    (tmp_path / "l" / "idf.npy").write_bytes(b"")
    assert load_lsa(tmp_path / "l") is None


def test_a_store_makes_a_table_once():
    embedder = Counting()
    store = FeatureStore(embedder=embedder)
    store.table(TEXTS, "t")
    embedder.seen.clear()
    store.table(list(TEXTS), "t")
    assert embedder.seen == []


@pytest.mark.slow
def test_features_of_many_rows_need_little_memory_beside_themselves():
    import tracemalloc

    class Wide:
        name = "wide-256"

        def embed(self, texts):
            rng = np.random.default_rng(len(texts))
            return rng.standard_normal((len(texts), 256), dtype=np.float32) / 16

    n = 60_000  # more than an LSA is fitted on
    texts = [f"w{i % 97} w{i % 89} w{i % 83} row{i}" for i in range(n)]
    tracemalloc.start()
    found = table_features(texts, embedder=Wide())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.matrix.shape == (n, 192)
    assert peak * 400_000 / n < 1.35 * 2**30  # of 400,000 rows; the fit and the slices do not grow with them


def test_the_root_logger_stays_as_it_was() -> None:
    code = (
        "import logging, uql\n"
        "from uql.features.static import static_embedder\n"
        "static_embedder()\n"
        "con = uql.connect(ledger=':memory:')\n"
        "con.uql('SELECT 1').fetchall()\n"
        "print(logging.root.handlers, logging.root.level)\n"
        "logging.getLogger('httpx2').info('a request')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"[] {logging.WARNING}" and done.stderr == ""


def test_the_words_and_vectors_of_lsa_are_those_of_scikit_learn() -> None:
    """They were scikit-learn's, and features that a cache holds stay what they were."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.preprocessing import normalize
    from sklearn.utils.extmath import randomized_svd

    from uql.features.lsa import _weighted, right_singular_vectors, vocabulary

    rng = np.random.default_rng(0)
    words = ["plum", "Pear", "été", "x", "red-green", "don't", "2nd", "the", "THE", "of", "straße", ""]
    texts = [" ".join(rng.choice(words, rng.integers(0, 9))) for _ in range(260)]
    for n in (1, 12, 25, 260):
        terms, counts = vocabulary(texts[:n] if n > 1 else ["one plum"])
        counter = CountVectorizer(
            ngram_range=(1, 2), min_df=3 if n >= 200 else 1, max_df=0.5 if n >= 20 else 1.0, dtype=np.float32
        )
        wanted = counter.fit_transform(texts[:n] if n > 1 else ["one plum"])
        assert terms == counter.get_feature_names_out().tolist() and (counts != wanted).nnz == 0
    idf = np.linspace(1, 2, counts.shape[1]).astype(np.float32)
    squares = counts.copy()
    squares.data = (1 + np.log(squares.data)) * idf[squares.indices]
    assert np.array_equal(
        _weighted(counts, idf).data, normalize(squares).data
    )  # to the bit: draws of old ledgers stand
    for matrix in (counts, counts.T.tocsr()):
        theirs = randomized_svd(matrix, n_components=5, n_iter=3, random_state=7)[2]
        np.testing.assert_allclose(right_singular_vectors(matrix, 5, 7), theirs, atol=1e-5)
    assert vocabulary(["", "a b"])[0] == []
