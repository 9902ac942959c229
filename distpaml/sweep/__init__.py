"""Many experiments on Ray Tune: grids over seeds, methods and any key, and hyperparameter searches."""
