package dev.millrace.topology.ingress;

import dev.millrace.topology.state.Observation;

/** Input of the batch assembly: trajectories, versions of the policy and their deletions, and starved batches. */
public sealed interface AssemblyArrival extends Observation
        permits TrajectoryArrival, VersionArrival, VersionDeletion, StarvedArrival {}
