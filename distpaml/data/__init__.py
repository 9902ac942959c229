"""Training data: trajectories, designs, and the tasks of an experiment."""

from distpaml.data.dataset import Dataset, Divisors, ImageSet, Standardiser, model_inputs, transitions

__all__ = ["Dataset", "Divisors", "ImageSet", "Standardiser", "model_inputs", "transitions"]
