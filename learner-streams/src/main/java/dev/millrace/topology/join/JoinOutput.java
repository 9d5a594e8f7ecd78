package dev.millrace.topology.join;

import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.deadletter.DeadLetters;
import dev.millrace.schemas.deadletter.Refusal;
import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.RolloutArrival;
import dev.millrace.topology.join.Waiting.Kind;
import dev.millrace.topology.outcome.OutcomeReason;
import dev.millrace.topology.outcome.Outcomes;
import dev.millrace.topology.state.EventTime;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/** The ways out of one task's join: outcomes and dead letters, each counted. */
final class JoinOutput {
    private final ProcessorContext<Object, Object> context;
    private final JoinSettings settings;
    private final JoinNodes nodes;
    private final Outcomes outcomes;
    private final int partition;

    JoinOutput(ProcessorContext<Object, Object> context, JoinSettings settings, JoinNodes nodes) {
        this.context = context;
        this.settings = settings;
        this.nodes = nodes;
        this.outcomes = new Outcomes(settings.run(), "join");
        this.partition = context.taskId().partition();
    }

    /** Where a record of this task lies. */
    LogCoordinates at(Kind kind, long offset) {
        return new LogCoordinates(topic(kind), partition, offset);
    }

    /** What has just arrived leaves. */
    void leave(OutcomeReason reason, Arrival arrival, String detail) {
        leave(reason, Waiting.of(arrival, 0), context.currentStreamTimeMs(), detail);
    }

    /** What waited leaves. */
    void leave(OutcomeReason reason, Waiting waiting, long decidedAtMs, String detail) {
        settings.meters().outcome(reason);
        context.forward(new Record<>(waiting.groupId(), outcomes.of(reason, waiting.groupId(), waiting.rolloutId(),
            waiting.newestVersion(), at(waiting.kind(), waiting.offset()), decidedAtMs, detail), context.currentSystemTimeMs()),
            nodes.outcomes());
    }

    /** A record is refused, as it came. */
    void refuse(Arrival arrival, Refusal refusal) {
        Kind kind = arrival instanceof RolloutArrival ? Kind.ROLLOUT : Kind.SCORE;
        settings.meters().deadLetter(refusal.reason());
        context.forward(arrival.raw().withHeaders(DeadLetters.headers(arrival.raw().headers(),
            new DeadLetters.Source(topic(kind), partition, arrival.offset(), arrival.timestampMs()),
            refusal.about(settings.run().runId(), arrival.name().rolloutId())))
            .withTimestamp(context.currentSystemTimeMs()), nodes.deadLetters());
    }

    /** A rollout and its score have become a trajectory; {@code completeMs} is when the later of the two was written. */
    void joined(RolloutArrival rollout, byte[] trajectory, long completeMs) {
        settings.meters().joined();
        context.forward(new Record<>(rollout.name().groupId(), trajectory, context.currentSystemTimeMs(),
            EventTime.header(completeMs)), nodes.trajectories());
    }

    private String topic(Kind kind) {
        return kind == Kind.ROLLOUT ? settings.topics().rollouts() : settings.topics().scores();
    }
}
