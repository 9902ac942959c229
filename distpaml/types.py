"""Types that every layer uses."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
