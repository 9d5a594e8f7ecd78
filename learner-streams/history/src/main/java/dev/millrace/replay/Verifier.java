package dev.millrace.replay;

import dev.millrace.schemas.Trajectory;
import java.util.Map;

/** Rewards a recorded rollout, deterministically. Thread-safe. */
@FunctionalInterface
public interface Verifier {

    /** @param reward finite */
    record Verdict(double reward, Map<String, Double> components) {
        public Verdict {
            components = Map.copyOf(components);
            if (!Double.isFinite(reward)) {
                throw new IllegalArgumentException("a reward must be finite: " + reward);
            }
        }
    }

    Verdict verify(Trajectory rollout);
}
