"""dpUGC (Vu, Tran, Jiang 2019): word vectors learned from users with personal budgets.

Run it with: python examples/dpugc.py   (pip install "dptext[accounting,glove]")
"""

import math

import dptext
from dptext.privacy.gaussian import gaussian_epsilon

TEXTS = {
    "strict": "The doctor lied about the test.",
    "standard": "A cup of water for the patient.",
    "open": "The court heard the case of the hospital.",
}


def main() -> None:
    """Compare the accounting of the paper with the true epsilon; then make one noisy release with personal budgets."""
    steps, lot, noise, delta = 1000, 128, 5.0, 1e-5
    printed = steps * gaussian_epsilon(sigma=noise, delta=delta, sensitivity=1.0) / lot
    true = gaussian_epsilon(sigma=noise, delta=delta, sensitivity=math.sqrt(steps))
    print(f"the paper, 1,000 steps: printed epsilon {printed:.1f}, true epsilon {true:.1f}")

    levels = {"strict": 1.0, "standard": 3.0, "open": 8.0}
    people = [
        dptext.Document(text, user=f"{level} person {number}", attributes={"level": level})
        for level, text in TEXTS.items()
        for number in range(100)
    ]
    public = dptext.load_vectors("glove-6b-50d", limit=5_000)
    model = dptext.Cooccurrence(public, epsilon=levels, delta=1e-6, level="level").fit(people)
    print(f"one release, {model.vectors_}")
    budgets = dptext.PersonalBudgets(levels, delta=1e-6)
    for level, statement in model.statements_.items():
        print(f"{level}: {statement.guarantee}, clipping norm {budgets.clipping_norm(level):.2f}")
    print("everybody:", model.statement_.guarantee, sep="")


if __name__ == "__main__":
    main()
