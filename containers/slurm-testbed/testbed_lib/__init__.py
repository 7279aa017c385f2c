"""The test cluster: engine, images, containers, fault injection. Nothing in slurm_gpuhealth imports this."""
