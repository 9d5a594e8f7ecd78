package dev.millrace.topology.ingress;

import org.jspecify.annotations.Nullable;

/** What was found about a rollout elsewhere. It is about one record of it, not about its name. */
public sealed interface PartnerArrival extends Arrival permits ScoreArrival, RewardArrival {

    /** Offset of the rollout's record that it is about. */
    long aboutOffset();

    /** Why what was asked for could not be found; null where it was. */
    @Nullable
    String unavailable();
}
