"""Is this machine, or the cluster it belongs to, fit for the job? `python -m distpaml.doctor`."""
