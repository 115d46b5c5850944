"""Text source for a language model in a folder, which runs in this process; no data leaves the machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dptext import validation
from dptext.errors import ParameterError, SourceError, extra
from dptext.io.artifacts import folder_digest
from dptext.io.documents import PathLike
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.synthesis.prompts import LanguageModel, texts_of

_LIKELIEST = 1024  # tokens; sorting the vocabulary is slower than a small model


class LocalModel(LanguageModel):
    """Local language model in a transformers folder (extra ``local-models``).

    The model needs a chat template, as instruction-tuned models have. Nothing is downloaded, code in the folder is not
    run, and weights are read from safetensors only, never from pickles.

    **Guarantee.** The texts are post-processing: the model receives public text, parts of the release and its own
    texts. Assumption: it was not trained on the private texts.

    Args:
        folder: folder of the model, with ``config.json``, a tokenizer and ``*.safetensors``.
        about: public description of the texts, such as ``"questions to a bank's assistant, one sentence each"``.
        temperature: sampling temperature; 0 takes the most likely token.
        top_p: tokens are drawn from the most likely ones (at most 1,024) that together have this probability.
        max_tokens: maximum length of a text in tokens.
        batch_size: number of texts generated at a time.
        device: torch device, such as ``"cuda"``.
        seed: sampling seed, which does not affect any guarantee; None draws one.

    Raises:
        ParameterError: the folder is missing or has no loadable model, or a number is out of range.
        MissingExtraError: torch or transformers is not installed.
    """

    name = "a language model on the curator's machine"
    texts_per_call = 1

    def __init__(
        self,
        folder: PathLike,
        *,
        about: str = "",
        temperature: float = 1.0,
        top_p: float = 0.95,
        max_tokens: int = 128,
        batch_size: int = 16,
        device: str = "cpu",
        seed: int | None = None,
    ) -> None:
        self.folder = _check_folder(folder)  # before packages that take seconds to import
        for package in ("torch", "transformers"):
            extra(package, "local-models", "LocalModel")
        self.model = self.folder.resolve().name
        self.about = validation.check_text("about", about) if about != "" else ""
        self.temperature = validation.check_float("temperature", temperature, minimum=0)
        self.top_p = validation.check_float("top_p", top_p, above=0, maximum=1)
        self.max_tokens = validation.check_int("max_tokens", max_tokens, minimum=1)
        self.batch_size = validation.check_int("batch_size", batch_size, minimum=1)
        self.device = validation.check_text("device", device)
        self.seed = None if seed is None else validation.check_int("seed", seed)

    def parameters(self) -> dict[str, Parameter]:
        return super().parameters() | {
            "generator_model_sha256": self.sha256,
            "generator_temperature": self.temperature,
            "generator_top_p": self.top_p,
            "generator_max_tokens": self.max_tokens,
        }

    def exposed(self) -> tuple[str, ...]:
        return ()

    @cached_property
    def sha256(self) -> str:
        """SHA-256 digest of the folder's files."""
        return folder_digest(self.folder)

    def __repr__(self) -> str:
        return f"LocalModel({self.folder.name!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_loaded", "_bits")}

    @cached_property
    def _bits(self) -> RandomBits:
        return RandomBits(self.seed)

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        """Tokenizer and model."""
        transformers = extra("transformers", "local-models", "LocalModel")
        transformers.utils.logging.disable_progress_bar()
        transformers.utils.logging.set_verbosity(transformers.utils.logging.CRITICAL)
        folder, options = str(self.folder), {"local_files_only": True, "trust_remote_code": False}
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True, **options)
        except Exception as error:  # noqa: BLE001  a folder may contain anything
            raise ParameterError(
                f"transformers cannot load the model {self.folder.name!r} ({type(error).__name__}): provide the "
                "complete folder of a causal language model that needs no custom code"
            ) from None
        if not tokenizer.chat_template:
            raise ParameterError(
                f"the model {self.folder.name!r} has no chat template: choose an instruction-tuned model"
            )
        return tokenizer, model.to(self.device).eval()

    def _write(self, prompts: Sequence[tuple[tuple[str, str], int]]) -> list[str]:
        inputs = [self._tokens(*messages) for messages, _ in prompts]
        order = sorted(range(len(inputs)), key=lambda place: len(inputs[place]))  # reduces padding
        answers = [""] * len(inputs)
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            for place, answer in zip(batch, self._answers([inputs[place] for place in batch]), strict=True):
                answers[place] = answer
        return [text for answer in answers for text in texts_of(answer, 1)]

    def _tokens(self, system: str, user: str) -> list[int]:
        tokenizer = self._loaded[0]
        turns = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        try:
            filled = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        except Exception:  # noqa: BLE001  templates without a system role raise any error
            turns = [{"role": "user", "content": f"{system}\n\n{user}"}]
            filled = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        return list(tokenizer(filled, add_special_tokens=False)["input_ids"])

    def _answers(self, prompts: Sequence[list[int]]) -> list[str]:
        """Return the answers for a batch of prompts."""
        torch, transformers = (extra(package, "local-models", "LocalModel") for package in ("torch", "transformers"))
        tokenizer, model = self._loaded
        positions = getattr(model.config, "max_position_embeddings", None)
        if isinstance(positions, int):
            if positions <= self.max_tokens:
                raise ParameterError(
                    f"max_tokens must be below the {positions:,} positions of the model, to allow for a prompt, "
                    f"got {self.max_tokens:,}"
                )
            prompts = [prompt[-(positions - self.max_tokens) :] for prompt in prompts]
        width = max(map(len, prompts))
        ends = getattr(model.generation_config, "eos_token_id", None)
        ends = [*(ends if isinstance(ends, list) else [ends]), tokenizer.eos_token_id]
        ends = list(dict.fromkeys(token for token in ends if token is not None))
        padding = tokenizer.pad_token_id
        if padding is None:
            padding = ends[0] if ends else 0
        tokens = np.full((len(prompts), width), padding, dtype=np.int64)
        present = np.zeros((len(prompts), width), dtype=np.int64)
        for row, prompt in enumerate(prompts):  # pad on the left, so that all continue at the same position
            tokens[row, width - len(prompt) :], present[row, width - len(prompt) :] = prompt, 1
        config = transformers.GenerationConfig(
            max_new_tokens=self.max_tokens, do_sample=False, eos_token_id=ends or None, pad_token_id=padding
        )
        try:
            with torch.inference_mode():
                generated = model.generate(
                    torch.from_numpy(tokens).to(self.device),
                    attention_mask=torch.from_numpy(present).to(self.device),
                    generation_config=config,
                    logits_processor=transformers.LogitsProcessorList([self._draw]),
                )
        except (RuntimeError, ValueError, IndexError, TypeError) as error:  # usually out of memory
            raise SourceError(
                f"the model {self.folder.name!r} failed on {len(prompts)} prompts in one batch "
                f"({type(error).__name__}): try a smaller batch_size or max_tokens"
            ) from None
        return list(tokenizer.batch_decode(generated[:, width:].tolist(), skip_special_tokens=True))

    def _draw(self, _: Any, scores: Any) -> Any:
        """Return scores that allow one token per row, drawn with separate random bits (torch's generator is global)."""
        torch = extra("torch", "local-models", "LocalModel")
        if self.temperature == 0:
            token = scores.argmax(dim=-1, keepdim=True)
        else:
            chances = (scores.double() / self.temperature).softmax(dim=-1)
            likeliest, order = chances.topk(min(_LIKELIEST, scores.shape[-1]), dim=-1)
            before = likeliest.cumsum(dim=-1) - likeliest
            likeliest = torch.where(before < self.top_p, likeliest, 0.0)
            reached = likeliest.cumsum(dim=-1)
            uniform = torch.from_numpy(1.0 - self._bits.uniform(len(scores), 1)).to(scores.device)  # in [0, 1)
            place = torch.searchsorted(reached, uniform * reached[:, -1:], right=True)
            token = order.gather(-1, place.clamp(max=order.shape[-1] - 1))
        return torch.full_like(scores, -torch.inf).scatter(-1, token, 0.0)


def _check_folder(folder: PathLike) -> Path:
    path = validation.check_path("folder", folder)
    if not (path / "config.json").is_file() or not any(path.glob("*.safetensors")):
        raise ParameterError(
            f"{path.name!r} must be the folder of a model with config.json and *.safetensors; nothing is downloaded, "
            "and pickled weights are not read"
        )
    return path
