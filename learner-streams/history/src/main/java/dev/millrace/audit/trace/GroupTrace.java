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

/**
 * Records of a group's rollouts, or of one; lists in log order.
 *
 * @param scores from {@code scores}, {@code reference-scores} and {@code teacher-scores}
 * @param copies positions of equal records
 * @param newestGroup released last; empty if none was
 * @param recordsRead by the search
 * @param bytesRead keys and values, uncompressed
 */
public record GroupTrace(
        String groupId,
        Optional<Found<PromptRequest>> prompt,
        List<Found<Rollout>> rollouts,
        List<Found<Score>> scores,
        List<Found<Reward>> rewards,
        List<Found<Trajectory>> trajectories,
        List<FoundEntry> entries,
        List<Found<TrainingStep>> steps,
        List<Found<Outcome>> outcomes,
        List<FoundDeadLetter> letters,
        List<String> copies,
        String newestGroup,
        long recordsRead,
        long bytesRead) {

    public GroupTrace {
        rollouts = List.copyOf(rollouts);
        scores = List.copyOf(scores);
        rewards = List.copyOf(rewards);
        trajectories = List.copyOf(trajectories);
        entries = List.copyOf(entries);
        steps = List.copyOf(steps);
        outcomes = List.copyOf(outcomes);
        letters = List.copyOf(letters);
        copies = List.copyOf(copies);
    }

    public GroupTrace of(String rolloutId) {
        return new GroupTrace(
                groupId,
                prompt,
                only(rolloutId, rollouts, found -> found.value().getRolloutId()),
                only(rolloutId, scores, found -> found.value().getRolloutId()),
                only(rolloutId, rewards, found -> found.value().getRolloutId()),
                only(rolloutId, trajectories, found -> found.value().getRolloutId()),
                only(rolloutId, entries, found -> found.entry().getRolloutId()),
                steps,
                only(rolloutId, outcomes, found -> found.value().getRolloutId()),
                only(rolloutId, letters, found -> found.letter().rolloutId()),
                copies,
                newestGroup,
                recordsRead,
                bytesRead);
    }

    private static <T> List<T> only(String rolloutId, List<T> all, Function<T, String> id) {
        return all.stream().filter(each -> id.apply(each).equals(rolloutId)).toList();
    }

    public boolean isEmpty() {
        return rollouts.isEmpty() && outcomes.isEmpty() && letters.isEmpty() && entries.isEmpty();
    }

    /** The step on the entry's batch. */
    public Optional<TrainingStep> stepOf(FoundEntry entry) {
        return steps.stream()
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
