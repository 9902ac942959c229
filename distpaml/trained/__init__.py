"""Runs as objects: `distpaml.load_run(DIR)` has the config, the records, and the model in raw units, by name.

run.py           a run in its directory
model.py         its newest model: infer, predict, rollout, embeddings
environment.py   one system of the learned family as a gymnasium environment
"""

from distpaml.trained.model import TrainedModel
from distpaml.trained.run import TrainedRun, load_run

__all__ = ["TrainedModel", "TrainedRun", "load_run"]
