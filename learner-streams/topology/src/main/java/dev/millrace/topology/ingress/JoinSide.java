package dev.millrace.topology.ingress;

import dev.millrace.schemas.run.RunTopics;
import dev.millrace.topology.task.OutcomeReason;
import java.util.EnumSet;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What the join brings together: a rollout, and what is found about it elsewhere. The order is that of changelogs and
 * journals, and never changes.
 */
public enum JoinSide {
    /** What was sampled. */
    ROLLOUT("rollout", null, null),
    /** Log-probs by the learner's engine at the versions that sampled, and at the newest. */
    SCORE("score", OutcomeReason.UNSCORED, OutcomeReason.ORPHAN_SCORE),
    /** A reward found apart from sampling. */
    REWARD("reward", OutcomeReason.UNREWARDED, OutcomeReason.ORPHAN_REWARD),
    /** Log-probs by the anchor of KL. */
    REFERENCE("reference score", OutcomeReason.UNREFERENCED, OutcomeReason.ORPHAN_REFERENCE),
    /** Log-probs by a policy to imitate. */
    TEACHER("teacher score", OutcomeReason.UNTAUGHT, OutcomeReason.ORPHAN_TEACHER);

    private static final Set<JoinSide> PARTNERS = Set.copyOf(EnumSet.range(SCORE, TEACHER));

    private final String noun;
    private final @Nullable OutcomeReason missing;
    private final @Nullable OutcomeReason orphan;

    JoinSide(String noun, @Nullable OutcomeReason missing, @Nullable OutcomeReason orphan) {
        this.noun = noun;
        this.missing = missing;
        this.orphan = orphan;
    }

    /** Why a rollout leaves that this partner never came to. */
    public OutcomeReason missing() {
        return Objects.requireNonNull(missing, noun);
    }

    /** Why this partner leaves without a rollout. */
    public OutcomeReason orphan() {
        return Objects.requireNonNull(orphan, noun);
    }

    /** All but the rollout. */
    public static Set<JoinSide> partners() {
        return PARTNERS;
    }

    /** For a sentence. */
    public String noun() {
        return noun;
    }

    /** Where records of this kind are. */
    public String topic(RunTopics topics) {
        return switch (this) {
            case ROLLOUT -> topics.rollouts();
            case SCORE -> topics.scores();
            case REWARD -> topics.rewards();
            case REFERENCE -> topics.referenceScores();
            case TEACHER -> topics.teacherScores();
        };
    }
}
