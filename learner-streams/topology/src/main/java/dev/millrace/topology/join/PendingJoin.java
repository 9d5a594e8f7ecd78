package dev.millrace.topology.join;

import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.ingress.PartnerArrival;
import dev.millrace.topology.ingress.RewardArrival;
import dev.millrace.topology.ingress.RolloutArrival;
import dev.millrace.topology.ingress.ScoreArrival;
import java.util.EnumMap;
import java.util.Map;
import java.util.Optional;

/** A rollout and the partners that have come to it. Confined to one task. */
final class PendingJoin {
    private final RolloutArrival rollout;
    private final Map<JoinSide, PartnerArrival> partners = new EnumMap<>(JoinSide.class);

    PendingJoin(RolloutArrival rollout) {
        this.rollout = rollout;
    }

    void add(PartnerArrival partner) {
        partners.put(partner.kind(), partner);
    }

    RolloutArrival rollout() {
        return rollout;
    }

    /** In the order of their kinds. */
    Iterable<PartnerArrival> partners() {
        return partners.values();
    }

    /** The log-probs of a policy, and where they come from, if a partner brought them. */
    Optional<Scored> scored(PolicyRole policy) {
        for (PartnerArrival partner : partners.values()) {
            if (partner instanceof ScoreArrival score) {
                for (LogProbVector vector : score.score().getVectors()) {
                    if (vector.getPolicy() == policy) {
                        return Optional.of(new Scored(score, vector));
                    }
                }
            }
        }
        return Optional.empty();
    }

    /** One policy's log-probs, and the score that they are of. */
    record Scored(ScoreArrival by, LogProbVector vector) {}

    /** The reward, if one was found apart from sampling. */
    Optional<RewardArrival> reward() {
        return Optional.ofNullable((RewardArrival) partners.get(JoinSide.REWARD));
    }

    /** When the last of them was written, Unix milliseconds. */
    long completeMs() {
        long latest = rollout.timestampMs();
        for (PartnerArrival partner : partners.values()) {
            latest = Math.max(latest, partner.timestampMs());
        }
        return latest;
    }
}
