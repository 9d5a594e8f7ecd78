package dev.millrace.cli.trace;

import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.StepEntry;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.trace.Found;
import dev.millrace.trace.FoundEntry;
import dev.millrace.trace.FoundLetter;
import dev.millrace.trace.GroupTrace;
import java.util.Optional;

/**
 * Where one rollout has got to, in a few words.
 *
 * @param word trained, masked, dropped, refused or in flight
 * @param detail what else there is to say
 */
record Fate(String word, String detail) {

    /** @param trace of this rollout alone */
    static Fate of(GroupTrace trace, String prefix) {
        for (FoundEntry found : trace.entries()) {
            String batch = "batch " + found.batchId();
            Optional<TrainingStep> step = trace.stepOf(found);
            if (step.isEmpty()) {
                return new Fate("in flight", batch + " waits for its step");
            }
            StepEntry word = trace.lastWord(found, step.get());
            return word.getTrainedTokens() > 0
                    ? new Fate("trained", batch + ", version " + step.get().getVersion())
                    : new Fate("masked", batch + (word.getMaskedBy() == null ? "" : ", by " + word.getMaskedBy()));
        }
        Optional<Outcome> outcome = trace.outcomes().stream()
                .map(Found::value)
                .filter(it -> it.getSource().getTopic().equals(prefix + "rollouts")
                        && !it.getReason().equals("duplicate"))
                .findFirst();
        if (outcome.isPresent()) {
            return new Fate("dropped", outcome.get().getReason());
        }
        Optional<FoundLetter> letter = trace.letters().stream()
                .filter(it -> it.newOffset() < 0
                        && (it.letter().sourceTopic().equals(prefix + "rollouts")
                                || it.letter().sourceTopic().equals(prefix + "trajectories")))
                .findFirst();
        if (letter.isPresent()) {
            return new Fate("refused", letter.get().letter().reason());
        }
        if (!trace.trajectories().isEmpty()) {
            return new Fate("in flight", "joined; waits for its group or batch");
        }
        return new Fate("in flight", trace.scores().isEmpty() ? "waits for a score" : "scored; waits to be joined");
    }

    @Override
    public String toString() {
        return word + (detail.isEmpty() ? "" : ": " + detail);
    }
}
