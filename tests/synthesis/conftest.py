"""Tiny language models for tests of generators."""

import pytest

TEMPLATE = "{% for turn in messages %}[{{ turn.role }}] {{ turn.content }}\n{% endfor %}[assistant] "


def save_tiny_model(config, folder):
    """Save a model with random weights and a tokenizer of bytes; about a fifth of its tokens end a line."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
    from transformers.utils.logging import disable_progress_bar, enable_progress_bar

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {entry: place for place, entry in enumerate(["<end>", *alphabet, *(f"{a}Ċ" for a in alphabet[:64])])}
    tokenizer = Tokenizer(models.BPE(vocab=words, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>", bos_token="<end>")
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    torch.manual_seed(7)
    config.vocab_size = len(words)
    model = AutoModelForCausalLM.from_config(config)
    for weights in model.parameters():
        if weights.dim() > 1:
            torch.nn.init.normal_(weights, std=0.3)  # with the usual .02, a text depends little on the prompt
    disable_progress_bar()
    model.save_pretrained(folder)
    enable_progress_bar()
    return folder


@pytest.fixture(scope="session")
def tiny_model_folder(tmp_path_factory):
    """A GPT-2 of two layers, in a folder."""
    from transformers import GPT2Config

    sizes = {"n_positions": 512, "n_embd": 16, "n_layer": 2, "n_head": 2, "bos_token_id": 0, "eos_token_id": 0}
    return save_tiny_model(GPT2Config(**sizes, tie_word_embeddings=False), tmp_path_factory.mktemp("tiny"))
