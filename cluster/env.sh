# What every process of a cluster has; sourced by ~/.bashrc on its machines, by the image and by slurm.sbatch.
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1  # one thread per process, so that every machine gets the same bits
export MUJOCO_GL=${MUJOCO_GL:-egl}
export RAY_AUTH_MODE=token  # nobody joins or commands the cluster without the token
export RAY_USAGE_STATS_ENABLED=0
