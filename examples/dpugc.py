"""dpUGC (Vu, Tran, Jiang 2019): word vectors learned from users with personal budgets.

Run it with: python examples/dpugc.py   (pip install "dptext[accounting,glove]")
"""

import dptext
from dptext.embeddings.participation import PublishedAccount

TEXTS = {
    "strict": "The doctor lied about the test.",
    "standard": "A cup of water for the patient.",
    "open": "The court heard the case of the hospital.",
}


def main() -> None:
    """Compare the accounting of the paper with the true epsilon; then make one noisy release with personal budgets."""
    paper = PublishedAccount(noise_multiplier=5.0, lot=128, taken_part=1000, samples=1, delta=1e-5)
    print(f"the paper, 1,000 steps: printed epsilon {paper.claimed:.1f}, true epsilon {paper.true:.1f}")

    levels = {"strict": 1.0, "standard": 3.0, "open": 8.0}
    people = [
        dptext.Document(text, user=f"{level} person {number}", attributes={"level": level})
        for level, text in TEXTS.items()
        for number in range(100)
    ]
    public = dptext.load_vectors("glove-6b-50d", limit=5_000)
    model = dptext.Cooccurrence(public, epsilon=levels, delta=1e-6, level="level").fit(people)
    print(f"one release, {model.vectors_}")
    print(dptext.PersonalBudgets(levels, delta=1e-6).table())
    for level, statement in model.statements_.items():
        print(f"{level}: {statement.guarantee}")
    print("everybody:", model.statement_.guarantee, sep="")


if __name__ == "__main__":
    main()
