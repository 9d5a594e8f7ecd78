package dev.millrace.corrections.stage;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.trm.StoredDistributions;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

/**
 * Input of the stages: the layout under the sequences' own masks, and all other known facts, each under its name. An
 * unknown fact is absent and has no substitute; a request for it throws.
 *
 * <p>Vectors have one element per packed token. The caller owns the arrays, which are not copied, and must not write to
 * them while the facts are in use. Immutable under that condition.
 */
public final class StageFacts {
    private static final Set<StageInput> VECTORS = Set.of(
            StageInput.BEHAVIOR,
            StageInput.OLD,
            StageInput.PROXIMAL,
            StageInput.REFERENCE,
            StageInput.TEACHER,
            StageInput.ENTROPIES,
            StageInput.SQUARED_PROBABILITIES,
            StageInput.VALUES,
            StageInput.TOKEN_REWARDS);

    private final TokenBatch tokens;
    private final double[] rewards;
    private final Map<StageInput, Object> known;
    private final long version;
    private final boolean[] withoutOld;

    private StageFacts(Builder builder) {
        this.tokens = builder.tokens;
        this.rewards = builder.rewards;
        this.known = new EnumMap<>(builder.known);
        this.version = builder.version;
        this.withoutOld = builder.withoutOld;
    }

    /**
     * Begins with what every batch has.
     *
     * @param tokens layout, the sequences' own masks, groups
     */
    public static Builder of(TokenBatch tokens, double[] rewards) {
        return new Builder(tokens, rewards);
    }

    /** The layout under the sequences' own masks. */
    public TokenBatch tokens() {
        return tokens;
    }

    /** One per sequence, before reward stages; {@link StageBatch#rewards} has the shaped ones. */
    public double[] rewards() {
        return rewards;
    }

    public boolean has(StageInput input) {
        return known.containsKey(input);
    }

    /**
     * A vector with one element per packed token. Of old log-probs those of sequences {@link #withoutOld} are NaN.
     *
     * @throws AbsentInputException if it is not known
     */
    public float[] vector(StageInput input) {
        if (!VECTORS.contains(input)) {
            throw new IllegalArgumentException("not one value per token: " + input);
        }
        return (float[]) get(input);
    }

    /**
     * The log ratio of two policies. There is no current policy yet: at step start it equals the proximal one.
     *
     * @throws AbsentInputException if one of the two is not known
     */
    public LogRatio ratio(RatioKind kind) {
        return LogRatio.of(kind, vector(policy(kind.target())), vector(policy(kind.sampler())));
    }

    /** The two inputs that a comparison reads. */
    public static Set<StageInput> policies(RatioKind kind) {
        return Set.of(policy(kind.target()), policy(kind.sampler()));
    }

    private static StageInput policy(String name) {
        return switch (name) {
            case "behavior" -> StageInput.BEHAVIOR;
            case "old" -> StageInput.OLD;
            case "proximal" -> StageInput.PROXIMAL;
            default ->
                throw new IllegalArgumentException(
                        "a stage is decided before the update, so nothing is compared with the " + name + " policy");
        };
    }

    /** The actual or expected version at step start, from which staleness counts. */
    public long version() {
        return version;
    }

    /** One per sequence: whether its old log-probs are missing. */
    public boolean[] withoutOld() {
        return withoutOld;
    }

    /** Which version sampled which tokens; over {@link #tokens}. */
    public BatchVersions versions() {
        return (BatchVersions) get(StageInput.VERSIONS);
    }

    /** One per sequence, in milliseconds. */
    public long[] agesMs() {
        return (long[]) get(StageInput.AGES);
    }

    /**
     * One per packed token: which turn of its sequence, counted from 0, sampled it; -1 for what no turn sampled.
     */
    public int[] turns() {
        return (int[]) get(StageInput.TURNS);
    }

    /** One per sequence, each with one reward per turn. */
    public double[][] turnRewards() {
        return (double[][]) get(StageInput.TURN_REWARDS);
    }

    /** One per sequence, each with the parts of its reward by name. */
    public List<Map<String, Double>> rewardComponents() {
        @SuppressWarnings("unchecked") // the builder takes nothing else under this name
        List<Map<String, Double>> components = (List<Map<String, Double>>) get(StageInput.REWARD_COMPONENTS);
        return components;
    }

    /** One per sequence: the reward of the greedy answer to its prompt. */
    public double[] greedyRewards() {
        return (double[]) get(StageInput.GREEDY_REWARDS);
    }

    /** Of behavior and proximal. */
    public StoredDistributions distributions() {
        return (StoredDistributions) get(StageInput.DISTRIBUTIONS);
    }

    /** One per packed token: whether it was forced. */
    public boolean[] forcedTokens() {
        return (boolean[]) get(StageInput.FORCED_TOKENS);
    }

    /** One per sequence. */
    public double[] gradientNorms() {
        return (double[]) get(StageInput.GRADIENT_NORMS);
    }

    /** One per sequence: its key, equal for equal {@link StageInput#PROMPTS} or {@link StageInput#TASKS}. */
    public List<String> keys(StageInput input) {
        requireKeys(input);
        @SuppressWarnings("unchecked") // the builder takes nothing else under these names
        List<String> keys = (List<String>) get(input);
        return keys;
    }

    /** One per sequence. */
    public List<TrackedValue> baselines() {
        @SuppressWarnings("unchecked") // the builder takes nothing else under this name
        List<TrackedValue> baselines = (List<TrackedValue>) get(StageInput.BASELINES);
        return baselines;
    }

    /**
     * What a key's earlier rewards amount to.
     *
     * @param value before the batch; finite
     */
    public record TrackedValue(String key, double value) {
        public TrackedValue {
            if (!Double.isFinite(value)) {
                throw new IllegalArgumentException("a baseline must be finite: key=" + key + ", value=" + value);
            }
        }
    }

    private static void requireKeys(StageInput input) {
        if (input != StageInput.PROMPTS && input != StageInput.TASKS) {
            throw new IllegalArgumentException("not one key per sequence: " + input);
        }
    }

    private Object get(StageInput input) {
        return Optional.ofNullable(known.get(input)).orElseThrow(() -> new AbsentInputException(input));
    }

    /** The same under another mask, such as the one that stages have left. */
    public StageFacts under(TokenBatch layout) {
        return toBuilder(layout).build();
    }

    /** The same with something more. */
    public Builder toBuilder() {
        return toBuilder(tokens);
    }

    private Builder toBuilder(TokenBatch layout) {
        Builder builder = new Builder(layout, rewards);
        builder.known.putAll(known);
        builder.version = version;
        builder.withoutOld = withoutOld;
        return builder;
    }

    /** Names what is known, one after the other. Not thread-safe. */
    public static final class Builder {
        private final TokenBatch tokens;
        private double[] rewards;
        private final Map<StageInput, Object> known = new EnumMap<>(StageInput.class);
        private long version;
        private boolean[] withoutOld;

        private Builder(TokenBatch tokens, double[] rewards) {
            this.tokens = tokens;
            this.withoutOld = new boolean[tokens.sequenceCount()];
            this.rewards = perSequence("rewards", rewards, rewards.length);
        }

        private <T> T perSequence(String what, T values, int length) {
            if (length != tokens.sequenceCount()) {
                throw new IllegalArgumentException(what + ": one per sequence is needed: length=" + length
                        + ", sequences=" + tokens.sequenceCount());
            }
            return values;
        }

        private Builder know(StageInput input, Object value) {
            known.put(input, Objects.requireNonNull(value));
            return this;
        }

        public Builder rewards(double[] others) {
            rewards = perSequence("rewards", others, others.length);
            return this;
        }

        /** A vector with one element per packed token. */
        public Builder vector(StageInput input, float[] values) {
            if (!VECTORS.contains(input)) {
                throw new IllegalArgumentException("not one value per token: " + input);
            }
            tokens.requireLength(input.text(), values.length);
            return know(input, values);
        }

        /** What staleness is counted from, and which version sampled which tokens; over the same layout. */
        public Builder versions(long current, BatchVersions versions) {
            version = current;
            return know(StageInput.VERSIONS, versions);
        }

        /** One per sequence: whether its old log-probs, which are then NaN, cannot be had. */
        public Builder withoutOld(boolean[] without) {
            withoutOld = perSequence("old log-probs", without, without.length);
            return this;
        }

        public Builder agesMs(long[] ages) {
            return know(StageInput.AGES, perSequence("ages", ages, ages.length));
        }

        public Builder turns(int[] turnOfToken) {
            tokens.requireLength(StageInput.TURNS.text(), turnOfToken.length);
            return know(StageInput.TURNS, turnOfToken);
        }

        public Builder turnRewards(double[][] rewardsOfTurns) {
            return know(
                    StageInput.TURN_REWARDS,
                    perSequence(StageInput.TURN_REWARDS.text(), rewardsOfTurns, rewardsOfTurns.length));
        }

        public Builder rewardComponents(List<Map<String, Double>> components) {
            return know(
                    StageInput.REWARD_COMPONENTS,
                    perSequence(StageInput.REWARD_COMPONENTS.text(), List.copyOf(components), components.size()));
        }

        public Builder greedyRewards(double[] greedy) {
            return know(
                    StageInput.GREEDY_REWARDS, perSequence(StageInput.GREEDY_REWARDS.text(), greedy, greedy.length));
        }

        public Builder distributions(StoredDistributions stored) {
            tokens.requireLength(StageInput.DISTRIBUTIONS.text(), stored.tokens());
            return know(StageInput.DISTRIBUTIONS, stored);
        }

        public Builder forcedTokens(boolean[] forced) {
            tokens.requireLength(StageInput.FORCED_TOKENS.text(), forced.length);
            return know(StageInput.FORCED_TOKENS, forced);
        }

        public Builder gradientNorms(double[] norms) {
            return know(StageInput.GRADIENT_NORMS, perSequence(StageInput.GRADIENT_NORMS.text(), norms, norms.length));
        }

        public Builder keys(StageInput input, List<String> keys) {
            requireKeys(input);
            return know(input, perSequence(input.text(), List.copyOf(keys), keys.size()));
        }

        public Builder baselines(List<TrackedValue> baselines) {
            return know(
                    StageInput.BASELINES,
                    perSequence(StageInput.BASELINES.text(), List.copyOf(baselines), baselines.size()));
        }

        public StageFacts build() {
            return new StageFacts(this);
        }
    }

    @Override
    public String toString() {
        return tokens.sequenceCount() + " sequences, " + tokens.tokenCount() + " tokens, known: "
                + new TreeSet<>(known.keySet());
    }
}
