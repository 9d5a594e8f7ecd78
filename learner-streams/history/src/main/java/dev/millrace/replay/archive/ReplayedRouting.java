package dev.millrace.replay.archive;

import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.schemas.RecordedRouting;
import org.jspecify.annotations.Nullable;

/** The routing that a record has replayed, as the engine takes it. */
public final class ReplayedRouting {
    private ReplayedRouting() {}

    /** Null where each pass chooses its own. */
    public static @Nullable RoutedExperts of(@Nullable RecordedRouting recorded) {
        return recorded == null
                ? null
                : RoutedExperts.of(
                        recorded.getLayers(),
                        recorded.getExpertsPerToken(),
                        recorded.getExperts(),
                        recorded.getWeights());
    }
}
