package dev.millrace.corrections.algorithm;

import dev.millrace.corrections.kl.KlConfig;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.objective.Objective;
import dev.millrace.corrections.ratio.MissingOldLogProbs;
import dev.millrace.corrections.rollout.Rejection;
import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.corrections.stage.LengthGuardConfig;
import dev.millrace.corrections.stage.MaskStage;
import dev.millrace.corrections.stage.RewardStage;
import dev.millrace.corrections.stage.WeightStage;
import dev.millrace.corrections.vcpo.Ess;
import java.util.List;

/** An algorithm with parts changed, checked as a whole when it is built. See {@link Algorithm} for what each part is. Not thread-safe. */
public final class AlgorithmBuilder {
    private String variant;
    private Mode mode;
    private List<RewardStage> rewards;
    private AdvantageEstimator advantage;
    private StalenessRules staleness;
    private MissingOldLogProbs missingOldLogProbs;
    private WeightStage weights;
    private Rejection rejection;
    private List<MaskStage> masks;
    private Objective objective;
    private LossAggregation lossAggMode;
    private KlConfig kl;
    private EntropyConfig entropy;
    private CriticConfig critic;
    private Ess ess;
    private LengthGuardConfig lengthGuard;
    private int minibatches;
    private int epochs;
    private RoutingReplay routingReplay;

    AlgorithmBuilder(Algorithm from) {
        variant = from.variant();
        mode = from.mode();
        rewards = from.rewards();
        advantage = from.advantage();
        staleness = from.staleness();
        missingOldLogProbs = from.missingOldLogProbs();
        weights = from.weights();
        rejection = from.rejection();
        masks = from.masks();
        objective = from.objective();
        lossAggMode = from.lossAggMode();
        kl = from.kl();
        entropy = from.entropy();
        critic = from.critic();
        ess = from.ess();
        lengthGuard = from.lengthGuard();
        minibatches = from.minibatches();
        epochs = from.epochs();
        routingReplay = from.routingReplay();
    }

    public AlgorithmBuilder variant(String other) {
        variant = other;
        return this;
    }

    public AlgorithmBuilder mode(Mode other) {
        mode = other;
        return this;
    }

    public AlgorithmBuilder rewards(List<RewardStage> other) {
        rewards = other;
        return this;
    }

    public AlgorithmBuilder rewards(RewardStage... others) {
        return rewards(List.of(others));
    }

    public AlgorithmBuilder advantage(AdvantageEstimator other) {
        advantage = other;
        return this;
    }

    public AlgorithmBuilder staleness(StalenessRules other) {
        staleness = other;
        return this;
    }

    public AlgorithmBuilder missingOldLogProbs(MissingOldLogProbs other) {
        missingOldLogProbs = other;
        return this;
    }

    public AlgorithmBuilder weights(WeightStage other) {
        weights = other;
        return this;
    }

    public AlgorithmBuilder rejection(Rejection other) {
        rejection = other;
        return this;
    }

    public AlgorithmBuilder masks(List<MaskStage> other) {
        masks = other;
        return this;
    }

    public AlgorithmBuilder masks(MaskStage... others) {
        return masks(List.of(others));
    }

    public AlgorithmBuilder objective(Objective other) {
        objective = other;
        return this;
    }

    public AlgorithmBuilder lossAggMode(LossAggregation other) {
        lossAggMode = other;
        return this;
    }

    public AlgorithmBuilder kl(KlConfig other) {
        kl = other;
        return this;
    }

    public AlgorithmBuilder entropy(EntropyConfig other) {
        entropy = other;
        return this;
    }

    public AlgorithmBuilder critic(CriticConfig other) {
        critic = other;
        return this;
    }

    public AlgorithmBuilder ess(Ess other) {
        ess = other;
        return this;
    }

    public AlgorithmBuilder lengthGuard(LengthGuardConfig other) {
        lengthGuard = other;
        return this;
    }

    public AlgorithmBuilder minibatches(int other) {
        minibatches = other;
        return this;
    }

    public AlgorithmBuilder epochs(int other) {
        epochs = other;
        return this;
    }

    public AlgorithmBuilder routingReplay(RoutingReplay other) {
        routingReplay = other;
        return this;
    }

    /** @throws IllegalArgumentException if the parts contradict each other */
    Algorithm build() {
        return new Algorithm(
                variant,
                mode,
                rewards,
                advantage,
                staleness,
                missingOldLogProbs,
                weights,
                rejection,
                masks,
                objective,
                lossAggMode,
                kl,
                entropy,
                critic,
                ess,
                lengthGuard,
                minibatches,
                epochs,
                routingReplay);
    }
}
