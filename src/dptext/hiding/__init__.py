"""Representations that keep a task and hide attributes, trained against adversaries with the noise of the release."""
