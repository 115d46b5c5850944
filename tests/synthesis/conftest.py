"""What tests of generators share: a language model that is as small as one can be."""

import pytest

TEMPLATE = "{% for turn in messages %}[{{ turn.role }}] {{ turn.content }}\n{% endfor %}[assistant] "


@pytest.fixture(scope="session")
def tiny_model_folder(tmp_path_factory):
    """A GPT-2 of two layers with random weights and a tokenizer of bytes, in a folder."""
    folder = tmp_path_factory.mktemp("tiny")
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
    from transformers.utils.logging import disable_progress_bar, enable_progress_bar

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {entry: position for position, entry in enumerate(["<end>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=words, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>", bos_token="<end>")
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    torch.manual_seed(7)
    config = GPT2Config(
        vocab_size=len(words), n_positions=512, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    disable_progress_bar()
    GPT2LMHeadModel(config).save_pretrained(folder)
    enable_progress_bar()
    return folder
