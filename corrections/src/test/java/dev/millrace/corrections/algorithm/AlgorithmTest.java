package dev.millrace.corrections.algorithm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.advantage.Distillation;
import dev.millrace.corrections.advantage.Gae;
import dev.millrace.corrections.advantage.SoftMaximum;
import dev.millrace.corrections.kl.CoefficientConfig;
import dev.millrace.corrections.kl.KlConfig;
import dev.millrace.corrections.kl.KlDivergence;
import dev.millrace.corrections.kl.KlWeighting;
import dev.millrace.corrections.kl.ReferenceConfig;
import dev.millrace.corrections.length.PassAtKFigure;
import dev.millrace.corrections.length.UniformLengthPenalty;
import dev.millrace.corrections.m2po.M2po;
import dev.millrace.corrections.objective.Anchor;
import dev.millrace.corrections.objective.Aspo;
import dev.millrace.corrections.objective.BypassPpoClip;
import dev.millrace.corrections.objective.Cispo;
import dev.millrace.corrections.objective.DecoupledPpo;
import dev.millrace.corrections.objective.LossAggregation;
import dev.millrace.corrections.objective.M2poSurrogate;
import dev.millrace.corrections.objective.Oapl;
import dev.millrace.corrections.objective.ObjectiveInput;
import dev.millrace.corrections.objective.PpoClip;
import dev.millrace.corrections.objective.Quatro;
import dev.millrace.corrections.objective.Topr;
import dev.millrace.corrections.objective.UpdateFacts;
import dev.millrace.corrections.ratio.ComparedPolicies;
import dev.millrace.corrections.ratio.MissingOldLogProbs;
import dev.millrace.corrections.rollout.Rejection;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.SequenceMask;
import dev.millrace.corrections.vcpo.Ess;
import dev.millrace.corrections.weights.None;
import dev.millrace.corrections.weights.Token;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Two groups of two sequences of two tokens; log ratios of proximal to behavior set by each test. */
class AlgorithmTest {
    private static final Algorithm PLAIN = Algorithm.defaults().with(a -> a.masks());
    private static final double[] REWARDS = {1, 0, 1, 0};

    private static StageFacts facts(float... logRatios) {
        TokenBatch tokens =
                new TokenBatch(new int[] {0, 2, 4, 6, 8}, new byte[] {1, 1, 1, 1, 1, 1, 1, 1}, new int[] {0, 0, 1, 1});
        float[] behavior = new float[8];
        float[] proximal = new float[8];
        for (int t = 0; t < 8; t++) {
            behavior[t] = -1f;
            proximal[t] = -1f + logRatios[t];
        }
        return StageFacts.of(tokens, REWARDS)
                .vector(StageInput.BEHAVIOR, behavior)
                .vector(StageInput.OLD, behavior)
                .vector(StageInput.PROXIMAL, proximal)
                .versions(7, BatchVersions.wholeSequences(tokens, new long[] {3, 4, 5, 5}))
                .agesMs(new long[] {1000, 2000, 3000, 4000})
                .build();
    }

    private static StageOutcome outcome(Decision decision, String stage) {
        return decision.outcomes().stream()
                .filter(outcome -> outcome.stage().equals(stage))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void shouldRunItsStagesInTheirOrder() {
        assertThat(Algorithm.defaults().stages())
                .extracting(Stage::name)
                .containsExactly(
                        "staleness", "token_tis", "grpo", "rollout_correction", "second_moment", "m2po", "ess");
        assertThat(PLAIN.with(a -> a.staleness(new StalenessRules(2, 5, 3))
                                .masks(new SequenceMask(0.1), new M2po(0.1, true)))
                        .stages())
                .extracting(Stage::name)
                .containsExactly(
                        "staleness",
                        "age",
                        "token_tis",
                        "grpo",
                        "rollout_correction",
                        "sequence_mask",
                        "second_moment",
                        "m2po",
                        "staleness_weights",
                        "ess");
    }

    @Test
    void shouldTakeAdvantagesOverWholeGroupsBeforeAnythingIsMasked() {
        Decision decision =
                PLAIN.with(a -> a.staleness(new StalenessRules(3, 0, 0))).decide(facts(new float[8]));

        assertThat(decision.left().trainedTokens()).isEqualTo(6);
        assertThat(decision.maskedBy()).containsExactly("staleness", null, null, null);
        assertThat(decision.advantages()).containsExactly(0.5, -0.5, 0.5, -0.5);
        assertThat(decision.perToken()).containsExactly(0, 0, -0.5f, -0.5f, 0.5f, 0.5f, -0.5f, -0.5f);
        assertThat(outcome(decision, "staleness").values())
                .containsEntry("mean", 2.75)
                .containsEntry("oldest", 4.0);
    }

    @Test
    void shouldMaskSequencesThatAreTooOldInTime() {
        Decision decision =
                PLAIN.with(a -> a.staleness(new StalenessRules(8, 2500, 0))).decide(facts(new float[8]));
        assertThat(decision.maskedBy()).containsExactly(null, null, "age", "age");
        assertThat(outcome(decision, "age").values()).containsEntry("oldest_ms", 4000.0);
    }

    @Test
    void shouldMeasureWhatIsLeftByProximalOverBehavior() {
        float shift = 0.5f;
        Decision decision = PLAIN.decide(facts(shift, shift, 0, 0, 0, 0, 0, 0));

        double w = Math.exp(2 * shift);
        double ess = Math.pow(w + 3, 2) / (w * w + 3) / 4;
        assertThat(decision.essRatio().orElseThrow()).isCloseTo(ess, within(1e-6));
        assertThat(decision.essRatioTruncated().orElseThrow())
                .isCloseTo(Math.pow(2 + 3, 2) / (4.0 + 3) / 4, within(1e-6));
        assertThat(decision.secondMoment().orElseThrow()).isCloseTo(2 * shift * shift / 8, within(1e-6));
        assertThat(decision.stepScale()).isCloseTo(Math.sqrt(ess), within(1e-6));
        assertThat(decision.weights()[0]).isCloseTo((float) Math.exp(shift), within(1e-6f));
        assertThat(decision.weights()[7]).isEqualTo(1f);
    }

    /** Weights correct only the engine's error, but the batch remains off policy. */
    @Test
    void shouldDampAStaleBatchAroundTheOldPolicyToo() {
        Algorithm clipped = PLAIN.with(a -> a.objective(PpoClip.defaults()));
        Decision decision = clipped.decide(facts(1, 1, 0, 0, 0, 0, 0, 0));

        assertThat(decision.weights()).as("old is behavior here").containsOnly(1f);
        assertThat(decision.stepScale()).isLessThan(0.9);
        assertThat(decision.stepScale())
                .isEqualTo(PLAIN.decide(facts(1, 1, 0, 0, 0, 0, 0, 0)).stepScale());
    }

    @Test
    void shouldHaveNoSampleSizeWhereNothingIsLeft() {
        Decision decision = Algorithm.defaults()
                .with(a -> a.staleness(new StalenessRules(1, 0, 0)))
                .decide(facts(new float[8]));

        assertThat(decision.left().trainedTokens()).isZero();
        assertThat(decision.essRatio()).isEmpty();
        assertThat(decision.essRatioTruncated()).isEmpty();
        assertThat(decision.secondMoment()).isEmpty();
        assertThat(decision.stepScale()).isEqualTo(1);
        assertThat(decision.outcomes()).extracting(StageOutcome::stage).contains("m2po", "ess");
    }

    @Test
    void shouldMeasureNothingInBypass() {
        Algorithm bypass = Algorithm.variant("bypass_ppo_clip");
        assertThat(bypass.stages()).extracting(Stage::name).containsExactly("staleness", "grpo");
        Decision decision = bypass.decide(facts(new float[8]));
        assertThat(decision.essRatio()).isEmpty();
        assertThat(decision.secondMoment()).isEmpty();
        assertThat(decision.stepScale()).isEqualTo(1);
    }

    @Test
    void shouldRefuseWhatHasNothingToCompareInBypass() {
        Algorithm bypass = Algorithm.variant("bypass_ppo_clip");
        refused(
                () -> PLAIN.with(a -> a.mode(Mode.BYPASS)),
                "mode=bypass",
                "objective.kind=reinforce",
                "choose bypass_ppo_clip or bypass_reinforce");
        refused(() -> bypass.with(a -> a.masks(M2po.defaults())), "mode=bypass", "m2po", "choose mode=decoupled");
        refused(
                () -> bypass.with(a -> a.rejection(new Rejection("seq_mean_k3", "0.1", ComparedPolicies.ANCHOR))),
                "rollout_rs=seq_mean_k3");
        refused(() -> bypass.with(a -> a.ess(Ess.defaults())), "ess.rule=sqrt", "choose none");
    }

    @Test
    void shouldRefuseSeveralStepsOnABatchWithoutATrustRegion() {
        refused(
                () -> PLAIN.with(a -> a.epochs(2)),
                "epochs above 1 needs an objective with a trust region",
                "objective.kind=reinforce",
                "choose objective.kind=decoupled_ppo");
        refused(() -> PLAIN.with(a -> a.minibatches(0)), "minibatches must be at least 1: 0");
        refused(
                () -> PLAIN.with(
                        a -> a.objective(Quatro.defaults()).weights(new None()).minibatches(2)),
                "objective.kind=quatro",
                "set it to 1");
    }

    @Test
    void shouldSayWhyATrustRegionCannotActAndRefuseWhatWouldThenCorrectNothing() {
        Algorithm decoupled = PLAIN.with(a -> a.objective(DecoupledPpo.defaults()));

        assertThat(decoupled.whyObjectiveCannotAct().orElseThrow())
                .startsWith("objective decoupled_ppo cannot act: with minibatches=1 and epochs=1");
        assertThat(decoupled.with(a -> a.minibatches(2)).whyObjectiveCannotAct())
                .isEmpty();
        assertThat(decoupled.with(a -> a.mode(Mode.INTERPOLATED)).whyObjectiveCannotAct())
                .isEmpty();
        assertThat(PLAIN.whyObjectiveCannotAct()).isEmpty();
        refused(() -> decoupled.with(a -> a.weights(new None())), "weights.kind is none", "ppo_clip");
        refused(
                () -> PLAIN.with(
                        a -> a.objective(Cispo.defaults()).weights(new None()).masks()),
                "objective cispo cannot act",
                "choose objective.kind=reinforce");
        refused(
                () -> PLAIN.with(a -> a.objective(M2poSurrogate.defaults()).masks()),
                "objective m2po clips no ratio",
                "the second-moment mask is its trust region",
                "add the mask m2po");
    }

    @Test
    void shouldRefuseWeightsBesideAnObjectiveThatCorrectsByItself() {
        refused(() -> PLAIN.with(a -> a.objective(new Topr())), "objective.kind=topr", "choose weights.kind=none");
        refused(() -> PLAIN.with(a -> a.objective(Aspo.defaults())), "weights.kind=token");
        assertThat(PLAIN.with(a -> a.objective(new Topr()).weights(new None())).weightsCompare())
                .isEmpty();
    }

    @Test
    void shouldRefuseAdvantagesOfBothSignsWithinASequenceWhereTheSignChoosesTheWeight() {
        Algorithm topr = Algorithm.variant("topr");
        refused(
                () -> topr.with(a -> a.kl(KlConfig.Centred.defaults())),
                "objective.kind=topr weighs a sequence by the sign of its advantage",
                "kl.kind=centred",
                "choose another kl.kind");
        refused(() -> topr.with(a -> a.advantage(Gae.defaults())), "advantage.kind=gae", "such as grpo");
        assertThat(topr.with(a -> a.kl(KlConfig.InReward.defaults())).objective())
                .isEqualTo(new Topr());
    }

    @Test
    void shouldRefuseToShapeRewardsThatNobodyReads() {
        Algorithm distilled = PLAIN.with(a -> a.advantage(Distillation.defaults()));
        refused(
                () -> distilled.with(a -> a.rewards(UniformLengthPenalty.defaults())),
                "reads no rewards at outcome_weight=0",
                "rewards: uniform_length",
                "raise advantage.outcome_weight");
        refused(() -> distilled.with(a -> a.kl(KlConfig.InReward.defaults())), "kl.kind=in_reward changes them");
        refused(
                () -> Algorithm.variant("bypass_ppo_clip").with(a -> a.advantage(Distillation.defaults())),
                "distillation has nothing to compare them with");
        assertThat(distilled.with(a -> a.rewards(PassAtKFigure.defaults())).rewards())
                .hasSize(1);
        assertThat(PLAIN.with(a -> a.advantage(new Distillation(1))
                                .rewards(UniformLengthPenalty.defaults())
                                .kl(KlConfig.InReward.defaults()))
                        .inputs())
                .contains(StageInput.TEACHER);
    }

    /**
     * Sampled at 0.5, now 0.72, 0.66 and 0.55, all to be raised: 0.22 is above 0.2, and the divergences 0.108, 0.054 and 0.005
     * are above 0.05 but for the last. Within a bound the derivative is minus the ratio.
     */
    @Test
    void shouldMaskTokensFarFromTheSamplerUnderDppoAndByTheTighterBoundUnderKl() {
        TokenBatch batch = new TokenBatch(new int[] {0, 3}, new byte[] {1, 1, 1});
        float[] sampled = {(float) Math.log(0.5), (float) Math.log(0.5), (float) Math.log(0.5)};
        float[] current = {(float) Math.log(0.72), (float) Math.log(0.66), (float) Math.log(0.55)};
        Algorithm tv = Algorithm.variant("dppo_tv");
        Algorithm kl = Algorithm.variant("dppo_kl");

        assertThat(List.of(tv.objective().anchor(), kl.objective().anchor())).containsOnly(Anchor.BEHAVIOR);
        assertThat(tv.weightsCompare()).isEmpty();
        ObjectiveInput input =
                ObjectiveInput.of(batch, current, new float[] {1, 1, 1}).withProximal(sampled);
        UpdateFacts sum = UpdateFacts.of(new LossAggregation.TokenSum());
        assertThat(tv.objective().evaluate(input, sum).gradient())
                .containsExactly(new float[] {0, -1.32f, -1.1f}, within(1e-5f));
        assertThat(kl.objective().evaluate(input, sum).gradient())
                .containsExactly(new float[] {0, 0, -1.1f}, within(1e-5f));
    }

    @Test
    void shouldWeighAPenaltyInTheRewardOnceAndSayWhereNothingDoes() {
        KlConfig.InReward plain = KlConfig.InReward.defaults();
        KlConfig weighted = new KlConfig.InReward(plain.divergence(), true, plain.coefficient(), plain.reference());

        assertThat(Algorithm.variant("none").with(a -> a.kl(plain)).doubts())
                .singleElement()
                .asString()
                .contains("kl.weighted=false, weights.kind=none weighs nothing; set kl.weighted=true");
        assertThat(PLAIN.with(a -> a.weights(Token.defaults()).kl(plain)).doubts())
                .singleElement()
                .asString()
                .contains("weights.kind=token weighs a token without the penalties of later ones");
        assertThat(PLAIN.with(a -> a.weights(Token.defaults()).kl(weighted)).doubts())
                .isEmpty();
        assertThat(Algorithm.variant("sequence_tis").with(a -> a.kl(plain)).doubts())
                .isEmpty();
        refused(
                () -> Algorithm.variant("sequence_tis").with(a -> a.kl(weighted)),
                "kl.weighted=true",
                "weights.kind=sequence weighs that reward with its sequence");
        refused(
                () -> Algorithm.variant("topr").with(a -> a.kl(weighted)),
                "objective.kind=topr weighs that reward",
                "kl.weighted=false");
        refused(
                () -> Algorithm.variant("bypass_ppo_clip").with(a -> a.kl(weighted)),
                "mode=bypass takes behavior for proximal");
    }

    @Test
    void shouldTakeTheLearnerForAReferenceOnlyWhereItIsScoredAndCharged() {
        CoefficientConfig much = CoefficientConfig.Fixed.defaults();
        ReferenceConfig learner = new ReferenceConfig.Learner();
        KlConfig centred = new KlConfig.Centred(0, much, learner);

        assertThat(PLAIN.with(a -> a.kl(centred)).kl()).isEqualTo(centred);
        refused(
                () -> PLAIN.with(a -> a.mode(Mode.RECORDED).kl(centred)),
                "mode=recorded does not score at the step",
                "kl.reference.kind=learner");
        refused(
                () -> Algorithm.variant("bypass_ppo_clip").with(a -> a.kl(centred)),
                "mode=bypass does not score at the step");
        refused(
                () -> new KlConfig.InReward(KlDivergence.REVERSE, false, much, learner),
                "reference.kind=learner",
                "kl.kind=centred");
        refused(
                () -> new KlConfig.InLoss(KlDivergence.REVERSE, "", KlWeighting.DETACHED, much, learner),
                "reference.kind=learner");
    }

    @Test
    void shouldHaveOneTemperatureForTheOptimumThatIsRegressedOn() {
        refused(
                () -> PLAIN.with(a -> a.objective(Oapl.defaults()).weights(new None())),
                "objective.kind=oapl",
                "advantage.kind must be soft_maximum");
        refused(() -> PLAIN.with(a -> a.advantage(new SoftMaximum(1))), "advantage.kind=soft_maximum", "oapl");
        refused(
                () -> Algorithm.variant("oapl").with(a -> a.advantage(new SoftMaximum(0.7))),
                "objective.beta and advantage.beta",
                "must be the same",
                "0.7");
    }

    @Test
    void shouldRefuseControlsWithoutWhatTheyControlBy() {
        refused(
                () -> PLAIN.with(a ->
                        a.weights(new Token("0.5_5.0", false)).ess(new Ess(Ess.Rule.SQRT, Ess.Weights.TRUNCATED, 1))),
                "ess.weights=truncated",
                "choose weights=raw");
        refused(
                () -> PLAIN.with(a -> a.mode(Mode.RECORDED).kl(KlConfig.InReward.defaults())),
                "mode=recorded",
                "kl.kind=in_reward",
                "choose mode=decoupled");
        refused(
                () -> PLAIN.with(a -> a.mode(Mode.RECORDED).missingOldLogProbs(MissingOldLogProbs.INTERPOLATE)),
                "mode=recorded",
                "missing_old_log_probs=interpolate");
        refused(
                () -> PLAIN.with(
                        a -> a.objective(PpoClip.defaults()).missingOldLogProbs(MissingOldLogProbs.INTERPOLATE)),
                "objective.kind=ppo_clip compares them");
        refused(
                () -> PLAIN.with(a -> a.masks(M2po.defaults(), new M2po(0.1, false))),
                "stage m2po is in the list twice",
                "leave one out");
    }

    @Test
    void shouldMeanByEveryNameWhatItSays() {
        assertThat(NamedAlgorithms.all()).hasSizeGreaterThan(40).allSatisfy((name, algorithm) -> {
            assertThat(algorithm.variant()).isEqualTo(name);
            assertThat(Algorithm.variant(name)).isEqualTo(algorithm);
        });
        Algorithm banded = Algorithm.variant("decoupled_geo_rs_seq_tis(3.0, 0.99_1.01)");
        assertThat(banded.rejection()).isEqualTo(new Rejection("seq_mean_k1", "0.99_1.01", ComparedPolicies.ANCHOR));
        assertThat(banded.weights().cap()).hasValue(3);
        assertThat(Algorithm.variant("decoupled_token_is(threshold=4)")
                        .weights()
                        .cap())
                .hasValue(4);
        assertThat(Algorithm.variant("bypass_ppo_clip_k3_rs(0.02)").objective())
                .isEqualTo(new BypassPpoClip(0.2, 0.2, 3, "seq_mean_k3", "0.02"));
        refused(() -> Algorithm.variant("grop"), "variant must be one of", "grpo", "'grop'");
        refused(() -> Algorithm.variant("disabled(1)"), "preset disabled takes no thresholds", "'1'");
        refused(() -> Algorithm.variant("decoupled_geo_rs(bound=1)"), "has no parameter bound", "rs_threshold");
    }

    private static void refused(org.assertj.core.api.ThrowableAssert.ThrowingCallable wrong, String... sentence) {
        assertThatIllegalArgumentException().isThrownBy(wrong).withMessageContainingAll(sentence);
    }

    @Test
    void shouldRefuseACriticThatCannotLearnOrIsNotRead() {
        CriticConfig head = CriticConfig.ValueHead.defaults();
        Algorithm ppo = NamedAlgorithms.of("ppo").with(a -> a.advantage(Gae.defaults()));
        assertThat(ppo.with(a -> a.critic(new CriticConfig.ValueHead(0.5, 0.2))).critic())
                .isEqualTo(new CriticConfig.ValueHead(0.5, 0.2));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Algorithm.defaults().with(a -> a.critic(head)))
                .withMessage("critic.kind=value_head learns values, and advantage.kind=grpo reads none; choose"
                        + " advantage.kind=gae, or critic.kind=off");
        assertThatIllegalArgumentException()
                .isThrownBy(() ->
                        PLAIN.with(a -> a.advantage(Gae.defaults()).critic(head).mode(Mode.RECORDED)))
                .withMessageStartingWith("mode=recorded takes the batch's own advantages");
        assertThatIllegalArgumentException()
                .isThrownBy(
                        () -> PLAIN.with(a -> a.advantage(Gae.defaults()).critic(new CriticConfig.ValueHead(0.5, 0.2))))
                .withMessageStartingWith("critic.clip is 0.2, and with minibatches=1 and epochs=1");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new CriticConfig.ValueHead(0, 0))
                .withMessage("coefficient must be above 0 and finite, or the head would stay at 0: 0.0");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new CriticConfig.ValueHead(1, Double.NaN))
                .withMessage("clip must be at least 0 and finite: NaN");
    }
}
