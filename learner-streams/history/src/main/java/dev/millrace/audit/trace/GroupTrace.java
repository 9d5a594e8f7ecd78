package dev.millrace.audit.trace;

import dev.millrace.audit.trace.FoundEntry.FoundDeadLetter;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.StepEntry;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/** Records of a group's rollouts, or of one; lists in log order. */
public record GroupTrace(
        String groupId,
        Optional<Found<PromptRequest>> prompt,
        Inputs inputs,
        Decisions decisions,
        List<String> copies,
        Search search) {

    public GroupTrace {
        copies = List.copyOf(copies);
    }

    /**
     * Records that batches are made of.
     *
     * @param scores from {@code scores}, {@code reference-scores} and {@code teacher-scores}
     */
    public record Inputs(
            List<Found<Rollout>> rollouts,
            List<Found<Score>> scores,
            List<Found<Reward>> rewards,
            List<Found<Trajectory>> trajectories) {

        public Inputs {
            rollouts = List.copyOf(rollouts);
            scores = List.copyOf(scores);
            rewards = List.copyOf(rewards);
            trajectories = List.copyOf(trajectories);
        }
    }

    /** Records of what became of them. */
    public record Decisions(
            List<FoundEntry> entries,
            List<Found<TrainingStep>> steps,
            List<Found<Outcome>> outcomes,
            List<FoundDeadLetter> letters) {

        public Decisions {
            entries = List.copyOf(entries);
            steps = List.copyOf(steps);
            outcomes = List.copyOf(outcomes);
            letters = List.copyOf(letters);
        }
    }

    /**
     * How the records were found.
     *
     * @param newestGroup released last; empty if none was
     * @param bytesRead keys and values, uncompressed
     */
    public record Search(String newestGroup, long recordsRead, long bytesRead) {
        /** By an index. */
        public static final Search NONE = new Search("", 0, 0);
    }

    public GroupTrace of(String rolloutId) {
        return new GroupTrace(
                groupId,
                prompt,
                new Inputs(
                        only(rolloutId, inputs.rollouts, found -> found.value().getRolloutId()),
                        only(rolloutId, inputs.scores, found -> found.value().getRolloutId()),
                        only(rolloutId, inputs.rewards, found -> found.value().getRolloutId()),
                        only(
                                rolloutId,
                                inputs.trajectories,
                                found -> found.value().getRolloutId())),
                new Decisions(
                        only(
                                rolloutId,
                                decisions.entries,
                                found -> found.entry().getRolloutId()),
                        decisions.steps,
                        only(
                                rolloutId,
                                decisions.outcomes,
                                found -> found.value().getRolloutId()),
                        only(
                                rolloutId,
                                decisions.letters,
                                found -> found.letter().rolloutId())),
                copies,
                search);
    }

    private static <T> List<T> only(String rolloutId, List<T> all, Function<T, String> id) {
        return all.stream().filter(each -> id.apply(each).equals(rolloutId)).toList();
    }

    public boolean isEmpty() {
        return inputs.rollouts.isEmpty()
                && decisions.outcomes.isEmpty()
                && decisions.letters.isEmpty()
                && decisions.entries.isEmpty();
    }

    public Optional<TrainingStep> stepOf(FoundEntry entry) {
        return decisions.steps.stream()
                .map(Found::value)
                .filter(step -> step.getEpoch() == entry.batch().value().getEpoch()
                        && step.getBatchId() == entry.batch().value().getBatchId())
                .findFirst();
    }

    /** Outcome of an entry at its step; the learner's decision overrides the batch's. */
    public StepEntry lastWord(FoundEntry found, TrainingStep step) {
        return step.getEntries() != null && found.index() < step.getEntries().size()
                ? step.getEntries().get(found.index())
                : new StepEntry(found.entry().getTrainedTokens(), found.entry().getMaskedBy());
    }
}
