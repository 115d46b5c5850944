"""Devices send private vectors to a server that nobody trusts, and it learns from them: the whole path.

Run it with: python examples/private_representations.py   (pip install "dptext[audit,glove,sklearn]")
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import dptext

ADJECTIVES = {1: ["lovely", "excellent", "friendly", "clean"], 0: ["awful", "terrible", "rude", "dirty"]}
OTHER_ADJECTIVES = {1: ["great", "wonderful", "perfect", "pleasant"], 0: ["bad", "horrible", "nasty", "broken"]}
NOUNS = ["room", "staff", "kitchen", "garden", "breakfast", "street", "hotel", "waiter"]


def _reviews(adjectives: dict[int, list[str]]) -> tuple[list[str], list[int]]:
    texts = [f"The {noun} was {word}." for words in adjectives.values() for word in words for noun in NOUNS]
    return texts, [label for label, words in adjectives.items() for _ in words for _ in NOUNS]


def main() -> None:
    """Fit on public texts, save, load on a device, send, learn, send the model back, and audit the promise."""
    public_texts, public_labels = _reviews(OTHER_ADJECTIVES)
    private_texts, labels = _reviews(ADJECTIVES)
    with TemporaryDirectory() as folder:
        # Whoever runs the study: centre and projection from public texts, for a budget of 4 nats a text.
        fitted = dptext.PrivateEncoder(
            dptext.load_vectors("glove-6b-50d", limit=5_000),
            dptext.PrivUnit(epsilon=4.0),
            dimension=4,
            projection="supervised",
            public_name="reviews made up for this example",
        ).fit(public_texts, public_labels)
        fitted.save(Path(folder) / "encoder")

        # A device: numpy is enough. One call is one release of these texts; calling again costs again.
        device = dptext.DeviceEncoder.load(Path(folder) / "encoder")
        sent = device.encode(private_texts)
        print(f"A text: {device.statement.guarantee}, whatever it is")

        # The server knows the noise, and takes it into account.
        server = dptext.NoisyClassifier(channel=device.statement).fit(sent, labels)
        print(f"Accuracy for private vectors: {server.score(sent, labels):.2f}")

        # Sent back, the model meets vectors without noise, which never leave the device.
        at_home = server.device_model().predict(device.clean(private_texts))
        print(f"Accuracy on the device: {sum(at_home == labels) / len(labels):.2f}")

        # Whoever doubts: sample the device's own channel and try to refute it.
        verdict = dptext.audit(device)
        print(f"Audit: {verdict.outcome}")


if __name__ == "__main__":
    main()
