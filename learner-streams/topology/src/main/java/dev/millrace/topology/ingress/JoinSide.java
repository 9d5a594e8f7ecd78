package dev.millrace.topology.ingress;

import dev.millrace.schemas.run.RunTopics;
import java.util.EnumSet;
import java.util.Set;

/**
 * What the join brings together: a rollout, and what is found about it elsewhere. The order is that of changelogs and
 * journals, and never changes.
 */
public enum JoinSide {
    /** What was sampled. */
    ROLLOUT("rollout"),
    /** Log-probs by the learner's engine at the versions that sampled, and at the newest. */
    SCORE("score"),
    /** A reward found apart from sampling. */
    REWARD("reward"),
    /** Log-probs by the anchor of KL. */
    REFERENCE("reference score"),
    /** Log-probs by a policy to imitate. */
    TEACHER("teacher score");

    private static final Set<JoinSide> PARTNERS = Set.copyOf(EnumSet.range(SCORE, TEACHER));

    private final String noun;

    JoinSide(String noun) {
        this.noun = noun;
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
