"""A pool goes through an encoder once; what lies in the cache is used only if it is whole; nothing needs the cache."""

import os
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
    """Says how often it encoded; an encoder that knows itself by a digest if ``known``."""

    def __init__(self, factor: float = 1.0, known: bool = True) -> None:
        self.calls: list[int] = []
        self.known = known
        super().__init__(lambda texts: [[factor * len(text), 1.0, text.count("a")] for text in texts], name="counted")

    def encode(self, texts, *, progress=None):
        values = list(texts)
        self.calls.append(len(values))
        return super().encode(values, progress=progress)

    def parameters(self):
        return {**super().parameters(), **({"encoder_sha256": "5"} if self.known else {})}


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("known", [True, False])
def test_a_pool_is_encoded_once_in_all(tmp_path: Path, known: bool) -> None:
    encoder = Counted(known=known)
    heard: list[int] = []
    features = fit_features(encoder, POOL, cache=tmp_path, progress=heard.append)
    assert encoder.calls == [50] and heard == [50]
    units = encoded_pool(features, POOL, cache=tmp_path)
    repeated = encoded_pool(features, POOL, cache=tmp_path)
    assert encoder.calls == [50]
    np.testing.assert_array_equal(units, features.units(POOL))
    np.testing.assert_array_equal(repeated, units)
    assert not repeated.flags.writeable
    encoder.calls.clear()
    assert fit_features(encoder, POOL, cache=tmp_path) == features
    assert encoder.calls == ([] if known else [50])  # who a caller's function is, nobody knows before it answers


def test_a_run_that_was_interrupted_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", 10)
    monkeypatch.setattr(module, "_KEPT_TOGETHER", 20)
    encoder = Counted()
    heard: list[int] = []

    def stop(done: int) -> None:
        heard.append(done)
        if done == 40:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_features(encoder, POOL, cache=tmp_path, progress=stop)
    assert encoder.calls == [20, 20] and heard == [20, 40]
    features = fit_features(encoder, POOL, cache=tmp_path, progress=heard.append)
    assert encoder.calls == [20, 20, 20, 10] and heard == [20, 40, 40, 50]
    assert features == fit_features(Counted(), POOL, cache=False)
    encoded_pool(features, [*POOL, "more"], cache=tmp_path)
    assert encoder.calls == [20, 20, 20, 10, 11]


def test_another_pool_and_another_function_are_encoded(tmp_path: Path) -> None:
    encoder, other = Counted(known=False), Counted(2.0, known=False)
    features, different = (fit_features(entry, POOL, cache=tmp_path) for entry in (encoder, other))
    assert features != different
    np.testing.assert_array_equal(encoded_pool(different, POOL, cache=tmp_path), different.units(POOL))
    np.testing.assert_array_equal(encoded_pool(features, POOL[::-1], cache=tmp_path), features.units(POOL[::-1]))
    assert len(encoded_pool(features, [], cache=tmp_path)) == 0


def test_without_a_cache_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("DPTEXT_CACHE", raising=False)
    features = fit_features(Counted(), POOL, cache=False)
    units = encoded_pool(features, POOL, cache=False)
    np.testing.assert_array_equal(units, features.units(POOL))
    assert not units.flags.writeable and files(tmp_path) == []
    encoded_pool(features, POOL)
    assert len(files(tmp_path / "dptext")) == 1


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    encoded_pool(fit_features(Counted(), POOL, cache=tmp_path / "a" / "b"), POOL, cache=tmp_path / "a" / "b")
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in files(tmp_path / "a" / "b")] == [0o600]


@pytest.mark.parametrize("damage", ["cut", "longer", "bit", "header", "moved", "link", "folder", "pipe"])
def test_a_file_that_is_broken_or_foreign_is_made_anew_or_left_alone(tmp_path: Path, damage: str) -> None:
    cache = PoolCache(tmp_path)
    array = np.arange(12, dtype=np.float32).reshape(4, 3)
    cache.put("one", (4, 3), array)
    (file,) = files(tmp_path)
    np.testing.assert_array_equal(np.load(file), array)  # anybody's reader opens it
    content = file.read_bytes()
    file.unlink()
    if damage == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        file.symlink_to(tmp_path / "elsewhere")
    elif damage == "folder":
        file.mkdir()
    elif damage == "pipe":
        os.mkfifo(file)
    else:
        flipped = bytes([content[-40] ^ 1])
        broken = {
            "cut": content[:-1],
            "longer": content + b"x",
            "bit": content[:-40] + flipped + content[-39:],
            "header": content.replace(b"(4, 3)", b"(3, 4)"),
            "moved": content,
        }[damage]
        file.write_bytes(broken)
        if damage == "moved":
            cache.put("two", (4, 3), array + 1)
            (other,) = set(files(tmp_path)) - {file}
            other.replace(file)
    assert cache.get("one", (4, 3)) is None
    output = cache.put("one", (4, 3), array)
    if damage in ("link", "folder", "pipe"):
        assert output is None
    else:
        np.testing.assert_array_equal(output, array)
    assert cache.get("one", (3, 4)) is None


def test_where_nothing_can_be_written_everything_works(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    features = fit_features(Counted(), POOL, cache=tmp_path / "file" / "below")
    np.testing.assert_array_equal(encoded_pool(features, POOL, cache=tmp_path / "file" / "below"), features.units(POOL))


def test_processes_may_share_a_folder(tmp_path: Path) -> None:
    features = fit_features(Counted(), POOL, cache=False)
    result: list[np.ndarray] = []
    threads = [Thread(target=lambda: result.append(encoded_pool(features, POOL, cache=tmp_path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(result) == 8 and all((entry == result[0]).all() for entry in result)
    assert all(file.suffix == ".npy" for file in files(tmp_path))


def test_where_the_cache_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        pool_cache(7)  # type: ignore[arg-type]


def test_no_two_lists_of_texts_share_a_digest() -> None:
    lists = [[], [""], ["", ""], ["ab"], ["a", "b"], ["1:a"], ["a", "1:"], ["\ud800"]]
    assert len({digest_of_texts(entry) for entry in lists}) == len(lists)
