package dev.millrace.stages;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.trm.TopKDistributions;
import dev.millrace.schemas.Credit;
import dev.millrace.schemas.Speaker;
import dev.millrace.schemas.TopLogProbs;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.Turn;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import org.apache.commons.codec.digest.DigestUtils;
import org.jspecify.annotations.Nullable;

/**
 * Inputs of the stages from one trajectory in addition to mask, log-probs, versions and age, limited to the inputs of
 * the algorithm. Values by input:
 *
 * <ul>
 *   <li>vectors: one float per response token;
 *   <li>{@link StageInput#TURNS}: one int per response token, {@link StageInput#TURN_REWARDS}: one double per turn;
 *       turns are the policy's, counted from 0, and a reward between two of them belongs to the former;
 *   <li>{@link StageInput#GREEDY_REWARDS}: a double;
 *   <li>{@link StageInput#REWARD_COMPONENTS}: a map;
 *   <li>{@link StageInput#DISTRIBUTIONS}: the two records, by trained token;
 *   <li>{@link StageInput#PROMPTS} and {@link StageInput#TASKS}: a key.
 * </ul>
 *
 * <p>Immutable; arrays must not be written.
 */
public final class TrajectoryNotes {
    /** Notes of a trajectory if the algorithm reads no such input. */
    public static final TrajectoryNotes NONE = new TrajectoryNotes(0, Map.of(), Set.of());

    private static final Set<StageInput> VECTORS = Set.of(
            StageInput.REFERENCE,
            StageInput.TEACHER,
            StageInput.ENTROPIES,
            StageInput.SQUARED_PROBABILITIES,
            StageInput.TOKEN_REWARDS,
            StageInput.VALUES);
    private static final Set<StageInput> NOTED = Set.of(
            StageInput.REFERENCE,
            StageInput.TEACHER,
            StageInput.ENTROPIES,
            StageInput.SQUARED_PROBABILITIES,
            StageInput.TOKEN_REWARDS,
            StageInput.VALUES,
            StageInput.GREEDY_REWARDS,
            StageInput.TURNS,
            StageInput.TURN_REWARDS,
            StageInput.REWARD_COMPONENTS,
            StageInput.DISTRIBUTIONS,
            StageInput.PROMPTS,
            StageInput.TASKS);

    /** A map of a few names, about. */
    private static final int COMPONENTS_BYTES = 256;

    private static final int PROMPT_KEY_BYTES = 16;

    private final int tokens;
    private final Map<StageInput, Object> known;
    private final Set<StageInput> wanted;

    /** The top tokens of behavior and proximal; rows are trained tokens. */
    private record Pair(TopLogProbs behavior, TopLogProbs proximal) {}

    private TrajectoryNotes(int tokens, Map<StageInput, Object> known, Set<StageInput> wanted) {
        this.tokens = tokens;
        this.known = known;
        this.wanted = wanted;
    }

    /** Returns whether trajectories can have the input; others come from elsewhere. */
    public static boolean isNoted(StageInput input) {
        return NOTED.contains(input);
    }

    /**
     * Collects the requested inputs that the trajectory has.
     *
     * @param inputs of an algorithm; those that trajectories never have are ignored
     */
    public static TrajectoryNotes of(Trajectory trajectory, Set<StageInput> inputs) {
        Map<StageInput, Object> known = null;
        for (StageInput input : inputs) {
            if (NOTED.contains(input)) {
                known = known == null ? new EnumMap<>(StageInput.class) : known;
                Object value = value(trajectory, input);
                if (value != null) {
                    known.put(input, value);
                }
            }
        }
        return known == null ? NONE : new TrajectoryNotes(PackedMask.length(trajectory.getMask()), known, inputs);
    }

    private static @Nullable Object value(Trajectory trajectory, StageInput input) {
        Credit credit = trajectory.getCredit();
        return switch (input) {
            case REFERENCE -> floats(trajectory.getReferenceLogProbs());
            case TEACHER -> floats(trajectory.getTeacherLogProbs());
            case ENTROPIES -> floats(trajectory.getProximalEntropies());
            case SQUARED_PROBABILITIES -> floats(trajectory.getProximalSumSquaredProbs());
            case TOKEN_REWARDS -> credit == null ? null : floats(credit.getTokenLevelRewards());
            case VALUES ->
                trajectory.getProximalValues() != null
                        ? floats(trajectory.getProximalValues())
                        : credit == null ? null : floats(credit.getTokenLevelValues());
            case GREEDY_REWARDS -> credit == null ? null : credit.getGreedyReward();
            case TURNS -> trajectory.getTurns() == null ? null : turnOfToken(trajectory.getTurns());
            case TURN_REWARDS ->
                credit == null || credit.getTurnLevelRewards() == null || trajectory.getTurns() == null
                        ? null
                        : turnRewards(trajectory.getTurns(), credit.getTurnLevelRewards());
            case REWARD_COMPONENTS ->
                trajectory.getRewardComponents().isEmpty() ? null : Map.copyOf(trajectory.getRewardComponents());
            case DISTRIBUTIONS ->
                trajectory.getTopLogProbs() == null || trajectory.getProximalTopLogProbs() == null
                        ? null
                        : new Pair(trajectory.getTopLogProbs(), trajectory.getProximalTopLogProbs());
            case PROMPTS -> promptKey(trajectory.getPromptTokens());
            case TASKS -> trajectory.getTaskKey();
            default -> throw new IllegalArgumentException("no trajectory has " + input.text());
        };
    }

    /** The first 128 bits of the SHA-256 of a prompt's packed tokens, in hexadecimal. */
    private static String promptKey(ByteBuffer tokens) {
        byte[] digest = DigestUtils.digest(DigestUtils.getSha256Digest(), tokens.duplicate());
        return HexFormat.of().formatHex(digest, 0, PROMPT_KEY_BYTES);
    }

    private static float @Nullable [] floats(@Nullable ByteBuffer packed) {
        return packed == null ? null : PackedFloats.toArray(packed);
    }

    private static int[] turnOfToken(List<Turn> turns) {
        int[] turnOf = new int[turns.isEmpty() ? 0 : turns.get(turns.size() - 1).getEnd()];
        int ofPolicy = 0;
        for (Turn turn : turns) {
            boolean isPolicys = turn.getSpeaker() == Speaker.POLICY;
            Arrays.fill(turnOf, turn.getStart(), turn.getEnd(), isPolicys ? ofPolicy : -1);
            ofPolicy += isPolicys ? 1 : 0;
        }
        return turnOf;
    }

    private static double[] turnRewards(List<Turn> turns, ByteBuffer rewards) {
        int policys = (int) turns.stream()
                .filter(turn -> turn.getSpeaker() == Speaker.POLICY)
                .count();
        double[] perTurn = new double[policys];
        int begun = 0;
        for (int turn = 0; turn < turns.size() && policys > 0; turn++) {
            begun += turns.get(turn).getSpeaker() == Speaker.POLICY ? 1 : 0;
            perTurn[Math.max(0, begun - 1)] += PackedFloats.get(rewards, turn);
        }
        return perTurn;
    }

    /** Returns the first requested input that the trajectory lacks. */
    public Optional<StageInput> missing() {
        return wanted.stream()
                .filter(input -> NOTED.contains(input) && !known.containsKey(input))
                .sorted()
                .findFirst();
    }

    /** Approximate heap size in bytes. */
    public long bytes() {
        long bytes = 0;
        for (Map.Entry<StageInput, Object> entry : known.entrySet()) {
            Object value = entry.getValue();
            if (value instanceof float[] || value instanceof int[]) {
                bytes += (long) Float.BYTES * tokens;
            } else if (value instanceof double[] perTurn) {
                bytes += (long) Double.BYTES * perTurn.length;
            } else if (value instanceof Pair pair) {
                bytes += bytes(pair.behavior()) + bytes(pair.proximal());
            } else {
                bytes += COMPONENTS_BYTES;
            }
        }
        return bytes;
    }

    private static long bytes(TopLogProbs top) {
        return (long) top.getTokenIds().remaining()
                + top.getLogProbs().remaining()
                + top.getRemainderLogProbs().remaining();
    }

    /**
     * Passes the inputs that all members of a batch have to the stages. An input that one member lacks is absent; the
     * stage that reads it refuses the batch.
     *
     * @param members one for each of its sequences
     */
    public static StageFacts.Builder addTo(StageFacts.Builder facts, TokenBatch tokens, List<TrajectoryNotes> members) {
        if (members.isEmpty()) {
            return facts;
        }
        for (StageInput input : members.get(0).known.keySet()) {
            if (members.stream().allMatch(member -> member.known.containsKey(input))) {
                add(facts, input, tokens, members);
            }
        }
        return facts;
    }

    private static void add(
            StageFacts.Builder facts, StageInput input, TokenBatch tokens, List<TrajectoryNotes> members) {
        if (VECTORS.contains(input)) {
            float[] packed = new float[tokens.tokenCount()];
            for (int s = 0; s < members.size(); s++) {
                float[] own = members.get(s).get(input, float[].class);
                System.arraycopy(own, 0, packed, tokens.start(s), own.length);
            }
            facts.vector(input, packed);
        } else if (input == StageInput.TURNS) {
            int[] packed = new int[tokens.tokenCount()];
            for (int s = 0; s < members.size(); s++) {
                int[] own = members.get(s).get(input, int[].class);
                System.arraycopy(own, 0, packed, tokens.start(s), own.length);
            }
            facts.turns(packed);
        } else if (input == StageInput.GREEDY_REWARDS) {
            facts.greedyRewards(members.stream()
                    .mapToDouble(member -> member.get(input, Double.class))
                    .toArray());
        } else if (input == StageInput.TURN_REWARDS) {
            facts.turnRewards(members.stream()
                    .map(member -> member.get(input, double[].class))
                    .toArray(double[][]::new));
        } else if (input == StageInput.PROMPTS || input == StageInput.TASKS) {
            facts.keys(
                    input,
                    members.stream()
                            .map(member -> member.get(input, String.class))
                            .toList());
        } else if (input == StageInput.REWARD_COMPONENTS) {
            List<Map<String, Double>> components = new ArrayList<>();
            for (TrajectoryNotes member : members) {
                @SuppressWarnings("unchecked") // nothing else is stored under this name
                Map<String, Double> own = member.get(input, Map.class);
                components.add(own);
            }
            facts.rewardComponents(components);
        } else {
            facts.distributions(distributions(tokens, members));
        }
    }

    /** Spreads rows of trained tokens over all tokens; shorter rows are padded. */
    private static TopKDistributions distributions(TokenBatch tokens, List<TrajectoryNotes> members) {
        int k = members.stream()
                .mapToInt(member -> member.get(StageInput.DISTRIBUTIONS, Pair.class)
                        .behavior()
                        .getK())
                .max()
                .orElseThrow();
        float[] behavior = new float[Math.multiplyExact(tokens.tokenCount(), k)];
        float[] proximal = new float[behavior.length];
        float[] behaviorRest = new float[tokens.tokenCount()];
        Arrays.fill(behavior, Float.NEGATIVE_INFINITY);
        Arrays.fill(proximal, Float.NEGATIVE_INFINITY);
        for (int s = 0; s < members.size(); s++) {
            Pair pair = members.get(s).get(StageInput.DISTRIBUTIONS, Pair.class);
            int own = pair.behavior().getK();
            int row = 0;
            for (int t = tokens.start(s); t < tokens.end(s); t++) {
                if (tokens.isTrained(t)) {
                    for (int i = 0; i < own; i++) {
                        behavior[t * k + i] = PackedFloats.get(pair.behavior().getLogProbs(), row * own + i);
                        proximal[t * k + i] = PackedFloats.get(pair.proximal().getLogProbs(), row * own + i);
                    }
                    behaviorRest[t] = PackedFloats.get(pair.behavior().getRemainderLogProbs(), row++);
                }
            }
        }
        return new TopKDistributions(k, behavior, proximal, behaviorRest);
    }

    private <T> T get(StageInput input, Class<T> type) {
        return type.cast(Objects.requireNonNull(known.get(input), input::text));
    }
}
