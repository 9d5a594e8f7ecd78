package dev.millrace.topology.batch;

import dev.millrace.log.deadletter.DeadLetters;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.topology.ingress.TrajectoryArrival;
import dev.millrace.topology.task.DecisionSink;
import dev.millrace.topology.task.OutcomeReason;
import dev.millrace.topology.task.Outcomes;
import dev.millrace.topology.task.TaskOutput;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.header.internals.RecordHeaders;

/** The ways out of one task's assembly: batches, outcomes and dead letters, each counted. */
final class AssemblyOutput {
    private final DecisionSink sink;
    private final AssemblySettings settings;
    private final Outcomes outcomes;

    AssemblyOutput(DecisionSink sink, AssemblySettings settings) {
        this.sink = sink;
        this.settings = settings;
        this.outcomes = new Outcomes(settings.run(), "groups");
    }

    void leave(OutcomeReason reason, Member member, long decidedAtMs, String detail) {
        leave(
                reason,
                member.groupId(),
                member.rolloutId(),
                member.newestVersion(),
                member.rolloutSource(),
                decidedAtMs,
                detail);
    }

    void leave(
            OutcomeReason reason,
            String groupId,
            String rolloutId,
            long newestVersion,
            LogCoordinates rollout,
            long decidedAtMs,
            String detail) {
        settings.meters().outcome(reason);
        sink.take(new TaskOutput(
                settings.topics().outcomes(),
                groupId.getBytes(StandardCharsets.UTF_8),
                settings.outcomes()
                        .serialize(
                                settings.topics().outcomes(),
                                outcomes.of(reason, groupId, rolloutId, newestVersion, rollout, decidedAtMs, detail)),
                new RecordHeaders()));
    }

    void refuse(TrajectoryArrival arrival, Refusal refusal) {
        settings.meters().deadLetter(refusal.reason());
        sink.take(new TaskOutput(
                settings.topics().deadLetters(),
                arrival.raw().key(),
                arrival.raw().value(),
                DeadLetters.headers(
                        arrival.raw().headers(),
                        new DeadLetters.Source(
                                settings.topics().trajectories(),
                                arrival.partition(),
                                arrival.offset(),
                                arrival.raw().timestamp()),
                        refusal.about(
                                settings.run().runId(),
                                settings.run().epoch(),
                                arrival.trajectory().getRolloutId()),
                        settings.run())));
    }

    /** A batch was given up. */
    void failed(String why) {
        settings.meters().batchFailed(why);
    }

    /** @throws IllegalStateException if the log would not take it */
    void batch(LearnerBatch batch) {
        byte[] bytes = settings.batches().serialize(settings.topics().batches(), batch);
        if (bytes.length > settings.maxRecordBytes()) {
            throw new IllegalStateException("batch " + batch.getBatchId() + " takes " + bytes.length
                    + " bytes, a record may take " + settings.maxRecordBytes()
                    + "; lower the batch's sequences, or raise max_record_bytes and the topic's max.message.bytes");
        }
        settings.meters().batch();
        sink.take(new TaskOutput(
                settings.topics().batches(),
                batch.getPolicyId().getBytes(StandardCharsets.UTF_8),
                bytes,
                new RecordHeaders()));
    }
}
