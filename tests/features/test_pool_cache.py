"""The cache of public pools: each pool is encoded once, damaged files are not used, and no run needs the cache."""

import stat
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

import dptext.features.features as module
from dptext.errors import ParameterError
from dptext.features.features import encoded_pool, fit_features
from dptext.features.pool import PoolCache, digest_of_texts, pool_cache
from dptext.representations.encoders import CallableEncoder

POOL = [f"{'ab' * (number % 7)} {number}" for number in range(50)]


class Counted(CallableEncoder):
    """Encoder that records its calls; ``known``: it has a digest."""

    def __init__(self, factor=1.0, known=True):
        self.calls, self.known = [], known
        super().__init__(lambda texts: [[factor * len(text), 1.0, text.count("a")] for text in texts], name="counted")

    def encode(self, texts, *, progress=None):
        values = list(texts)
        self.calls.append(len(values))
        return super().encode(values, progress=progress)

    def parameters(self):
        return {**super().parameters(), **({"encoder_sha256": "5"} if self.known else {})}


def files(folder):
    return sorted(folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("known", [True, False])
def test_a_pool_is_encoded_once(tmp_path, known):
    encoder, seen = Counted(known=known), []
    features = fit_features(encoder, POOL, cache=tmp_path, progress=seen.append)
    assert encoder.calls == [50] and seen == [50]
    first, second = (encoded_pool(features, POOL, cache=tmp_path) for _ in range(2))
    assert encoder.calls == ([50] if known else [50, 50, 50])
    for units in (first, second):
        np.testing.assert_array_equal(units, features.units(POOL))
        assert not units.flags.writeable
    encoder.calls.clear()
    assert fit_features(encoder, POOL, cache=tmp_path) == features
    assert encoder.calls == ([] if known else [50])  # a caller's function is identified by its vectors only
    different = fit_features(Counted(2.0, known=False), POOL, cache=tmp_path)
    np.testing.assert_array_equal(encoded_pool(different, POOL, cache=tmp_path), different.units(POOL))
    np.testing.assert_array_equal(encoded_pool(features, POOL[::-1], cache=tmp_path), features.units(POOL[::-1]))
    assert len(encoded_pool(features, [], cache=tmp_path)) == 0


def test_an_interrupted_run_continues_from_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_AT_ONCE", 20)
    encoder, seen = Counted(), []

    def stop(done):
        seen.append(done)
        if done == 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_features(encoder, POOL, cache=tmp_path, progress=stop)
    assert encoder.calls == [20, 20] and seen == [20, 40]
    features = fit_features(encoder, POOL, cache=tmp_path, progress=seen.append)
    assert encoder.calls == [20, 20, 20, 10] and seen == [20, 40, 40, 50]
    assert features == fit_features(Counted(), POOL, cache=False)
    encoded_pool(features, [*POOL, "more"], cache=tmp_path)
    assert encoder.calls == [20, 20, 20, 10, 11]


def test_the_cache_is_optional_and_readable_by_its_owner_only(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("DPTEXT_CACHE", raising=False)
    features = fit_features(Counted(), POOL, cache=False)
    np.testing.assert_array_equal(encoded_pool(features, POOL, cache=False), features.units(POOL))
    assert files(tmp_path) == []
    encoded_pool(features, POOL)
    assert stat.S_IMODE((tmp_path / "dptext").stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in files(tmp_path / "dptext")] == [0o600]
    (tmp_path / "file").write_text("")
    below = tmp_path / "file" / "below"  # nothing can be written there
    np.testing.assert_array_equal(encoded_pool(features, POOL, cache=below), features.units(POOL))
    results = []
    threads = [Thread(target=lambda: results.append(encoded_pool(features, POOL, cache=tmp_path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8 and all((entry == results[0]).all() for entry in results)


@pytest.mark.parametrize("damage", ["cut", "header", "folder"])
def test_damaged_and_foreign_files_are_not_used(tmp_path, damage):
    cache = PoolCache(tmp_path)
    array = np.arange(12, dtype=np.float32).reshape(4, 3)
    cache.put("one", (4, 3), array)
    (file,) = files(tmp_path)
    np.testing.assert_array_equal(np.load(file), array)
    content = file.read_bytes()
    if damage == "folder":
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(content[:-1] if damage == "cut" else content.replace(b"(4, 3)", b"(3, 4)"))
    assert cache.get("one", (4, 3)) is None
    output = cache.put("one", (4, 3), array)
    if damage == "folder":
        assert output is None
    else:
        np.testing.assert_array_equal(output, array)
    assert cache.get("one", (3, 4)) is None


def test_the_folder_of_the_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("DPTEXT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert pool_cache(None)._folder == tmp_path / "dptext"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert pool_cache(None)._folder == tmp_path / "home" / ".cache" / "dptext"
    monkeypatch.setenv("DPTEXT_CACHE", str(tmp_path / "x"))
    assert pool_cache(None)._folder == tmp_path / "x" and pool_cache("y")._folder == Path("y")
    for off in ("", "off", " OFF "):
        monkeypatch.setenv("DPTEXT_CACHE", off)
        assert pool_cache(None)._folder is None
    with pytest.raises(ParameterError, match="cache must be a path"):
        pool_cache(7)
    lists = [[], [""], ["", ""], ["ab"], ["a", "b"], ["1:a"], ["a", "1:"], ["\ud800"]]
    assert len({digest_of_texts(entry) for entry in lists}) == len(lists)
