package dev.millrace.topology.join;

import dev.millrace.log.deadletter.DeadLetters;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.state.RecordTimestampExtractor;
import dev.millrace.topology.task.DecisionSink;
import dev.millrace.topology.task.OutcomeReason;
import dev.millrace.topology.task.Outcomes;
import dev.millrace.topology.task.TaskOutput;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.header.internals.RecordHeaders;

/** The ways out of one task's join: outcomes and dead letters, each counted. */
final class JoinOutput {
    private final DecisionSink sink;
    private final JoinSettings settings;
    private final Outcomes outcomes;
    private final int partition;

    JoinOutput(DecisionSink sink, JoinSettings settings, int partition) {
        this.sink = sink;
        this.settings = settings;
        this.outcomes = new Outcomes(settings.run(), "join");
        this.partition = partition;
    }

    /** Where a record of this task lies. */
    LogCoordinates at(Arrival arrival) {
        return at(arrival.kind(), arrival.offset());
    }

    private LogCoordinates at(JoinSide kind, long offset) {
        return new LogCoordinates(kind.topic(settings.topics()), partition, offset);
    }

    /** What has just arrived leaves. */
    void leave(OutcomeReason reason, Arrival arrival, long decidedAtMs, String detail) {
        leave(reason, PendingRecord.of(arrival, 0), decidedAtMs, detail);
    }

    /** What waited leaves. */
    void leave(OutcomeReason reason, PendingRecord waiting, long decidedAtMs, String detail) {
        settings.meters().outcome(reason);
        sink.take(new TaskOutput(
                settings.topics().outcomes(),
                bytes(waiting.groupId()),
                settings.outcomes()
                        .serialize(
                                settings.topics().outcomes(),
                                outcomes.of(
                                        reason,
                                        waiting.groupId(),
                                        waiting.rolloutId(),
                                        waiting.newestVersion(),
                                        at(waiting.kind(), waiting.offset()),
                                        decidedAtMs,
                                        detail)),
                new RecordHeaders()));
    }

    /** A record is refused, as it came. */
    void refuse(Arrival arrival, Refusal refusal) {
        String topic = arrival.kind().topic(settings.topics());
        settings.meters().deadLetter(refusal.reason());
        sink.take(new TaskOutput(
                settings.topics().deadLetters(),
                arrival.raw().key(),
                arrival.raw().value(),
                DeadLetters.headers(
                        arrival.raw().headers(),
                        new DeadLetters.Source(topic, partition, arrival.offset(), arrival.timestampMs()),
                        refusal.about(
                                settings.run().runId(),
                                settings.run().epoch(),
                                arrival.name().rolloutId()),
                        settings.run())));
    }

    /** A rollout and its partners have become a trajectory, dated as the last of them. */
    void joined(PendingJoin meeting, byte[] trajectory) {
        settings.meters().joined();
        sink.take(new TaskOutput(
                settings.topics().trajectories(),
                bytes(meeting.rollout().name().groupId()),
                trajectory,
                RecordTimestampExtractor.header(meeting.completeMs())));
    }

    private static byte[] bytes(String key) {
        return key.getBytes(StandardCharsets.UTF_8);
    }
}
