"""Ask and tell: experiments whose tasks are tried by a person, a robot or anybody's simulator.

declaration.py    what a lab declares once: descriptors, states, controls, units, time step
dimensions.py     kinds of descriptors: boxes, whole numbers, categories, images
images.py         images → numbers
space.py          the descriptors that can be asked for, and their numbers for the model
tables.py         csv, npz and parquet files → columns
recordings.py     columns → trajectories that the model can use, or a sentence that says why not
samples.py        runs without gaps, resampling, outliers
journal.py        what an experiment leaves on disk: one line per call, and arrays
state.py          what a journal says: which tasks are out, observed or failed
choice.py         which tasks come first, while there is no model
models.py         the model of a journal, and where it is kept
ranking.py        which tasks next, by the model
forecasts.py      what it answers, and rows of numbers by name
predictions.py    what the model says about a task
leave_one_out.py  errors of tasks that the model was not fitted to
learning.py       those errors against the number of tasks: do more tasks pay?
status.py         where an experiment stands
folder.py         the directory of an experiment: made, opened, locked, copied
experiment.py     Experiment: ask, tell, attach, fail, preview, learning, predict, infer
report.py         the page of `distpaml report DIR`
"""
