"""Utilities: what a candidate is worth. A utility is a plain function

    utility(candidates: Candidates, context: SelectionContext) -> [K]        larger is better

of K candidates, with their latents `.mean` and `.variance` [K, Q] and their `.descriptors` [K, E], and of what is known
so far. It scores each candidate alone, so candidates can be ranked in parts. Name your own in a config as
`selection.utility=module:function`.
"""

from collections.abc import Callable

from distpaml.errors import UserError
from distpaml.names import nearest
from distpaml.plugins import load_object
from distpaml.select.candidates import Candidates
from distpaml.select.context import SelectionContext
from distpaml.select.disagreement import disagreement
from distpaml.select.information import information_gain, predictive_variance
from distpaml.select.latent_process import kernel_surprisal
from distpaml.select.space_filling import descriptor_maximin, latent_maximin
from distpaml.select.surprisal import surprisal
from distpaml.select.task_process import integrated_variance, task_information, weighted_variance
from distpaml.types import Array

Utility = Callable[[Candidates, SelectionContext], Array]

UTILITIES: dict[str, Utility] = {
    utility.__name__: utility
    for utility in (
        surprisal,
        kernel_surprisal,
        task_information,
        integrated_variance,
        weighted_variance,
        predictive_variance,
        information_gain,
        latent_maximin,
        descriptor_maximin,
        disagreement,
    )
}


def get_utility(name: str) -> Utility:
    """The utility called `name`, or the function `module:function`."""
    if ":" in name:
        found = load_object(name, "selection.utility")
        if not callable(found):
            raise UserError(f"selection.utility is {name!r}, but that is not a function.")
        return found
    if name not in UTILITIES:
        known = nearest(name, UTILITIES)
        raise UserError(f"selection.utility is {name!r}, but there is no such utility{known}, or module:function.")
    return UTILITIES[name]
