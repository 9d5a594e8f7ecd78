package dev.millrace.scorer;

import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.run.RunTopics;

/** What a scorer's log-probs are for. Scorers of one purpose share the rollouts; those of another score them all again. */
public enum ScorerPurpose {
    /** Importance ratios: the versions that sampled and the newest. */
    LEARNER("scorer"),
    /** KL: a fixed policy. */
    REFERENCE("reference"),
    /** Imitation: another fixed policy. */
    TEACHER("teacher");

    private final String role;

    ScorerPurpose(String role) {
        this.role = role;
    }

    /** Name of the role, in groups, meters and on the screen. */
    public String role() {
        return role;
    }

    public String topic(RunTopics topics) {
        return switch (this) {
            case LEARNER -> topics.scores();
            case REFERENCE -> topics.referenceScores();
            case TEACHER -> topics.teacherScores();
        };
    }

    /** Whose log-probs a fixed policy's are. */
    PolicyRole policy() {
        return switch (this) {
            case REFERENCE -> PolicyRole.REFERENCE;
            case TEACHER -> PolicyRole.TEACHER;
            case LEARNER -> throw new IllegalStateException("the learner's policy is not fixed");
        };
    }
}
