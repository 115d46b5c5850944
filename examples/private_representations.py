"""Devices send private vectors to an untrusted server, which learns from them.

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
    """Fit on public texts, save, load on a device, send, learn, return the model, and audit the guarantee."""
    public_texts, public_labels = _reviews(OTHER_ADJECTIVES)
    private_texts, labels = _reviews(ADJECTIVES)
    with TemporaryDirectory() as folder:
        # The organiser fits centre and projection on public texts, for an epsilon of 4 for each text.
        fitted = dptext.PrivateEncoder(
            dptext.load_vectors("glove-6b-50d", limit=5_000),
            dptext.PrivUnit(epsilon=4.0),
            dimension=4,
            projection="supervised",
            public_name="made-up reviews",
        ).fit(public_texts, public_labels)
        fitted.save(Path(folder) / "encoder")

        # The device needs numpy only. Each call is a new release of these texts with its own privacy loss.
        device = dptext.DeviceEncoder.load(Path(folder) / "encoder")
        received = device.encode(private_texts)
        print(f"Any text: {device.statement.guarantee}")

        # The server knows the noise and accounts for it.
        server = dptext.NoisyClassifier(channel=device.statement).fit(received, labels)
        print(f"Accuracy for private vectors: {server.score(received, labels):.2f}")

        # The returned model classifies vectors without noise, which never leave the device.
        predicted = server.device_model().predict(device.clean(private_texts))
        print(f"Accuracy on the device: {sum(predicted == labels) / len(labels):.2f}")

        # The audit samples the channel of the device and tries to refute its guarantee.
        verdict = dptext.audit(device)
        print(f"Audit: {verdict.outcome}")


if __name__ == "__main__":
    main()
