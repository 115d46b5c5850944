"""From rows to tables: means over the splits, 95% intervals, and what private training adds on the same splits."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path

import numpy as np

FIELDS = ("encoder", "set", "run", "batch", "setting", "meets", "epsilon", "dimension", "accuracy")
LEVEL = {"IMDb": 67.0, "Amazon": 66.0, "Yelp": 65.0}  # OME, lambda 100, with a linear model
# two-sided 95% points of Student's t, by degrees of freedom (tables in any textbook)
STUDENT = {1: 12.706, 2: 4.303, 4: 2.776, 9: 2.262, 19: 2.093}

Key = tuple[str, str, str, str]  # encoder, setting, meets, epsilon
Accuracies = dict[Key, dict[str, dict[int, float]]]  # then set, run


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def by_setting(rows: list[dict[str, str]]) -> Accuracies:
    result: Accuracies = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        key = (row["encoder"], row["setting"], row["meets"], row["epsilon"])
        result[key][row["set"]][int(row["run"])] = 100 * float(row["accuracy"])
    return result


def interval(values: list[float]) -> tuple[float, float]:
    """Mean, and half the width of its 95% interval (Student's t over splits)."""
    count = len(values)
    if count < 2:
        return float(np.mean(values)), float("nan")
    return float(np.mean(values)), STUDENT.get(count - 1, 1.96) * float(np.std(values, ddof=1)) / count**0.5


def over_sets(found: dict[str, dict[int, float]]) -> list[float]:
    """For each run the mean over the three sets."""
    runs = set.intersection(*(set(entry) for entry in found.values()))
    return [float(np.mean([entry[run] for entry in found.values()])) for run in sorted(runs)]


def difference(one: dict[str, dict[int, float]], other: dict[str, dict[int, float]]) -> dict[str, list[float]]:
    """Run by run, on the same split."""
    return {name: [one[name][run] - other[name][run] for run in sorted(one[name])] for name in one}


def write_tables(rows: list[dict[str, str]], folder: Path) -> None:
    """summary, gain, dimensions and smallest as CSV, and the figure where matplotlib is installed."""
    result = by_setting(rows)
    with (folder / "summary.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("encoder", "setting", "meets", "epsilon", "set", "runs", "mean", "half_interval"))
        for key, sets in result.items():
            for name, runs in sets.items():
                values = [runs[run] for run in sorted(runs)]
                writer.writerow((*key, name, len(values), *(f"{entry:.2f}" for entry in interval(values))))
    _write_gain(result, folder / "gain.csv")
    _write_dimensions(rows, folder / "dimensions.csv")
    _write_smallest(result, folder / "smallest.csv")
    try:
        from papers.ome.figure import draw
    except ImportError:
        print('no figure: pip install "dptext[report]"')
        return
    draw(result, folder.parent if folder.name == "results" else folder)


def _write_gain(found: Accuracies, path: Path) -> None:
    """What private training adds to the public sets alone, on the same splits."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("encoder", "setting", "meets", "epsilon", "set", "mean_gain", "half_interval"))
        for (encoder, setting, meets, epsilon), sets in found.items():
            control = (encoder, "public alone", "clean" if meets == "clean" else "one bit", epsilon)
            if meets == "clean":
                control = (encoder, "public alone", "clean", "0")
            if setting in ("public alone", "majority") or control not in found:
                continue
            for name, values in difference(sets, found[control]).items():
                writer.writerow(
                    (encoder, setting, meets, epsilon, name, *(f"{entry:.2f}" for entry in interval(values)))
                )


def _write_dimensions(rows: list[dict[str, str]], path: Path) -> None:
    chosen = {
        (row["encoder"], row["setting"], row["meets"], float(row["epsilon"]), row["set"]): row["dimension"]
        for row in rows
        if row["setting"] in ("principal", "supervised")
    }
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("encoder", "setting", "meets", "epsilon", "set", "dimension"))
        writer.writerows((*key, dimension) for key, dimension in sorted(chosen.items()))


def _write_smallest(found: Accuracies, path: Path) -> None:
    """The epsilon at which one bit of the public model reaches OME's level, as measured before and as measured here.

    A decision that is right with probability A and kept with p = e^epsilon / (1 + e^epsilon) is right with
    1/2 + (A - 1/2) tanh(epsilon / 2), solved for epsilon; A is the mean over the splits.
    """
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("encoder", "level", "set", "accuracy_wanted", "accuracy_without_noise", "epsilon"))
        for encoder in ("glove", "minilm"):
            right = found.get((encoder, "public alone", "one bit", "64"))
            measured = next((sets for key, sets in found.items() if key[1] == "OME as published"), None)
            if right is None or measured is None:
                continue
            for name in right:
                best = interval(list(right[name].values()))[0]
                for level, target in (
                    ("measured before", LEVEL[name]),
                    ("measured here", interval(list(measured[name].values()))[0]),
                ):
                    ratio = (target - 50) / (best - 50)
                    epsilon = f"{2 * math.atanh(ratio):.2f}" if ratio < 1 else "inf"
                    writer.writerow((encoder, level, name, f"{target:.1f}", f"{best:.1f}", epsilon))
