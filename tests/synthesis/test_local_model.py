"""`LocalModel`: prompts, sampling with separate random bits, and refusal of unsafe folders."""

import pickle
import sys

import numpy as np
import pytest
import torch

from dptext.errors import MissingExtraError, ParameterError, SourceError
from dptext.synthesis.local_model import LocalModel
from dptext.synthesis.prompts import Request, Source
from synthesis.conftest import TEMPLATE

REQUEST = Request({"topic": "sports"}, ("game", "season"), 5, ("An example\nin two lines.",))
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + TEMPLATE


def local(folder, **options):
    return LocalModel(folder, **{"max_tokens": 8, "seed": 1} | options)


@pytest.fixture
def folder(tmp_path):
    """A folder that looks like a model, for tests that load none, since loading takes long."""
    (tmp_path / "model").mkdir()
    for name in ("config.json", "model.safetensors"):
        (tmp_path / "model" / name).write_text("{}")
    return tmp_path / "model"


def record_prompts(model, monkeypatch, answer):
    """Return a list that receives the prompts, as text; every answer is the same."""
    seen = []

    def answers(prompts):
        seen.extend(model._loaded[0].decode(prompt) for prompt in prompts)
        return [answer] * len(prompts)

    monkeypatch.setattr(model, "_answers", answers)
    return seen


@pytest.mark.slow
def test_a_model_writes_lines_without_printing(tiny_model_folder, capfd):
    model = local(tiny_model_folder, batch_size=2)
    assert isinstance(model, Source)
    for texts in (model.propose(REQUEST), model.vary(["An own text."], REQUEST)):
        assert 0 < len(texts) <= 5
        assert all(text == text.strip() and "\n" not in text for text in texts)
    assert model.propose(Request({}, (), 0)) == model.vary([], REQUEST) == []
    assert capfd.readouterr() == ("", "")


def test_the_statement_identifies_the_model(folder):
    text = local(folder, about="short news").parameters()
    assert text["generator_model"] == folder.name
    assert len(text["generator_model_sha256"]) == 64
    assert str(folder) not in str(text)
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


@pytest.mark.slow
def test_a_model_without_a_template_is_refused(tiny_model_folder, tmp_path):
    folder = copied(tiny_model_folder, tmp_path)
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ParameterError, match="has no chat template: choose an instruction-tuned model"):
        local(folder).propose(REQUEST)


@pytest.mark.slow
@pytest.mark.parametrize("template", [TEMPLATE, NO_SYSTEM])
def test_a_model_with_a_template_is_asked_by_it(tiny_model_folder, monkeypatch, template):
    model = local(tiny_model_folder)
    model._loaded[0].chat_template = template
    seen = record_prompts(model, monkeypatch, '["A text."]')
    assert model.propose(REQUEST) == ["A text."] * 5
    assert model.vary(["Own text."], Request({}, (), 1)) == ["A text."]
    for prompt in seen:
        assert ("[system] You write" in prompt) == (template is TEMPLATE)
        assert "You write" in prompt
        assert prompt.endswith("[assistant] ")
    assert "topic: sports" in seen[0]
    assert '["Own text."]' in seen[-1]


@pytest.mark.slow
def test_long_prompts_are_cut_in_front(tiny_model_folder, monkeypatch):
    model = local(tiny_model_folder)
    seen = []
    generate = model._loaded[1].generate
    monkeypatch.setattr(
        model._loaded[1], "generate", lambda tokens, **more: seen.append(tokens) or generate(tokens, **more)
    )
    prompt = [place % 250 for place in range(2000)]
    model._answers([prompt])
    assert seen[0][0].tolist() == prompt[-(512 - 8) :]
    with pytest.raises(ParameterError, match="below the 512 positions of the model"):
        local(tiny_model_folder, max_tokens=600).propose(REQUEST)


@pytest.mark.slow
def test_neighbours_in_a_batch_change_no_greedy_text(tiny_model_folder):
    one, many = (local(tiny_model_folder, temperature=0, batch_size=size) for size in (1, 8))
    texts = ["short", "a much longer text, to be padded to", "x"]
    assert one.vary(texts, Request({}, (), 3)) == many.vary(texts, Request({}, (), 3))


# -- sampling -------------------------------------------------------------------------------------------------


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
        draws = model._draw(None, torch.log(torch.tensor([[0.1, 0.6, 0.3]])).repeat(1000, 1))
        assert torch.equal((draws == 0).sum(dim=-1), torch.ones(1000, dtype=torch.int64))
        result = (draws == 0).double().mean(dim=0)
        assert torch.allclose(result, torch.tensor(expected, dtype=torch.double), atol=0.0011)


# -- refusals -------------------------------------------------------------------------------------------------


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

    monkeypatch.setattr(model._loaded[1], "generate", out_of_memory)
    with pytest.raises(SourceError, match=r"failed on 5 prompts in one batch \(OutOfMemoryError\)") as caught:
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
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    for unsuitable in (tmp_path / "nowhere", tmp_path, folder):
        with pytest.raises(
            ParameterError, match=r"must be the folder of a model with config\.json and \*\.safetensors"
        ):
            local(unsuitable)
    (folder / "pytorch_model.bin").rename(folder / "model.safetensors")
    for package in ("torch", "transformers"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, package, None)
            with pytest.raises(MissingExtraError, match=r'pip install "dptext\[local-models\]"'):
                local(folder)
