"""Many experiments at once, on Ray Tune: grids over seeds, methods and any key, and searches of hyperparameters."""
