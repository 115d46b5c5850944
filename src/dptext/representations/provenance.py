"""What an encoder was trained on, and whether those people were promised anything: for its statement."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dptext.errors import ParameterError
from dptext.privacy.statement import Parameter

__all__ = ["Provenance", "exposed_by"]


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Of a training against adversaries.

    Attributes:
        trained_on: the data, in the words of whoever trained; None: not said.
        texts: how many there were.
        public: whether whoever trained declared texts and labels public.
        hidden: the attributes that were to be hidden, with commas in between.
    """

    trained_on: str | None = None
    texts: int = 0
    public: bool = True
    hidden: str = ""

    def __post_init__(self) -> None:
        if self.trained_on is not None and not isinstance(self.trained_on, str):
            raise ParameterError("public_name must be text, or None")
        if isinstance(self.texts, bool) or not isinstance(self.texts, int) or self.texts < 0:
            raise ParameterError("the number of texts must be an integer, 0 if there were none")
        if not isinstance(self.public, bool) or not isinstance(self.hidden, str):
            raise ParameterError("public must be true or false, hidden text")

    def parameters(self) -> dict[str, Parameter]:
        """What identifies the training."""
        return {
            "encoder_trained_on": self.trained_on,
            "encoder_trained_texts": self.texts,
            "encoder_trained_on_public": self.public,
            "encoder_hides": self.hidden,
        }

    def assumptions(self) -> tuple[str, ...]:
        """What is taken for granted about the training, and what it does not promise."""
        name = "texts" if self.trained_on is None else f"'{self.trained_on}'"
        counted = f"{name} ({self.texts} texts, and their labels, if any)"
        promised = (
            f"the promise, if there is one, is that of the noise; that {self.hidden or 'an attribute'} is hidden "
            "beyond it was trained for, not proved"
        )
        if self.texts == 0:
            return ("the trained encoder is public: it was not computed from protected texts", promised)
        if self.public:
            return (
                f"the encoder was trained on {counted}, which whoever trained it declared public: nothing is promised "
                "to those who are in there",
                promised,
            )
        return (
            f"the encoder was trained on {counted} without protection: the promise holds at the release only, for a "
            "trained encoder that stays the same, and not for the documents that it was trained on",
            promised,
        )

    def exposed(self) -> tuple[str, ...]:
        """What the training shows of texts that are not public."""
        if self.public or self.texts == 0:
            return ()
        return (
            "THE DOCUMENTS THAT THE ENCODER WAS TRAINED ON ARE NOT PROTECTED BY ITS TRAINING: whatever the encoder "
            "(with the words that it knows, and a budget that was learnt), vectors made with it, and what is said of "
            "it here show of their texts, labels and attributes",
        )

    def after(self, earlier: Provenance) -> Provenance:
        """Of a training that went on from another one."""
        names = [name for name in (earlier.trained_on, self.trained_on) if name is not None]
        return Provenance(
            trained_on=" and ".join(dict.fromkeys(names)) or None,
            texts=earlier.texts + self.texts,
            public=earlier.public and self.public,
            hidden=self.hidden,
        )

    def as_dict(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)


def exposed_by(encoder: Any) -> tuple[str, ...]:
    """What the training of an encoder shows of texts that are not public; nothing, of one that was not trained here."""
    exposed: tuple[str, ...] = getattr(encoder, "exposed", tuple)()
    return exposed
