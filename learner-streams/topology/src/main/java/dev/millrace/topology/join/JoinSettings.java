package dev.millrace.topology.join;

import dev.millrace.corrections.ratio.MissingOldLogProbs;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.log.scan.RecordFetcher;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.ingress.RecordReader;
import dev.millrace.topology.task.TopologyMeters;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.common.serialization.Serializer;

/**
 * What the join is made of; shared by all its tasks.
 *
 * @param readers reads each kind again that is joined: rollouts, and the partners that are configured
 * @param fetchers makes a task's own fetcher
 * @param missingOld what becomes of a rollout whose score has no old log-probs
 * @param inputs that the algorithm reads; a rollout that lacks one of them is refused
 * @param trajectories bytes of a trajectory
 * @param outcomes bytes of an outcome
 * @param maxRecordBytes a trajectory larger than this is refused, because the log would not take it
 */
public record JoinSettings(
        JoinConfig config,
        RunIdentity run,
        RunTopics topics,
        Map<JoinSide, RecordReader<Arrival>> readers,
        Supplier<RecordFetcher> fetchers,
        MissingOldLogProbs missingOld,
        Set<StageInput> inputs,
        Serializer<Trajectory> trajectories,
        Serializer<Outcome> outcomes,
        int maxRecordBytes,
        TopologyMeters meters) {}
