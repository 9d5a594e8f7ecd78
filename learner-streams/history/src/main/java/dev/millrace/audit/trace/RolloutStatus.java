package dev.millrace.audit.trace;

import dev.millrace.audit.trace.FoundEntry.FoundDeadLetter;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.StepEntry;
import dev.millrace.schemas.TrainingStep;
import java.util.Optional;

/**
 * Status of one rollout.
 *
 * @param word trained, masked, dropped, refused, in flight, or superseded
 */
public record RolloutStatus(String word, String detail) {
    private static final String IN_FLIGHT = "in flight";

    /** @param trace of this rollout alone */
    public static RolloutStatus of(GroupTrace trace, String prefix, int epoch) {
        RolloutStatus found = of(trace, prefix);
        boolean isOfOlderEpoch = !trace.inputs().rollouts().isEmpty()
                && trace.inputs().rollouts().stream()
                        .allMatch(rollout -> rollout.value().getEpoch() < epoch);
        return isOfOlderEpoch && found.word.equals(IN_FLIGHT)
                ? new RolloutStatus("superseded", found.detail + ", and the run has moved to epoch " + epoch)
                : found;
    }

    private static RolloutStatus of(GroupTrace trace, String prefix) {
        for (FoundEntry found : trace.decisions().entries()) {
            String batch = "batch " + found.batchId();
            Optional<TrainingStep> step = trace.stepOf(found);
            if (step.isEmpty()) {
                return new RolloutStatus(IN_FLIGHT, batch + " waits for its step");
            }
            StepEntry word = trace.lastWord(found, step.get());
            return word.getTrainedTokens() > 0
                    ? new RolloutStatus(
                            "trained", batch + ", version " + step.get().getVersion())
                    : new RolloutStatus(
                            "masked", batch + (word.getMaskedBy() == null ? "" : ", by " + word.getMaskedBy()));
        }
        Optional<Outcome> outcome = trace.decisions().outcomes().stream()
                .map(Found::value)
                .filter(it -> it.getSource().getTopic().equals(prefix + "rollouts")
                        && !it.getReason().equals("duplicate"))
                .findFirst();
        if (outcome.isPresent()) {
            return new RolloutStatus("dropped", outcome.get().getReason());
        }
        Optional<FoundDeadLetter> letter = trace.decisions().letters().stream()
                .filter(it -> it.newOffset() < 0
                        && (it.letter().sourceTopic().equals(prefix + "rollouts")
                                || it.letter().sourceTopic().equals(prefix + "trajectories")))
                .findFirst();
        if (letter.isPresent()) {
            return new RolloutStatus("refused", letter.get().letter().reason());
        }
        if (!trace.inputs().trajectories().isEmpty()) {
            return new RolloutStatus(IN_FLIGHT, "joined; waits for its group or batch");
        }
        return new RolloutStatus(
                IN_FLIGHT, trace.inputs().scores().isEmpty() ? "waits for a score" : "scored; waits to be joined");
    }

    @Override
    public String toString() {
        return word + (detail.isEmpty() ? "" : ": " + detail);
    }
}
