package dev.millrace.topology.ingress;

/** What the assembly of batches reads: trajectories, and versions of the policy. */
public sealed interface AssemblyArrival permits TrajectoryArrival, VersionArrival {
}
