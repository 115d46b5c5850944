"""Representations that keep a task and hide attributes: trained against adversaries, with the release's noise between.

The training is a heuristic and promises nothing: what an adversary of another kind finds in a vector is an empirical
question. The promise comes from the noise of the release (`dptext.DeviceEncoder`), which is
the same with and without it; the training sees to it that what survives the noise is the task.
"""
