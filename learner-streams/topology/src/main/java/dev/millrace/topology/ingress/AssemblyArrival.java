package dev.millrace.topology.ingress;

import dev.millrace.topology.state.Observation;

/** What the assembly of batches reads: trajectories, versions of the policy and their deletions, and batches of which none was made. */
public sealed interface AssemblyArrival extends Observation
        permits TrajectoryArrival, VersionArrival, VersionDeletion, StarvedArrival {}
