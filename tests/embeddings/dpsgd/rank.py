"""A rank of a training, as torchrun would start it: the tests fork its processes from one that has imported this."""

import os
import signal
from datetime import timedelta

import numpy as np
import torch.distributed as distributed

import dptext
from dptext.embeddings.dpsgd.ranks import TorchRanks
from dptext.errors import DptextError


def train(number, count, meeting, out, job):
    distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=number, world_size=count, timeout=timedelta(seconds=600)
    )
    words = job["words"]
    vectors = dptext.load_vectors((words, np.random.default_rng(1).normal(size=(len(words), job["dimension"]))))
    documents = [dptext.Document(text, user=user) for text, user in job["documents"]]
    options = job["options"]
    if number == count - 1:
        options |= job.get("of the last", {})

    def step(progress):
        if number == job.get("killed") and progress.step == job["killed at"]:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        model = dptext.SkipGram(vectors, **options)
        model.fit(documents, ranks=TorchRanks(), progress=step, checkpoint_every=5, **job.get("fit", {}))
    except DptextError as error:
        (out / f"{number}.error").write_text(f"{type(error).__name__}: {error}")
        os._exit(error.exit_code)  # torch waits for nobody
    np.save(out / f"{number}.npy", model.vectors_.matrix)
    (out / f"{number}.json").write_text(model.statement_.to_json())
    distributed.destroy_process_group()
