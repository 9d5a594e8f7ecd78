package dev.millrace.replay.archive;

import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.schemas.RecordedRouting;
import org.jspecify.annotations.Nullable;

public final class ReplayedRouting {
    private ReplayedRouting() {}

    /** A record's routing for the engine; null where each pass chooses its own. */
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
