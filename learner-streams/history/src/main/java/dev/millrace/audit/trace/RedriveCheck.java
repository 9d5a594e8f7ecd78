package dev.millrace.audit.trace;

import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * Whether a letter can be redriven on the topic it came from. Pure: what is known goes in, a sentence why not comes out.
 */
final class RedriveCheck {
    private final RunIdentity run;
    private final RunTopics topics;
    private final Map<String, Integer> partitions;

    /** @param partitions how many partitions each topic of the run has; a topic that is gone is missing */
    RedriveCheck(RunIdentity run, RunTopics topics, Map<String, Integer> partitions) {
        this.run = run;
        this.topics = topics;
        this.partitions = Map.copyOf(partitions);
    }

    /**
     * Why not; empty if it can.
     *
     * @param newOffset where its record lies since it was redriven; -1 if it was not
     */
    Optional<String> refusal(DeadLetter letter, long newOffset) {
        if (newOffset >= 0) {
            return Optional.of("it was redriven already and lies at " + letter.sourceTopic() + "-"
                    + letter.sourcePartition() + "@" + newOffset);
        }
        if (letter.sourceTopic().equals(topics.batches())) {
            return Optional.of(
                    "a batch has its turn in a sequence that the learner has passed; roll the run back to a new epoch instead");
        }
        if (letter.sourceTopic().equals(topics.policyVersions())) {
            return Optional.of("only the learner publishes versions; it does so again when it is restarted");
        }
        if (!accepts().contains(letter.sourceTopic())) {
            return Optional.of(
                    "it came from " + letter.sourceTopic() + ", which is no topic of this run that takes records back");
        }
        Integer count = partitions.get(letter.sourceTopic());
        if (count == null || letter.sourcePartition() >= count) {
            return Optional.of("its source " + letter.sourceTopic() + "-" + letter.sourcePartition() + " is gone"
                    + (count == null ? "" : "; the topic has " + count + " partitions"));
        }
        if (letter.reason().equals(RefusalReason.WRONG_RUN.code())
                || !letter.runId().isEmpty() && !letter.runId().equals(run.runId())) {
            return Optional.of("it is of run '" + letter.runId() + "'; this is run '" + run.runId()
                    + "', which would refuse it again");
        }
        if (letter.epoch() < 0
                ? letter.reason().equals(RefusalReason.WRONG_EPOCH.code())
                : letter.epoch() != run.epoch()) {
            return Optional.of(
                    "it is of another epoch than " + run.epoch() + ", in which the run is; it would be refused again");
        }
        if (letter.reason().equals(RefusalReason.TOO_LARGE.code())
                && letter.sourceTopic().equals(topics.rollouts())) {
            return Optional.of(
                    "the join remembers that it was there and would drop it as a duplicate; have its group sampled again");
        }
        return Optional.empty();
    }

    private Set<String> accepts() {
        return Set.of(
                topics.prompts(),
                topics.rollouts(),
                topics.scores(),
                topics.rewards(),
                topics.referenceScores(),
                topics.teacherScores(),
                topics.trajectories());
    }
}
