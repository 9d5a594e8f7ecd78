package dev.millrace.topology.ingress;

import dev.millrace.topology.journal.Observation;

/** What the assembly of batches reads: trajectories, and versions of the policy. */
public sealed interface AssemblyArrival extends Observation permits TrajectoryArrival, VersionArrival {}
