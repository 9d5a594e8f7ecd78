package dev.millrace.topology.batch;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.run.EpochLineage;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.ingress.AssemblyArrival;
import dev.millrace.topology.ingress.RecordReader;
import dev.millrace.topology.task.TopologyMeters;
import java.util.function.Supplier;
import org.apache.kafka.common.serialization.Serializer;

/**
 * What the assembly is made of; shared by all its tasks.
 *
 * @param lineage where the run's epoch comes from: what batches and requests count on from
 * @param trajectories reads trajectories again
 * @param fetchers makes a task's own fetcher
 * @param batches bytes of a batch
 * @param outcomes bytes of an outcome
 * @param memberCacheBytes heap for masks and log-probs of members that are in no batch yet, per task
 * @param maxRecordBytes a larger batch cannot be written
 */
public record AssemblySettings(
        GroupsConfig groups,
        BatchConfig batch,
        Algorithm algorithm,
        RunIdentity run,
        EpochLineage lineage,
        RunTopics topics,
        RecordReader<AssemblyArrival> trajectories,
        Supplier<RecordFetcher> fetchers,
        Serializer<LearnerBatch> batches,
        Serializer<Outcome> outcomes,
        long memberCacheBytes,
        int maxRecordBytes,
        TopologyMeters meters) {}
