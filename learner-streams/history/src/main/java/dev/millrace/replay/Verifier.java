package dev.millrace.replay;

import dev.millrace.schemas.Trajectory;
import java.util.Map;

/** Says what a recorded rollout is worth. Thread-safe; the same rollout always gets the same. */
@FunctionalInterface
public interface Verifier {

    /**
     * What it found.
     *
     * @param reward finite
     * @param components what the reward consists of, by name
     */
    record Verdict(double reward, Map<String, Double> components) {
        public Verdict {
            components = Map.copyOf(components);
            if (!Double.isFinite(reward)) {
                throw new IllegalArgumentException("a reward must be finite: " + reward);
            }
        }
    }

    /** Judges one rollout. */
    Verdict verify(Trajectory rollout);
}
