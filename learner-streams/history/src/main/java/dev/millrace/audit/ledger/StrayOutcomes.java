package dev.millrace.audit.ledger;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Outcomes about rollouts that a batch has, or that another outcome is about: what of them comes of copies, and what contradicts.
 *
 * <p>An outcome that is there once more, word for word, is a copy. One that says something else may be about a copy: somebody put a
 * trajectory on its topic once more, and its group, which had gone on without it, stayed short. Then there are two trajectories of the
 * rollout; where there is one, the topology has decided twice. It does so where the log has lost how far it had read: a record that it
 * reads again is called a duplicate, though no other record has its name, and what was decided before holds. What is kept is in proportion to such outcomes, and the topics are
 * read again for them alone. Not thread-safe.
 */
final class StrayOutcomes {
    private static final class Suspect {
        private final Set<RecordDigest> seen = new HashSet<>();
        private final List<String> reasons = new ArrayList<>();
        private boolean isDecidedAsDuplicate;
        private int trajectories;
    }

    /** Of a record that was read again, and of one whose name another one has. */
    private static final String DUPLICATE = "duplicate";

    private final Ledger ledger;
    private final Map<RolloutPlace, Suspect> suspects = new HashMap<>();
    private long copies;

    StrayOutcomes(Ledger ledger) {
        this.ledger = ledger;
    }

    /** A rollout that an outcome is about, and that was decided about before. */
    void suspect(RolloutPlace place) {
        suspects.computeIfAbsent(place, unseen -> new Suspect());
    }

    boolean areSuspected() {
        return !suspects.isEmpty();
    }

    /** Every outcome about a rollout, once more and in the order of the log. */
    void outcome(RolloutPlace place, String reason, RecordDigest digest) {
        Suspect suspect = suspects.get(place);
        if (suspect == null) {
            return;
        }
        boolean isTheDecision = suspect.seen.isEmpty() && ledger.isDropped(place);
        if (!suspect.seen.add(digest)) {
            copies++;
        } else if (!isTheDecision) {
            suspect.reasons.add(reason);
        } else {
            suspect.isDecidedAsDuplicate = reason.equals(DUPLICATE);
        }
    }

    /** Whether some are no copies of outcomes, so that it has to be known how many trajectories there are. */
    boolean areLeft() {
        return suspects.values().stream().anyMatch(suspect -> !suspect.reasons.isEmpty());
    }

    /** Every trajectory of a rollout. */
    void trajectory(RolloutPlace rollout) {
        Suspect suspect = suspects.get(rollout);
        if (suspect != null) {
            suspect.trajectories++;
        }
    }

    /**
     * Tells the ledger.
     *
     * @param outcomes how copies of outcomes are to be called
     * @param trajectories how copies of trajectories are
     */
    void settle(String outcomes, String trajectories) {
        for (long i = 0; i < copies; i++) {
            ledger.copy(outcomes);
        }
        suspects.forEach((place, suspect) -> {
            for (String reason : suspect.reasons) {
                if (suspect.trajectories > 1) {
                    ledger.copy(trajectories);
                } else if (reason.equals(DUPLICATE)) {
                    ledger.copy(outcomes);
                } else if (suspect.isDecidedAsDuplicate) {
                    ledger.copy(outcomes);
                    ledger.droppedAfterAll(place.partition(), place.offset(), reason);
                    suspect.isDecidedAsDuplicate = false;
                } else {
                    ledger.dropped(place.partition(), place.offset(), reason);
                }
            }
        });
    }
}
