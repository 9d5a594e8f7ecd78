package dev.millrace.corrections.algorithm;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.advantage.Distillation;
import dev.millrace.corrections.advantage.Gae;
import dev.millrace.corrections.advantage.SoftMaximum;
import dev.millrace.corrections.advantage.TrackedBaseline;
import dev.millrace.corrections.kl.KlConfig;
import dev.millrace.corrections.length.PassAtKFigure;
import dev.millrace.corrections.m2po.M2po;
import dev.millrace.corrections.m2po.SecondMomentFigure;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.objective.Oapl;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.objective.ObjectiveInForce;
import dev.millrace.corrections.objective.Reinforce;
import dev.millrace.corrections.objective.Topr;
import dev.millrace.corrections.ratio.MissingOldLogProbs;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.corrections.rollout.Rejection;
import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.LengthGuardConfig;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.RewardStage;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.WeightStage;
import dev.millrace.corrections.staleness.AgeLimit;
import dev.millrace.corrections.staleness.StalenessDamping;
import dev.millrace.corrections.staleness.StalenessLimit;
import dev.millrace.corrections.vcpo.Ess;
import dev.millrace.corrections.weights.None;
import java.util.ArrayList;
import java.util.Collection;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.function.UnaryOperator;

/**
 * Configuration of how batches become updates, from rewards to the size of the step. The same {@link #stages} run when
 * a batch is formed, when a step starts, in a replay of a recorded run, and over vectors in a file.
 *
 * <p>Rejects settings that could have no effect: a stage that has nothing to compare, weights together with an
 * objective that corrects by itself, or a control without its input. Immutable.
 *
 * @param variant named algorithm that the other keys override
 * @param mode policies that the run distinguishes
 * @param rewards reward shaping, in order
 * @param advantage advantage estimator
 * @param staleness limits on staleness
 * @param missingOldLogProbs treatment of rollouts whose version's weights are gone
 * @param weights importance weights
 * @param rejection tokens and sequences rejected by how far two policies are apart
 * @param masks further masks, in order
 * @param objective the loss
 * @param lossAggMode aggregation of token losses, entropy bonus and in-loss KL
 * @param kl KL from a reference policy
 * @param entropy the entropy bonus
 * @param critic source of the values that advantages read
 * @param ess how the step follows the effective sample size
 * @param lengthGuard step scale at a surge of response lengths
 * @param minibatches optimizer steps per epoch, over equal parts of the batch
 * @param epochs passes over a batch
 * @param routingReplay experts that scoring and training use
 */
public record Algorithm(
        String variant,
        Mode mode,
        List<RewardStage> rewards,
        AdvantageEstimator advantage,
        StalenessRules staleness,
        MissingOldLogProbs missingOldLogProbs,
        WeightStage weights,
        Rejection rejection,
        List<MaskStage> masks,
        Objective objective,
        LossAggregation lossAggMode,
        KlConfig kl,
        EntropyConfig entropy,
        CriticConfig critic,
        Ess ess,
        LengthGuardConfig lengthGuard,
        int minibatches,
        int epochs,
        RoutingReplay routingReplay) {

    private static final Set<StageInput> COMPARED = Set.of(StageInput.OLD, StageInput.PROXIMAL);

    public Algorithm {
        rewards = List.copyOf(rewards);
        masks = List.copyOf(masks);
        atLeastOne("minibatches", minibatches);
        atLeastOne("epochs", epochs);
        requireUpdates(objective, minibatches, epochs);
        if (routingReplay == RoutingReplay.LEARNER && minibatches * (long) epochs == 1) {
            throw new IllegalArgumentException(
                    "routing_replay=learner has the later updates of a step go through the experts of"
                            + " its start, and with minibatches=1 and epochs=1 there is one update; raise one of them, or choose"
                            + " routing_replay=none or generator");
        }
        requireAdvantage(objective, advantage);
        if (critic instanceof CriticConfig.ValueHead head) {
            requireCritic(head, advantage, mode, minibatches * (long) epochs);
        }
        requireOneSign(objective, advantage, kl);
        requireRewardsRead(advantage, rewards, kl);
        requireRewardsAsTheyCame(advantage, rewards, kl);
        requireRatios(objective, weights, ess);
        if (mode == Mode.BYPASS) {
            requireNothingCompared(rewards, advantage, rejection, masks, objective, weights, ess);
        }
        if (mode == Mode.RECORDED && missingOldLogProbs == MissingOldLogProbs.INTERPOLATE) {
            throw new IllegalArgumentException(
                    "mode=recorded has no log-probs of the step's own, and missing_old_log_probs=interpolate puts proximal"
                            + " between them and behavior; choose mode=decoupled, or missing_old_log_probs=mask");
        }
        if (mode == Mode.RECORDED && kl instanceof KlConfig.InReward) {
            throw new IllegalArgumentException(
                    "mode=recorded does not score at the step, and kl.kind=in_reward takes proximal log-probs of then;"
                            + " choose mode=decoupled, or kl.kind=in_loss");
        }
        if ((mode == Mode.RECORDED || mode == Mode.BYPASS) && kl.againstLearner()) {
            throw new IllegalArgumentException("mode=" + mode.name().toLowerCase(Locale.ROOT)
                    + " does not score at the step, and kl.reference.kind=learner takes the learner's log-probs of then;"
                    + " choose mode=decoupled, or another kl.reference.kind");
        }
        requirePenaltyWeighedOnce(kl, mode, objective, weights);
        if (missingOldLogProbs == MissingOldLogProbs.INTERPOLATE) {
            requireOldUnread(objective, listed(rewards, advantage, rejection, masks));
        }
        requireDistinct(listed(rewards, advantage, rejection, masks));
        inForce(objective, mode, minibatches, epochs, weights, rejection, masks)
                .refusal()
                .ifPresent(sentence -> {
                    throw new IllegalArgumentException(sentence);
                });
    }

    private static ObjectiveInForce inForce(
            Objective objective,
            Mode mode,
            int minibatches,
            int epochs,
            WeightStage weights,
            Rejection rejection,
            List<MaskStage> masks) {
        return new ObjectiveInForce(
                objective,
                kind(objective),
                mode == Mode.DECOUPLED,
                minibatches * (long) epochs,
                !(weights instanceof None),
                rejection.rejects() || !masks.isEmpty(),
                masks.stream().anyMatch(M2po.class::isInstance));
    }

    private static void atLeastOne(String key, int value) {
        if (value < 1) {
            throw new IllegalArgumentException(key + " must be at least 1: " + value);
        }
    }

    private static void requireUpdates(Objective objective, int minibatches, int epochs) {
        if (objective instanceof Reinforce && (minibatches > 1 || epochs > 1)) {
            throw new IllegalArgumentException((epochs > 1 ? "epochs" : "minibatches")
                    + " above 1 needs an objective with a trust region, since later steps train on an older policy's tokens:"
                    + " objective.kind=reinforce, minibatches=" + minibatches + ", epochs=" + epochs
                    + "; choose objective.kind=decoupled_ppo");
        }
        if (objective.needsWholeGroups() && minibatches > 1) {
            throw new IllegalArgumentException("objective.kind=" + kind(objective)
                    + " decides over all answers of a prompt, and minibatches cut groups apart: minibatches="
                    + minibatches + "; set it to 1, or choose another objective");
        }
    }

    private static void requireAdvantage(Objective objective, AdvantageEstimator advantage) {
        if (objective.regressesOnOptimalAdvantage() != advantage instanceof SoftMaximum) {
            throw new IllegalArgumentException(
                    objective.regressesOnOptimalAdvantage()
                            ? "objective.kind=" + kind(objective)
                                    + " regresses on the optimal advantage, so advantage.kind must be soft_maximum: "
                                    + advantage.name()
                            : "advantage.kind=soft_maximum is what objective.kind=oapl regresses on; choose that"
                                    + " objective, or another advantage: objective.kind=" + kind(objective));
        }
        if (objective instanceof Oapl oapl && advantage instanceof SoftMaximum soft && oapl.beta() != soft.beta()) {
            throw new IllegalArgumentException(
                    "objective.beta and advantage.beta are the temperature of one optimum and must be the same: "
                            + oapl.beta() + " and " + soft.beta());
        }
    }

    private static void requireCritic(
            CriticConfig.ValueHead head, AdvantageEstimator advantage, Mode mode, long updates) {
        if (!(advantage instanceof Gae)) {
            throw new IllegalArgumentException("critic.kind=value_head learns values, and advantage.kind="
                    + advantage.name() + " reads none; choose advantage.kind=gae, or critic.kind=off");
        }
        if (mode == Mode.RECORDED) {
            throw new IllegalArgumentException(
                    "mode=recorded takes the batch's own advantages, and critic.kind=value_head is fitted to returns"
                            + " that are found where a step starts; choose mode=decoupled, or critic.kind=off");
        }
        if (head.clip() > 0 && updates == 1 && mode != Mode.BYPASS) {
            throw new IllegalArgumentException("critic.clip is " + head.clip()
                    + ", and with minibatches=1 and epochs=1 no value has changed yet when its loss is taken; raise one of"
                    + " them, or set critic.clip=0");
        }
    }

    private static void requireOneSign(Objective objective, AdvantageEstimator advantage, KlConfig kl) {
        if (!(objective instanceof Topr)) {
            return;
        }
        String rule = "objective.kind=topr weighs a sequence by the sign of its advantage, and ";
        if (kl instanceof KlConfig.Centred) {
            throw new IllegalArgumentException(rule
                    + "kl.kind=centred gives the tokens of a sequence advantages of both signs; choose another kl.kind, or"
                    + " another objective");
        }
        if (advantage.unit() == CorrectionUnit.TOKEN) {
            throw new IllegalArgumentException(rule + "advantage.kind=" + advantage.name()
                    + " gives the tokens of a sequence advantages of their own; choose an advantage with one per sequence,"
                    + " such as grpo, or another objective");
        }
    }

    private static void requireRewardsRead(AdvantageEstimator advantage, List<RewardStage> rewards, KlConfig kl) {
        if (!(advantage instanceof Distillation distillation && distillation.outcomeWeight() == 0)) {
            return;
        }
        shaping(rewards, kl).ifPresent(shapes -> {
            throw new IllegalArgumentException("advantage.kind=distillation reads no rewards at outcome_weight=0, and "
                    + shapes + " changes them; raise advantage.outcome_weight, or leave the latter out");
        });
    }

    private static void requireRewardsAsTheyCame(AdvantageEstimator advantage, List<RewardStage> rewards, KlConfig kl) {
        if (advantage instanceof TrackedBaseline) {
            shaping(rewards, kl).ifPresent(shapes -> {
                throw new IllegalArgumentException("advantage.kind=" + advantage.name()
                        + " tracks rewards as they came, and " + shapes
                        + " changes them; leave the latter out, or choose another advantage.kind");
            });
        }
    }

    /** The first setting that changes rewards. */
    private static Optional<String> shaping(List<RewardStage> rewards, KlConfig kl) {
        return kl instanceof KlConfig.InReward
                ? Optional.of("kl.kind=in_reward")
                : rewards.stream()
                        .filter(stage -> !(stage instanceof PassAtKFigure))
                        .map(stage -> "rewards: " + stage.name())
                        .findFirst();
    }

    private static void requirePenaltyWeighedOnce(KlConfig kl, Mode mode, Objective objective, WeightStage weights) {
        if (!(kl instanceof KlConfig.InReward penalty && penalty.weighted())) {
            return;
        }
        if (mode == Mode.BYPASS) {
            throw new IllegalArgumentException(
                    "kl.weighted=true weighs the penalty by proximal over behavior, and mode=bypass"
                            + " takes behavior for proximal; set kl.weighted=false, or choose mode=decoupled");
        }
        if (weighsSequences(objective, weights)) {
            throw new IllegalArgumentException("kl.weighted=true weighs a penalty in the reward, and "
                    + weighing(objective, weights)
                    + " weighs that reward with its sequence; set kl.weighted=false, or choose"
                    + " weights per token");
        }
    }

    private static boolean weighsSequences(Objective objective, WeightStage weights) {
        return objective.weightsCompare().isEmpty()
                ? objective.unit() == CorrectionUnit.SEQUENCE
                : !(weights instanceof None) && weights.unit() == CorrectionUnit.SEQUENCE;
    }

    private static String weighing(Objective objective, WeightStage weights) {
        return objective.weightsCompare().isEmpty()
                ? "objective.kind=" + kind(objective)
                : "weights.kind=" + kind(weights);
    }

    private static void requireRatios(Objective objective, WeightStage weights, Ess ess) {
        if (objective.weightsCompare().isEmpty() && !(weights instanceof None)) {
            throw new IllegalArgumentException("objective.kind=" + kind(objective)
                    + " corrects for everything by its own ratio to behavior, and weights.kind=" + kind(weights)
                    + " would correct for it again; choose weights.kind=none, or another objective");
        }
        try {
            ess.truncatedAt(weights.cap());
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("ess." + e.getMessage(), e);
        }
    }

    private static void requireNothingCompared(
            List<RewardStage> rewards,
            AdvantageEstimator advantage,
            Rejection rejection,
            List<MaskStage> masks,
            Objective objective,
            WeightStage weights,
            Ess ess) {
        if (objective.weightsCompare().isPresent()) {
            throw new IllegalArgumentException(
                    "mode=bypass leaves all correction to the objective's ratio to behavior, and objective.kind="
                            + kind(objective)
                            + " takes its ratio to another policy; choose bypass_ppo_clip or bypass_reinforce, or"
                            + " mode=decoupled");
        }
        if (rejection.rejects()) {
            throw nothingToCompare("rejection.rollout_rs=" + rejection.rolloutRs());
        }
        if (ess.rule() != Ess.Rule.NONE) {
            throw nothingToCompare(
                    "ess.rule=" + ess.rule().name().toLowerCase(Locale.ROOT) + " (choose none) is a control that");
        }
        List<Stage> listed = new ArrayList<>(rewards);
        listed.add(advantage);
        listed.add(weights);
        listed.addAll(masks);
        for (Stage stage : listed) {
            if (stage.inputs().stream().anyMatch(COMPARED::contains)) {
                throw nothingToCompare(stage.name());
            }
        }
    }

    private static IllegalArgumentException nothingToCompare(String what) {
        return new IllegalArgumentException("mode=bypass has no log-probs but behavior's before the update, and " + what
                + " has nothing to compare them with; leave it out and give the objective its own rejection,"
                + " or choose mode=decoupled");
    }

    private static void requireOldUnread(Objective objective, Collection<Stage> listed) {
        String readsOld = objective
                        .weightsCompare()
                        .filter(RatioKind.ENGINE_MISMATCH::equals)
                        .isPresent()
                ? "objective.kind=" + kind(objective)
                : listed.stream()
                        .filter(stage -> stage.inputs().contains(StageInput.OLD))
                        .map(Stage::name)
                        .findFirst()
                        .orElse(null);
        if (readsOld != null) {
            throw new IllegalArgumentException(
                    "missing_old_log_probs=interpolate lets rollouts go on without old log-probs, and " + readsOld
                            + " compares them; choose missing_old_log_probs=mask or recompute");
        }
    }

    private static void requireDistinct(Collection<Stage> listed) {
        Set<String> names = new HashSet<>();
        for (Stage stage : listed) {
            if (!names.add(stage.name())) {
                throw new IllegalArgumentException("stage " + stage.name()
                        + " is in the list twice, and a report could not say which of them acted; leave one out");
            }
        }
    }

    private static List<Stage> listed(
            List<RewardStage> rewards, AdvantageEstimator advantage, Rejection rejection, List<MaskStage> masks) {
        List<Stage> listed = new ArrayList<>(rewards);
        listed.add(advantage);
        listed.add(rejection);
        listed.addAll(masks);
        return listed;
    }

    private static String kind(Object part) {
        if (part instanceof Objective objective) {
            return objective.name();
        }
        return dev.millrace.corrections.stage.StageSettings.kindOf(part.getClass());
    }

    public static Algorithm defaults() {
        return NamedAlgorithms.DEFAULT;
    }

    /**
     * A named algorithm.
     *
     * @throws IllegalArgumentException if there is none of that name; it says which there are
     */
    public static Algorithm variant(String name) {
        return NamedAlgorithms.of(name);
    }

    /**
     * Returns the stages of a batch in order: rewards, limits on staleness, importance weights, advantages, rejection,
     * masks, and step controls.
     *
     * <p>Advantages are taken over whole groups: a masked sibling still is a baseline. Stages after a mask see what it left;
     * where nothing is left, the rest of them masks nothing.
     */
    public List<Stage> stages() {
        return stages(missingOldLogProbs.goesOn());
    }

    /**
     * The same for a batch: where one of its sequences lacks old log-probs although none should, the stage that leaves it out is
     * among them.
     */
    public List<Stage> stages(StageFacts facts) {
        boolean lacking = false;
        for (boolean without : facts.withoutOld()) {
            lacking |= without;
        }
        return stages(lacking || missingOldLogProbs.goesOn());
    }

    private List<Stage> stages(boolean someLackOld) {
        List<Stage> stages = new ArrayList<>(rewards);
        stages.add(new StalenessLimit(staleness.maxVersions()));
        if (staleness.maxAgeMs() > 0) {
            stages.add(new AgeLimit(staleness.maxAgeMs()));
        }
        if (someLackOld && mode != Mode.BYPASS) {
            stages.add(missingOldLogProbs.stage());
        }
        objective.weightsCompare().map(weights::comparing).ifPresent(stages::add);
        stages.add(advantage);
        if (mode != Mode.BYPASS) {
            stages.add(rejection);
        }
        boolean measured = mode == Mode.BYPASS;
        for (MaskStage mask : masks) {
            if (!measured && mask instanceof M2po) {
                stages.add(new SecondMomentFigure());
                measured = true;
            }
            stages.add(mask);
        }
        if (!measured) {
            stages.add(new SecondMomentFigure());
        }
        if (staleness.halfLifeVersions() > 0) {
            stages.add(new StalenessDamping(staleness.halfLifeVersions()));
        }
        if (mode != Mode.BYPASS) {
            stages.add(ess.truncatedAt(weights.cap()));
        }
        return List.copyOf(stages);
    }

    /** Returns everything that the stages read of a batch in addition to its layout and rewards. */
    public Set<StageInput> inputs() {
        Set<StageInput> inputs = EnumSet.noneOf(StageInput.class);
        stages().forEach(stage -> inputs.addAll(stage.inputs()));
        return inputs;
    }

    /** Applies the stages to a batch of at least one sequence. */
    public Decision decide(StageFacts facts) {
        return StageBatch.decide(facts, stages(facts));
    }

    /** Returns how losses are aggregated: {@link #lossAggMode}, resolved for this objective. */
    public LossAggregation aggregation() {
        return lossAggMode.of(objective);
    }

    /** True if an update needs the current log-probs before its gradient, which costs a forward pass. */
    public boolean needsCurrentLogProbs() {
        return !objective.linear() || kl instanceof KlConfig.InLoss;
    }

    /** Returns start-up warnings about missing corrections, each a sentence with the keys that would change it. */
    public List<String> doubts() {
        List<String> doubts = new ArrayList<>();
        whyObjectiveCannotAct().ifPresent(doubts::add);
        if (kl instanceof KlConfig.InReward penalty
                && !penalty.weighted()
                && mode != Mode.BYPASS
                && !weighsSequences(objective, weights)) {
            doubts.add(
                    "the penalty of kl.kind=in_reward takes the behavior policy's tokens for the proximal policy's: with"
                            + " kl.weighted=false, " + weighing(objective, weights)
                            + (weights instanceof None
                                            && objective.weightsCompare().isPresent()
                                    ? " weighs nothing"
                                    : " weighs a token without the penalties of later ones")
                            + "; set kl.weighted=true, or weigh sequences");
        }
        return doubts;
    }

    /**
     * Why the objective's trust region cannot act under these settings, as a sentence with the keys that would make it; empty
     * if it can, or there is none.
     */
    public Optional<String> whyObjectiveCannotAct() {
        return inForce(objective, mode, minibatches, epochs, weights, rejection, masks)
                .whyItCannotAct();
    }

    /** Returns what the weights compare; empty without weights. */
    public Optional<RatioKind> weightsCompare() {
        return weights instanceof None ? Optional.empty() : objective.weightsCompare();
    }

    public Algorithm with(UnaryOperator<AlgorithmBuilder> changes) {
        return changes.apply(new AlgorithmBuilder(this)).build();
    }
}
