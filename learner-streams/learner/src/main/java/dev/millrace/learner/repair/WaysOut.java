package dev.millrace.learner.repair;

import dev.millrace.learner.repair.Way.Kind;
import java.util.List;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.function.UnaryOperator;

/** The ways out of what was found, each with what is lost by it. */
final class WaysOut {
    private final UnaryOperator<String> command;
    private final TrainingPast past;
    private final SamplingCost cost;
    private final OptionalLong goodVersion;

    /**
     * @param command as a person can enter it, of its first words
     * @param past whose steps a new epoch gives up
     * @param goodVersion newest version that a new epoch can go on from; empty if there is none
     */
    WaysOut(UnaryOperator<String> command, TrainingPast past, SamplingCost cost, OptionalLong goodVersion) {
        this.command = command;
        this.past = past;
        this.cost = cost;
        this.goodVersion = goodVersion;
    }

    /** The run mends it by itself, or somebody else has to act; nothing is lost. */
    static Way await(String does) {
        return new Way(Kind.WAIT, does, OptionalDouble.of(0), "");
    }

    /** A new epoch from the newest version that one can go on from; empty without one. */
    List<Way> newEpoch() {
        if (goodVersion.isEmpty()) {
            return List.of();
        }
        long version = goodVersion.getAsLong();
        return List.of(new Way(
                Kind.NEW_EPOCH,
                "goes on from version " + version + " in a new epoch; what is in flight is superseded"
                        + (past.rolloutsBehind(version) == 0 ? "" : ", and later steps are given up"),
                cost.ofNewEpoch(past.rolloutsBehind(version)),
                rollback(version)));
    }

    /** To publish the first version of an epoch that was begun and has none; empty where it cannot be read. */
    List<Way> firstOfEpoch(long version) {
        return goodVersion.isEmpty()
                ? List.of()
                : List.of(new Way(
                        Kind.NEW_EPOCH,
                        "publishes version " + version + " as the epoch's first; a learner that starts does the same",
                        OptionalDouble.of(0),
                        rollback(version)));
    }

    private String rollback(long version) {
        return command.apply("rollback --to-version " + version);
    }

    /** @param lost batches, in order, at least one */
    Way skip(List<Long> lost) {
        long last = lost.get(lost.size() - 1);
        return new Way(
                Kind.SKIP_BATCH,
                "gives " + (lost.size() == 1 ? "it" : "batches " + lost.get(0) + " to " + last)
                        + " up and releases as many prompts; the learner goes on with batch " + (last + 1),
                cost.of((long) past.usualRollouts() * lost.size()),
                repair(Kind.SKIP_BATCH));
    }

    Way moveOffset(long to) {
        return new Way(
                Kind.MOVE_OFFSET,
                "the group goes on at offset " + to + "; stop its role first",
                OptionalDouble.of(0),
                repair(Kind.MOVE_OFFSET));
    }

    Way abortTransaction() {
        return new Way(
                Kind.ABORT_TRANSACTION,
                "aborts it; a role that still writes it begins again by itself, and what was in it is made again",
                OptionalDouble.of(0),
                repair(Kind.ABORT_TRANSACTION));
    }

    private String repair(Kind kind) {
        return command.apply("repair --do " + kind.word());
    }
}
