"""GPU health checks for Slurm: check, drain with a coded reason, keep the evidence, resume the job."""
__version__ = "0.1.0"
