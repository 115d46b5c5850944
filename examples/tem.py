"""TEM (Carvalho, Vasiloudis, Feyisetan 2021): words of a text are replaced, and what the epsilon bounds.

Run it with: python examples/tem.py   (pip install "dptext[glove]")
"""

import dptext

TEXT = "My doctor in Berlin was friendly, but the waiting room was cold."


def main() -> None:
    """Print the guarantee of the paper, which holds for distances between words, and the guarantee for a text."""
    words = dptext.load_vectors("glove-6b-50d", limit=20_000)
    for epsilon in (2.0, 4.0, 8.0):
        mechanism = dptext.TEM(words, epsilon=epsilon)
        private = dptext.privatize([TEXT], mechanism)
        doctor = mechanism.probabilities("doctor")[words.words.index("doctor")]
        print(f"printed epsilon {epsilon:g}, true epsilon {epsilon:g} per unit of distance between two words;")
        print(f"  for any two words {mechanism.statement.epsilon:.1f}; 'doctor' stays in {doctor:.0%}")
        print(f"  {private.texts[0]}")

    # The same mechanism with one budget for the whole text: a protective epsilon leaves random words.
    budgeted = dptext.TEM(words, epsilon=8.0, document_epsilon=12.0, max_words=12)
    private = dptext.privatize([TEXT], budgeted)
    print(f"for the text: {private.statement.guarantee}\n  {private.texts[0]}")


if __name__ == "__main__":
    main()
