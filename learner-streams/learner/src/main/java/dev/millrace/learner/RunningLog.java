package dev.millrace.learner;

import dev.millrace.learner.batch.BatchReader;
import dev.millrace.learner.batch.TrajectoryFetcher;
import dev.millrace.weights.PolicyFeed;

/** The log, by what a learner reads and writes it with between two beginnings. */
record RunningLog(
        PolicyFeed feed,
        VersionCommitter committer,
        BatchReader reader,
        TrajectoryFetcher trajectories,
        ForeignManifests foreign) {}
