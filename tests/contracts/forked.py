"""What a forked process makes of an object that has drawn before."""

import multiprocessing
import pickle

import pytest

CAN_FORK = "fork" in multiprocessing.get_all_start_methods()


def outputs_of_processes(thing, draw):
    """``draw`` of the object here, of a forked process that inherits it, and of one that reads a pickle of it."""
    if not CAN_FORK:
        pytest.skip("this system cannot fork")
    stored = pickle.dumps(thing)
    context = multiprocessing.get_context("fork")
    outputs = [draw(thing)]
    for inherited in (True, False):
        receiver, sender = context.Pipe()

        def work(sender=sender, inherited=inherited):
            sender.send(draw(thing if inherited else pickle.loads(stored)))

        child = context.Process(target=work)
        child.start()
        outputs.append(receiver.recv())
        child.join(600)
        assert child.exitcode == 0
    return outputs
