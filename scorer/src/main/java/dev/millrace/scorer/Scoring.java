package dev.millrace.scorer;

import dev.millrace.schemas.Score;
import dev.millrace.scorer.RolloutReading.Scorable;
import java.util.List;

/** Makes scores of rollouts. Owned by the scoring thread. */
interface Scoring extends AutoCloseable {
    /** No version of the run is served. */
    long NOT_SERVING = -1;

    /** One score per rollout, in order; there is at least one. */
    List<Score> score(List<Scorable> rollouts, long nowMs);

    /** The version that is served as the newest; {@link #NOT_SERVING} where the policy is a fixed one. */
    long newest();

    @Override
    void close();
}
