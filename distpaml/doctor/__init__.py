"""Checks this machine and the cluster it belongs to: `python -m distpaml.doctor`."""
