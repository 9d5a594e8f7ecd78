package dev.millrace.topology.join;

import dev.millrace.corrections.stage.StageInput;
import dev.millrace.schemas.Credit;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.rollout.ComparedDistribution;
import dev.millrace.schemas.rollout.Refusal;
import dev.millrace.schemas.rollout.RefusalReason;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.topology.ingress.Arrival;
import dev.millrace.topology.ingress.JoinSide;
import dev.millrace.topology.ingress.PartnerArrival;
import dev.millrace.topology.ingress.RewardArrival;
import dev.millrace.topology.ingress.RolloutArrival;
import dev.millrace.topology.ingress.ScoreArrival;
import java.nio.ByteBuffer;
import java.util.EnumMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;

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

    /** Its own reward says nothing of a rollout that was broken off; one that was found apart from it does. */
    boolean isWithoutVerdict() {
        FinishReason reason = rollout.rollout().getFinishReason();
        return (reason == FinishReason.ABORTED || reason == FinishReason.FAILED) && reward().isEmpty();
    }

    String unfinished() {
        Rollout rollout = this.rollout.rollout();
        return "it ended by " + rollout.getFinishReason() + " after "
                + rollout.getMask().remaining() + " tokens"
                + (rollout.getError() == null ? "" : ": " + rollout.getError());
    }

    /**
     * Returns the trajectory. The partners must fit the rollout and have the requested values. One of them is a score,
     * which may lack old log-probs if the run continues without them.
     *
     * <p>Behavior log-probs are those that are comparable with scores: over the kept tokens if the rollout's sampling
     * keeps its mask, which is then included, otherwise before truncation. Vectors are views of the records' own bytes.
     *
     * @param inputs inputs of the algorithm; of the values that only the rollout has, just these are copied
     * @param at returns the offset of a record
     */
    Trajectory trajectory(RunIdentity run, Set<StageInput> inputs, Function<Arrival, LogCoordinates> at) {
        Rollout rollout = this.rollout.rollout();
        ByteBuffer old = scored(PolicyRole.OLD)
                .map(scored -> scored.vector().getLogProbs())
                .orElse(null);
        Scored proximal = scored(PolicyRole.PROXIMAL).orElseThrow();
        Optional<Scored> reference = scored(PolicyRole.REFERENCE);
        Optional<Scored> teacher = scored(PolicyRole.TEACHER);
        Optional<RewardArrival> reward = reward();
        ByteBuffer behavior = ComparedDistribution.behaviorLogProbs(rollout);
        Credit credit = reward.isPresent() ? reward.get().reward().getCredit() : rollout.getCredit();
        return new Trajectory(
                run.runId(),
                run.epoch(),
                run.policyId(),
                rollout.getRolloutId(),
                rollout.getGroupId(),
                rollout.getOrdinal(),
                rollout.getSampleIndex(),
                rollout.getGroupSize(),
                at.apply(this.rollout),
                at.apply(proximal.by()),
                rollout.getPromptTokens(),
                rollout.getResponseTokens(),
                rollout.getMask(),
                rollout.getSampling().getTemperature(),
                rollout.getVersionSpans(),
                behavior,
                old,
                proximal.vector().getLogProbs(),
                versionOf(proximal),
                reward.map(r -> r.reward().getReward()).orElse(rollout.getReward()),
                rollout.getFinishReason().name(),
                rollout.getFinishedAtMs(),
                proximal.by().score().getScoredAtMs(),
                reference.map(r -> r.vector().getLogProbs()).orElse(null),
                reference.map(PendingJoin::versionOf).orElse(-1L),
                teacher.map(t -> t.vector().getLogProbs()).orElse(null),
                reward.map(r -> r.reward().getRewardComponents())
                        .orElse(
                                inputs.contains(StageInput.REWARD_COMPONENTS)
                                        ? rollout.getRewardComponents()
                                        : Map.of()),
                reward.map(at).orElse(null),
                reference.map(Scored::by).map(at).orElse(null),
                teacher.map(Scored::by).map(at).orElse(null),
                credit,
                credit != null || inputs.contains(StageInput.TURNS) ? rollout.getTurns() : null,
                rollout.getTask() == null ? null : rollout.getTask().getKey(),
                ComparedDistribution.keptTokens(rollout),
                rollout.getSamplingTrace() == null
                        ? null
                        : rollout.getSamplingTrace().getTopLogProbs(),
                proximal.vector().getEntropies(),
                proximal.vector().getSumSquaredProbs(),
                proximal.vector().getTopLogProbs(),
                ComparedDistribution.routing(rollout),
                proximal.vector().getValues());
    }

    /** Why a rollout is refused that comes with the values of a partner's critic to a policy that has its own. */
    static Optional<Refusal> twoCritics(Trajectory trajectory) {
        Credit credit = trajectory.getCredit();
        return trajectory.getProximalValues() == null || credit == null || credit.getTokenLevelValues() == null
                ? Optional.empty()
                : Optional.of(Refusal.of(
                        RefusalReason.VECTORS,
                        field(StageInput.VALUES),
                        "the policy has a value head of its own (algorithm.critic=value_head), and a"
                                + " partner's record has values too; leave token_level_values out of the"
                                + " credit, or start a run with algorithm.critic=off"));
    }

    private static long versionOf(Scored scored) {
        return scored.vector().getVersionSpans().get(0).getVersion();
    }

    /** Why a rollout is refused that lacks what a stage of the algorithm reads, and who could have given it. */
    static Refusal missing(StageInput input) {
        return Refusal.of(
                RefusalReason.VECTORS,
                field(input),
                "a stage of the algorithm reads " + input.text() + ", and the rollout has none; " + wayOut(input)
                        + ", or leave that stage out");
    }

    private static String field(StageInput input) {
        return switch (input) {
            case TURN_REWARDS -> "credit.turn_level_rewards";
            case TOKEN_REWARDS -> "credit.token_level_rewards";
            case VALUES -> "credit.token_level_values";
            case GREEDY_REWARDS -> "credit.greedy_reward";
            case REWARD_COMPONENTS -> "reward_components";
            case DISTRIBUTIONS -> "sampling_trace.top_log_probs";
            default -> "";
        };
    }

    private static String wayOut(StageInput input) {
        return switch (input) {
            case TURN_REWARDS, TOKEN_REWARDS ->
                "have them recorded (reward.credit=true, of an environment that knows them, or a reward record with credit)";
            case VALUES ->
                "have the policy's own critic make them (algorithm.critic=value_head), or a partner's write them (in the credit of a reward record, or of the rollout)";
            case GREEDY_REWARDS ->
                "have the prompt answered greedily too, and that reward recorded (in the credit of a reward record, or of the rollout)";
            case REWARD_COMPONENTS -> "have its environment or reward function name them";
            case DISTRIBUTIONS ->
                "have them recorded and scored (admission.sampling.top_log_probs and scorer.top_log_probs)";
            case ENTROPIES -> "have them scored (scorer.entropies=true)";
            case SQUARED_PROBABILITIES -> "have them scored (scorer.sum_squared_probs=true)";
            case REFERENCE -> "have a reference score joined (topology.join.reference=true)";
            case TEACHER -> "have a teacher's score joined (topology.join.teacher=true)";
            default -> "have them recorded";
        };
    }
}
