"""Any MuJoCo model as a stick figure: one line that runs through all bodies and back, in the plane that shows most.

A body is a point at its frame and the ends of its capsules and cylinders; the line goes from a body to each of its
children and returns, so that a tree of bodies can be drawn without lifting the pen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from distpaml.types import Array

if TYPE_CHECKING:
    from mujoco import MjModel

DETAILED = 12
"""Bodies beyond which the ends of geoms are left out."""


@dataclass(frozen=True)
class StickFigure:
    """The order in which points are visited, and the plane they are seen in."""

    tour: tuple[tuple[int, int, float], ...]
    """Points: the body, the geom or -1 for the body's frame, and the side of the geom (-1, 0 or 1)."""
    plane: tuple[int, int]
    """Axes across and up."""

    @classmethod
    def of(cls, model: MjModel, rest: Array) -> StickFigure:
        """The figure of a model; its plane is the one in which joints move it most from `rest` [nq]."""
        children: dict[int, list[int]] = {}
        for body in range(1, model.nbody):
            children.setdefault(int(model.body_parentid[body]), []).append(body)
        detailed = model.nbody <= DETAILED
        moving = [body for body in children.get(0, []) if model.body_treeid[body] >= 0] or children.get(0, [])
        tour: list[tuple[int, int, float]] = []
        for root in moving:
            tour += _visit(model, root, children, detailed)
        whole = cls(tuple(tour), (0, 2))
        spread = np.zeros(3)
        for column in range(model.nq):
            for turn in (-1.0, 1.0):
                position = rest.copy()
                position[column] += turn
                spread += np.abs(whole._seen(model, position[None]) - whole._seen(model, rest[None])).sum(axis=(0, 1))
        across = 0 if spread[0] >= spread[1] else 1
        flat = spread[2] < 0.05 * spread.sum()
        return cls(whole.tour, (0, 1) if flat else (across, 2))

    def points(self, model: MjModel, positions: Array) -> Array:
        """The line [N, J, 2] for positions [N, nq] of a model."""
        return self._seen(model, positions)[..., list(self.plane)]

    def _seen(self, model: MjModel, positions: Array) -> Array:
        import mujoco

        data = mujoco.MjData(model)
        points = np.empty((len(positions), len(self.tour), 3))
        for row, position in zip(points, positions, strict=True):
            data.qpos[:] = np.clip(np.nan_to_num(position), -1e6, 1e6)
            mujoco.mj_kinematics(model, data)
            for point, (body, geom, side) in zip(row, self.tour, strict=True):
                if geom < 0:
                    point[:] = data.xpos[body]
                else:
                    axis = data.geom_xmat[geom].reshape(3, 3)[:, 2]
                    point[:] = data.geom_xpos[geom] + side * model.geom_size[geom, 1] * axis
        return points

    @staticmethod
    def extent(model: MjModel) -> tuple[Array, Array]:
        """The corners of what the moving bodies take up at rest."""
        import mujoco

        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        ends = [
            (data.geom_xpos[geom] - model.geom_rbound[geom], data.geom_xpos[geom] + model.geom_rbound[geom])
            for geom in range(model.ngeom)
            if model.geom_bodyid[geom] > 0 and model.geom_rbound[geom] > 0
        ] or [(data.xpos[body] - 0.1, data.xpos[body] + 0.1) for body in range(1, model.nbody)]
        return np.min([low for low, _ in ends], axis=0), np.max([high for _, high in ends], axis=0)


def _visit(model: MjModel, body: int, children: dict[int, list[int]], detailed: bool) -> list[tuple[int, int, float]]:
    import mujoco

    long = (int(mujoco.mjtGeom.mjGEOM_CAPSULE), int(mujoco.mjtGeom.mjGEOM_CYLINDER))
    frame = (body, -1, 0.0)
    tour = [frame]
    first = int(model.body_geomadr[body])
    for geom in range(first, first + int(model.body_geomnum[body])) if detailed else ():
        if int(model.geom_type[geom]) in long:
            axis = np.empty(9)
            mujoco.mju_quat2Mat(axis, model.geom_quat[geom])
            half = model.geom_size[geom, 1] * axis.reshape(3, 3)[:, 2]
            near = (
                -1.0
                if np.linalg.norm(model.geom_pos[geom] - half) <= np.linalg.norm(model.geom_pos[geom] + half)
                else 1.0
            )
            tour += [(body, geom, near), (body, geom, -near), (body, geom, near), frame]
    for child in children.get(body, []):
        tour += [*_visit(model, child, children, detailed), frame]
    return tour
