package dev.millrace.topology.batch;

import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.deadletter.DeadLetters;
import dev.millrace.schemas.deadletter.Refusal;
import dev.millrace.topology.ingress.TrajectoryArrival;
import dev.millrace.topology.outcome.OutcomeReason;
import dev.millrace.topology.outcome.Outcomes;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/** The ways out of one task's assembly: batches, outcomes and dead letters, each counted. */
final class AssemblyOutput {
    private final ProcessorContext<Object, Object> context;
    private final AssemblySettings settings;
    private final AssemblyNodes nodes;
    private final Outcomes outcomes;

    AssemblyOutput(ProcessorContext<Object, Object> context, AssemblySettings settings, AssemblyNodes nodes) {
        this.context = context;
        this.settings = settings;
        this.nodes = nodes;
        this.outcomes = new Outcomes(settings.run(), "groups");
    }

    void leave(OutcomeReason reason, Member member, long decidedAtMs, String detail) {
        leave(reason, member.groupId(), member.rolloutId(), member.newestVersion(), member.rolloutSource(), decidedAtMs, detail);
    }

    void leave(OutcomeReason reason, String groupId, String rolloutId, long newestVersion, LogCoordinates rollout,
        long decidedAtMs, String detail) {
        settings.meters().outcome(reason);
        context.forward(new Record<>(groupId,
            outcomes.of(reason, groupId, rolloutId, newestVersion, rollout, decidedAtMs, detail), context.currentSystemTimeMs()),
            nodes.outcomes());
    }

    void refuse(TrajectoryArrival arrival, Refusal refusal) {
        settings.meters().deadLetter(refusal.reason());
        context.forward(arrival.raw().withHeaders(DeadLetters.headers(arrival.raw().headers(),
            new DeadLetters.Source(settings.topics().trajectories(), arrival.partition(), arrival.offset(),
                arrival.raw().timestamp()),
            refusal.about(settings.run().runId(), arrival.trajectory().getRolloutId())))
            .withTimestamp(context.currentSystemTimeMs()), nodes.deadLetters());
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
        context.forward(new Record<>(batch.getPolicyId(), bytes, context.currentSystemTimeMs()), nodes.batches());
    }
}
