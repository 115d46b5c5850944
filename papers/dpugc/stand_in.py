"""In place of the mechanism until it is there: one noisy release, without the care of the real one."""

from __future__ import annotations

import hashlib

import numpy as np
from scipy import sparse

from dptext import WordVectors
from dptext.evaluation.features import words_of
from dptext.noise.analytic_gaussian import gaussian_sigma
from dptext.privacy.randomness import RandomBits

SKIP = 100
_sums: dict[str, np.ndarray] = {}


def release(documents, public, *, epsilon, delta, seed):
    g = public.matrix.astype(np.float64)
    g = g - g.mean(axis=0)
    unit = g / np.linalg.norm(g, axis=1, keepdims=True)
    key = hashlib.sha256(repr([(d.user, d.text) for d in documents]).encode()).hexdigest()
    if key not in _sums:
        _sums[key] = total(documents, public, unit)
    x, sigma = _sums[key], 0.0
    if epsilon is not None:
        sigma = gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=1.0)
        x = x + sigma * RandomBits(seed).normal(*x.shape)
    size = np.linalg.norm(x, axis=1, keepdims=True)
    x = x - size * (x / np.maximum(size, 1e-9)).mean(axis=0)
    size = np.linalg.norm(x, axis=1, keepdims=True)
    kept = np.maximum(0, 1 - x.shape[1] * sigma**2 / np.maximum(size**2, 1e-9))
    return WordVectors(public.words, unit + 0.6 * kept * x / np.maximum(size, 1e-9))


def total(documents, public, unit):
    rows = {w: r for r, w in enumerate(public.words)}
    seen: dict[str, list[np.ndarray]] = {}
    for d in documents:
        ids = np.array([rows.get(w, -1) for w in words_of(d.text or "")], dtype=np.int64)
        seen.setdefault(d.user, []).append(ids[ids >= SKIP])
    out = np.zeros_like(unit)
    weight = 1.0
    for posts in seen.values():
        gap = np.full(5, -1)
        ids = np.concatenate([np.concatenate([p, gap]) for p in posts])
        one, two = [], []
        for off in range(1, 6):
            a, b = ids[:-off], ids[off:]
            ok = (a >= 0) & (b >= 0)
            one += [a[ok], b[ok]]
            two += [b[ok], a[ok]]
        one, two = np.concatenate(one), np.concatenate(two)
        if not one.size:
            continue
        words, place = np.unique(one, return_inverse=True)
        c = sparse.csr_matrix((np.ones(one.size), (place, two)), shape=(words.size, len(unit)))
        count = np.bincount(place)
        x = (c @ unit) / np.sqrt(count)[:, None]
        x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
        out[words] += x / max(1e-9, np.linalg.norm(x)) * weight
    return out
