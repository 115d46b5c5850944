"""A language model in a folder, as a source of texts: it runs in this process, and nothing leaves the machine."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
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
from dptext.synthesis.prompts import (
    EXAMPLES,
    HINTS,
    PROMPTS_SHA256,
    Request,
    batches,
    cleaned,
    label_in_words,
    model_assumptions,
    proposal,
    texts_of,
    turned,
    variation,
)

_ITEM = "- "
_LIKELIEST = 1024


class LocalModel:
    """Local language model in a transformers folder (extra ``local-models``).

    Nothing is downloaded, no code of the folder is run, and weights are read from safetensors only, never from pickles.
    A model with a chat template gets a request for each text; another model continues a list of examples under a
    heading, up to the end of the line.

    **Guarantee.** The texts are post-processing: the model receives public text, parts of the release and its own
    texts. Assumption: it was not trained on the private texts.

    Args:
        folder: folder of the model, with ``config.json``, a tokenizer and ``*.safetensors``.
        about: public description of the texts, such as ``"questions to a bank's assistant, one sentence each"``.
        temperature: sampling temperature; 0 takes the most likely token.
        top_p: tokens are drawn from the most likely ones that together have this probability.
        max_tokens: maximum length of a text in tokens.
        batch_size: number of texts that are written at a time.
        device: device of torch, such as ``"cuda"``.
        seed: sampling seed, which does not affect any guarantee; None draws one.

    Raises:
        ParameterError: no such folder, or none of a model that may be loaded; a number out of range.
        MissingExtraError: torch or transformers is not installed.
    """

    name = "a language model on the curator's machine"

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
        for package in ("torch", "transformers"):
            extra(package, "local-models", "LocalModel")
        self.folder = _check_folder(folder)
        self.about = validation.check_text("about", about) if about != "" else ""
        self.temperature = validation.check_float("temperature", temperature, minimum=0)
        self.top_p = validation.check_float("top_p", top_p, above=0, maximum=1)
        self.max_tokens = validation.check_int("max_tokens", max_tokens, minimum=1)
        self.batch_size = validation.check_int("batch_size", batch_size, minimum=1)
        self.device = validation.check_text("device", device)
        self.seed = None if seed is None else validation.check_int("seed", seed)

    def propose(self, request: Request) -> list[str]:
        """Return up to ``request.count`` new texts of a label.

        Raises:
            ParameterError: the folder is none of a model that can be loaded.
            SourceError: the model failed.
        """
        if self._has_chat_template:
            prompts = [self._chat(proposal(request, 1, about=self.about, turn=turn)) for turn in range(request.count)]
        else:
            prompts = [
                self._list(request, turned(request.examples, turn, EXAMPLES), turn) for turn in range(request.count)
            ]
        return self._write(prompts)

    def vary(self, texts: Iterable[str], request: Request) -> list[str]:
        """Return variations of texts; raises the same errors as `propose`."""
        parts = enumerate(batches(texts, request.count, 1))
        if self._has_chat_template:
            return self._write(
                [self._chat(variation(part, request, about=self.about, turn=turn)) for turn, part in parts]
            )
        return self._write([self._list(request, part, turn) for turn, part in parts])

    def parameters(self) -> dict[str, Parameter]:
        return {
            "generator": self.name,
            "generator_model": self.folder.resolve().name,
            "generator_model_sha256": self.sha256,
            "generator_about": self.about,
            "generator_temperature": self.temperature,
            "generator_top_p": self.top_p,
            "generator_max_tokens": self.max_tokens,
            "generator_prompts_sha256": PROMPTS_SHA256,
        }

    def assumptions(self) -> tuple[str, ...]:
        return model_assumptions(self.folder.resolve().name)

    def exposed(self) -> tuple[str, ...]:
        return ()

    @cached_property
    def sha256(self) -> str:
        """Digest of the folder's files."""
        return folder_digest(self.folder)

    def __repr__(self) -> str:
        return f"LocalModel({self.folder.name!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_loaded", "_bits")}

    @property
    def _has_chat_template(self) -> bool:
        return bool(getattr(self._loaded[0], "chat_template", None))

    def _chat(self, messages: tuple[str, str]) -> list[int]:
        system, user = messages
        tokenizer = self._loaded[0]
        turns = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        try:
            filled = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        except Exception:  # noqa: BLE001  a template without a system role raises an error of its own
            turns = [{"role": "user", "content": f"{system}\n\n{user}"}]
            filled = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
        return list(tokenizer(filled, add_special_tokens=False)["input_ids"])

    def _list(self, request: Request, examples: Sequence[str], turn: int) -> list[int]:
        text = "; ".join(filter(None, [self.about, label_in_words(request.label)])) or "texts"
        hints = ", ".join(turned(request.hints, turn, HINTS))
        lines = [f"{text} ({hints}):" if hints else f"{text}:", ""]
        lines += [_ITEM + " ".join(example.split()) for example in examples]
        return list(self._loaded[0]("\n".join([*lines, _ITEM.rstrip()]))["input_ids"])

    @cached_property
    def _bits(self) -> RandomBits:
        return RandomBits(self.seed)

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        transformers = extra("transformers", "local-models", "LocalModel")
        local = {"local_files_only": True, "trust_remote_code": False}
        with _quiet(transformers):
            try:
                tokenizer = transformers.AutoTokenizer.from_pretrained(str(self.folder), **local)
                model = transformers.AutoModelForCausalLM.from_pretrained(
                    str(self.folder), use_safetensors=True, **local
                )
                return tokenizer, model.to(self.device).eval()
            except Exception as error:  # noqa: BLE001  of any kind: a folder may hold anything
                raise ParameterError(
                    f"transformers cannot load the model {self.folder.name!r} ({type(error).__name__}): give the "
                    "whole folder of a causal language model that needs no code of its own"
                ) from None

    def _write(self, prompts: Sequence[list[int]]) -> list[str]:
        """Return the texts that the model wrote, at most one per prompt."""
        order = sorted(range(len(prompts)), key=lambda place: len(prompts[place]))  # so that little is padded
        answers = [""] * len(prompts)
        for start in range(0, len(order), self.batch_size):
            part = order[start : start + self.batch_size]
            for place, answer in zip(part, self._answers([prompts[place] for place in part]), strict=True):
                answers[place] = answer
        if self._has_chat_template:
            return [text for answer in answers for text in texts_of(answer, 1)]
        return [line for answer in answers if (line := cleaned(answer.strip().partition("\n")[0]))]

    def _answers(self, prompts: Sequence[list[int]]) -> list[str]:
        """Return the answers to a batch of prompts."""
        torch, transformers = (extra(package, "local-models", "LocalModel") for package in ("torch", "transformers"))
        tokenizer, model = self._loaded
        places = getattr(model.config, "max_position_embeddings", None)
        if isinstance(places, int):
            if places <= self.max_tokens:
                raise ParameterError(
                    f"max_tokens must be below the {places:,} positions of the model, to allow for a prompt, "
                    f"got {self.max_tokens:,}"
                )
            prompts = [prompt[-(places - self.max_tokens) :] for prompt in prompts]
        width = max(map(len, prompts))
        ends = getattr(model.generation_config, "eos_token_id", None)
        ends = [*(ends if isinstance(ends, list) else [ends]), tokenizer.eos_token_id]
        ends = list(dict.fromkeys(token for token in ends if token is not None))
        padding = tokenizer.pad_token_id
        if padding is None:
            padding = ends[0] if ends else 0
        tokens = np.full((len(prompts), width), padding, dtype=np.int64)
        present = np.zeros((len(prompts), width), dtype=np.int64)
        for row, prompt in enumerate(prompts):  # on the left, so that all continue at the same place
            tokens[row, width - len(prompt) :], present[row, width - len(prompt) :] = prompt, 1
        stopping = [] if self._has_chat_template else [_EndOfLine(tokenizer, width)]
        with _quiet(transformers), torch.inference_mode():
            try:
                generated = model.generate(
                    torch.from_numpy(tokens).to(self.device),
                    attention_mask=torch.from_numpy(present).to(self.device),
                    generation_config=transformers.GenerationConfig(
                        max_new_tokens=self.max_tokens,
                        do_sample=False,
                        eos_token_id=ends or None,
                        pad_token_id=padding,
                    ),
                    logits_processor=transformers.LogitsProcessorList([self._draw]),
                    stopping_criteria=transformers.StoppingCriteriaList(stopping),
                )
            except (RuntimeError, ValueError, IndexError, TypeError) as error:  # out of memory, mostly
                raise SourceError(
                    f"the model {self.folder.name!r} failed on {len(prompts)} prompts at one time "
                    f"({type(error).__name__}): try a smaller batch_size or max_tokens"
                ) from None
        return list(tokenizer.batch_decode(generated[:, width:].tolist(), skip_special_tokens=True))

    def _draw(self, _: Any, scores: Any) -> Any:
        """Scores that leave one token of each row, drawn by our own random bits: torch's generator is shared by all."""
        torch = extra("torch", "local-models", "LocalModel")
        if self.temperature == 0:
            token = scores.argmax(dim=-1, keepdim=True)
        else:
            chances = (scores.double() / self.temperature).softmax(dim=-1)
            likeliest, order = chances.topk(min(_LIKELIEST, scores.shape[-1]), dim=-1)
            if bool((likeliest.sum(dim=-1) < self.top_p).any()):  # seldom: to sort all takes longer than a small model
                likeliest, order = chances.sort(dim=-1, descending=True)
            before = likeliest.cumsum(dim=-1) - likeliest
            likeliest = torch.where(before < self.top_p, likeliest, 0.0)
            reached = likeliest.cumsum(dim=-1)
            uniform = torch.from_numpy(1.0 - self._bits.uniform(len(scores), 1)).to(scores.device)  # in [0, 1)
            place = torch.searchsorted(reached, uniform * reached[:, -1:], right=True)
            token = order.gather(-1, place.clamp(max=order.shape[-1] - 1))
        return torch.full_like(scores, -torch.inf).scatter(-1, token, 0.0)


class _EndOfLine:
    """Stops each row once a line of it has ended."""

    def __init__(self, tokenizer: Any, width: int) -> None:
        self._tokenizer, self._width = tokenizer, width

    def __call__(self, tokens: Any, *_: Any, **__: Any) -> Any:
        torch = extra("torch", "local-models", "LocalModel")
        written = self._tokenizer.batch_decode(tokens[:, self._width :].tolist())
        return torch.tensor(["\n" in entry.lstrip() for entry in written], device=tokens.device)


def _check_folder(folder: PathLike) -> Path:
    path = validation.check_path("folder", folder)
    if not path.is_dir():
        raise ParameterError(f"expected the folder of a model, {path.name!r} is none; nothing is downloaded here")
    if not (path / "config.json").is_file():
        raise ParameterError(f"expected the folder of a model, {path.name!r} has no config.json")
    if not any(path.glob("*.safetensors")):
        raise ParameterError(f"{path.name!r} has no *.safetensors: convert its weights, since pickles may run any code")
    if (path / "adapter_config.json").exists():
        raise ParameterError(f"{path.name!r} holds an adapter: merge it into its model, and give that folder")
    return path


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Silence progress bars and advice of transformers; errors are still raised."""
    bars = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
        if bars:
            transformers.utils.logging.enable_progress_bar()
