package dev.millrace.schemas.run;

import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Topic names of a run: a prefix and fixed names.
 *
 * @param prefix of every name; letters, digits, '-', '_' and '.', 1 to 150 of them
 */
public record RunTopics(String prefix) {
    /** Roles of a run, in the order of the data flow. */
    public static final List<String> ROLES = List.of(
            "admission", "generator", "gateway", "scorer", "reference", "teacher", "topology", "learner", "evaluator");

    /** Roles whose consumer groups have a lag in every run. */
    public static final List<String> CONSUMERS = List.of("generator", "scorer", "topology", "learner");

    /** Roles that measure their idle time. */
    public static final List<String> IDLE_TIMED = List.of("generator", "scorer", "learner");

    private static final Pattern PREFIX = Pattern.compile("[A-Za-z0-9._-]{1,150}");

    public RunTopics {
        if (prefix == null || !isPrefix(prefix)) {
            throw new IllegalArgumentException(
                    "topic prefix must be 1 to 150 letters, digits, '-', '_' or '.': '" + prefix + "'");
        }
    }

    public static boolean isPrefix(String text) {
        return PREFIX.matcher(text).matches();
    }

    /** RunClaim under the key {@code run}: owner of the topics; compacted. */
    public String run() {
        return prefix + "run";
    }

    /** PromptRequest by group id. */
    public String prompts() {
        return prefix + "prompts";
    }

    /** Rollout by group id; as many partitions as {@link #scores()}. */
    public String rollouts() {
        return prefix + "rollouts";
    }

    /** Score by group id; as many partitions as {@link #rollouts()}. */
    public String scores() {
        return prefix + "scores";
    }

    /** Reward by group id, for rewards computed outside of sampling; as many partitions as {@link #rollouts()}. */
    public String rewards() {
        return prefix + "rewards";
    }

    /** Score of the reference policy by group id; as many partitions as {@link #rollouts()}. */
    public String referenceScores() {
        return prefix + "reference-scores";
    }

    /** Score of the teacher by group id; as many partitions as {@link #rollouts()}. */
    public String teacherScores() {
        return prefix + "teacher-scores";
    }

    /** Trajectory by group id, in the partition of its policy: one partition for one policy. */
    public String trajectories() {
        return prefix + "trajectories";
    }

    /** LearnerBatch by policy id. */
    public String batches() {
        return prefix + "batches";
    }

    /** PolicyVersion by {@link VersionKey}; compacted. */
    public String policyVersions() {
        return prefix + "policy-versions";
    }

    /** WeightChunk of the weights, by the {@link VersionKey} of their chunk. */
    public String weights() {
        return prefix + "weights";
    }

    /** WeightChunk of the optimizer's state, keyed likewise; only a learner reads it. */
    public String optimizerState() {
        return prefix + "optimizer-state";
    }

    /** TrainingStep by policy id. */
    public String trainingLog() {
        return prefix + "training-log";
    }

    /** Serving by {@link ServerKey}; compacted. */
    public String serving() {
        return prefix + "serving";
    }

    /** Outcome by group id: rollouts that left without reaching a batch. */
    public String outcomes() {
        return prefix + "outcomes";
    }

    /** Admission by group id: prompts in flight; compacted. */
    public String admission() {
        return prefix + "admission";
    }

    /** SessionEvent by group id: agent sessions of a gateway; as many partitions as {@link #prompts()}. */
    public String sessions() {
        return prefix + "sessions";
    }

    /** Chunks of the run's files, such as the tokenizer's, as bytes by content hash; compacted. */
    public String files() {
        return prefix + "files";
    }

    /** VersionEvaluation by {@link EvaluationKey}: versions on held-out prompts; compacted. */
    public String evaluations() {
        return prefix + "evaluations";
    }

    /** Refused records, unchanged, with error headers. */
    public String deadLetters() {
        return prefix + "dead-letters";
    }

    /** A consumer group or application id of an epoch: from epoch 1 on with its number. */
    public String group(String role, int epoch) {
        return prefix + (epoch == 0 ? role : role + "-" + epoch);
    }

    /** Topics of a rollout's partners; a run has those that its topology joins. */
    public Set<String> ofPartners() {
        return Set.of(rewards(), referenceScores(), teacherScores());
    }

    /**
     * Topics that every run has; {@link #admission()}, {@link #files()}, {@link #sessions()} and {@link #evaluations()}
     * are created when an older run is resumed.
     */
    public List<String> required() {
        return all().stream()
                .filter(topic -> !ofPartners().contains(topic)
                        && !Set.of(admission(), files(), sessions(), evaluations())
                                .contains(topic))
                .toList();
    }

    public List<String> all() {
        return List.of(
                run(),
                prompts(),
                rollouts(),
                scores(),
                rewards(),
                referenceScores(),
                teacherScores(),
                trajectories(),
                batches(),
                policyVersions(),
                weights(),
                optimizerState(),
                trainingLog(),
                serving(),
                outcomes(),
                admission(),
                sessions(),
                files(),
                evaluations(),
                deadLetters());
    }
}
