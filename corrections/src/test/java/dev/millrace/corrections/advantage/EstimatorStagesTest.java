package dev.millrace.corrections.advantage;

import static dev.millrace.corrections.stage.StageExamples.last;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.CorrectionUnit;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.AbsentInputException;
import dev.millrace.corrections.stage.AdvantageEstimator;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.RewardStage;
import dev.millrace.corrections.stage.StageBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.vcpo.OffPolicyOptimalBaseline.Scope;
import dev.millrace.corrections.vcpo.Opob;
import dev.millrace.corrections.vcpo.WeightedAverage;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Estimators as stages: what they read of a batch, what they refuse, and what they report. */
class EstimatorStagesTest {
    private static final float NAN = Float.NaN;
    /** Two turns of two tokens and of one with a tool's output between them; and one turn of two. */
    private static final TokenBatch TURNS =
            new TokenBatch(new int[] {0, 4, 6}, new byte[] {1, 1, 0, 1, 1, 1}, new int[] {0, 0});

    /** Everything that an estimator can read. */
    private static StageFacts.Builder facts() {
        return StageFacts.of(TURNS, new double[] {3, 1})
                .vector(StageInput.BEHAVIOR, new float[] {-1, -1, NAN, -1, -1, -1})
                .vector(StageInput.PROXIMAL, new float[] {-0.5f, -1, NAN, -2, -1, -1})
                .vector(StageInput.TEACHER, new float[] {-1, -0.5f, NAN, -2, -1, -3})
                .vector(StageInput.VALUES, new float[] {0.5f, 0.5f, NAN, 0.5f, 0.25f, 0.25f})
                .vector(StageInput.ENTROPIES, new float[] {0.5f, 0.25f, NAN, 1, 0.5f, 2})
                .vector(StageInput.SQUARED_PROBABILITIES, new float[] {0.5f, 0.5f, NAN, 0.5f, 0.5f, 0.5f})
                .vector(StageInput.TOKEN_REWARDS, new float[] {0.5f, NAN, NAN, 2, 0, 1})
                .turns(new int[] {0, 0, -1, 1, 0, 0})
                .turnRewards(new double[][] {{1, 2}, {4}})
                .rewardComponents(List.of(Map.of("right", 1.0, "form", 2.0), Map.of("right", 0.0, "form", 1.0)))
                .greedyRewards(new double[] {0.5, 2})
                .gradientNorms(new double[] {1, 2});
    }

    private static Stream<AdvantageEstimator> all() {
        return Stream.of(
                Grpo.defaults(),
                Rloo.defaults(),
                new Opo(),
                Gpg.defaults(),
                GrpoPassk.defaults(),
                new PassAtKAdvantage(2, true),
                new PassAtKAdvantage(1, false),
                new MaxRl(),
                RlZvp.defaults(),
                Distillation.defaults(),
                FailureDistillation.defaults(),
                new BatchMean(),
                SoftMaximum.defaults(),
                new ReinforcePlusPlusBaseline(),
                ReinforcePlusPlus.defaults(),
                Gae.defaults(),
                Remax.defaults(),
                Gdpo.defaults(),
                OptimalTokenBaseline.defaults(),
                TirOptimalTokenBaseline.defaults(),
                TokenPreservingGrpo.defaults(),
                Opob.defaults());
    }

    private static Decision decide(AdvantageEstimator estimator) {
        return StageBatch.decide(facts().build(), List.of(estimator));
    }

    @ParameterizedTest
    @MethodSource("all")
    void shouldActOnABatchThatHasItsInputs(AdvantageEstimator estimator) {
        Decision decision = decide(estimator);

        if (!estimator.equals(new PassAtKAdvantage(2, true))) { // of two, every draw of two has the same best
            assertThat(last(decision).tokensActed()).isPositive();
        }
        assertThat(last(decision).values())
                .containsKey(estimator instanceof Opob ? "decided_at_step" : "zero_sequences");
        assertThat(decision.perToken()).hasSize(6);
        assertThat(decision.perToken()[2]).as("context has no advantage").isZero();
    }

    @ParameterizedTest
    @MethodSource("all")
    void shouldNotStopAtABatchWithNothingToTrainOn(AdvantageEstimator estimator) {
        TokenBatch none = TURNS.withMask(new byte[6]);
        StageFacts known = facts().build();
        StageFacts.Builder starved = StageFacts.of(none, new double[] {3, 1})
                .turns(known.turns())
                .turnRewards(known.turnRewards())
                .rewardComponents(known.rewardComponents())
                .greedyRewards(known.greedyRewards());
        for (StageInput vector : List.of(
                StageInput.BEHAVIOR,
                StageInput.PROXIMAL,
                StageInput.TEACHER,
                StageInput.VALUES,
                StageInput.ENTROPIES,
                StageInput.SQUARED_PROBABILITIES,
                StageInput.TOKEN_REWARDS)) {
            starved.vector(vector, known.vector(vector));
        }

        Decision decision = StageBatch.decide(starved.build(), List.of(estimator));

        assertThat(last(decision).tokensActed()).isZero();
    }

    @ParameterizedTest
    @MethodSource("all")
    void shouldNameTheInputThatABatchDoesNotHave(AdvantageEstimator estimator) {
        StageFacts bare = StageFacts.of(TURNS, new double[] {3, 1})
                .gradientNorms(new double[2])
                .build();

        if (estimator.inputs().isEmpty()) {
            assertThatCode(() -> StageBatch.decide(bare, List.of(estimator))).doesNotThrowAnyException();
        } else {
            assertThatThrownBy(() -> StageBatch.decide(bare, List.of(estimator)))
                    .isInstanceOf(AbsentInputException.class)
                    .hasMessageContaining("the batch has no ");
        }
    }

    /** The numbers of a public implementation's test, and by hand. */
    @Test
    void shouldTakeEntropiesForAdvantagesWhereRewardsDoNotDiffer() {
        TokenBatch batch = new TokenBatch(
                new int[] {0, 2, 4, 6, 8, 10, 13},
                new byte[] {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1},
                new int[] {0, 0, 1, 1, 2, 2});
        float[] entropies = {0.2f, 0.8f, 0.4f, 0.6f, 0.2f, 0.8f, 0.5f, 0.7f, 9, 9, 9, 9, 9};
        StageFacts facts = StageFacts.of(batch, new double[] {1, 1, 0, 0, 0, 1})
                .vector(StageInput.ENTROPIES, entropies)
                .build();

        float[] advantages =
                StageBatch.decide(facts, List.of(new RlZvp(0.1, 0.5))).perToken();

        float apart = (float) (0.5 / (Math.sqrt(0.5) + 1e-6));
        assertThat(advantages)
                .containsExactly(
                        new float[] {0.02f, 0.08f, 0.04f, 0.06f, -0.06f, 0, -0.02f, 0, -apart, -apart, apart, 0, apart},
                        within(1e-7f));
        assertThatThrownBy(() -> new RlZvp(0, 0.5)).hasMessageContaining("alpha must be finite and above 0: 0.0");
        assertThatThrownBy(() -> new RlZvp(0.1, Double.NaN)).hasMessageContaining("correct_above must be finite: NaN");
    }

    /** Groups of 1 and 0 with a tool's token between, and of 0, 0 and 1; log-ratios of the teacher 1, -1, 2, 0.5, -40, 3, -2. */
    private static Decision taught(AdvantageEstimator estimator) {
        TokenBatch batch = new TokenBatch(
                new int[] {0, 1, 4, 6, 7, 8}, new byte[] {1, 1, 0, 1, 1, 1, 1, 1}, new int[] {0, 0, 1, 1, 1});
        StageFacts facts = StageFacts.of(batch, new double[] {1, 0, 0, 0, 1})
                .vector(StageInput.PROXIMAL, new float[] {-2, -1, NAN, -3, -1, -1, -4, -1})
                .vector(StageInput.TEACHER, new float[] {-1, -2, NAN, -1, -0.5f, -41, -1, -3})
                .build();
        return StageBatch.decide(facts, List.of(estimator));
    }

    @Test
    void shouldTakeATeacherAgainstThePolicyForAdvantages() {
        Decision alone = taught(Distillation.defaults());
        assertThat(alone.perToken())
                .as("nothing of rewards, and a token that the teacher would never write counts 20")
                .containsExactly(1, -1, 0, 2, 0.5f, -20, 3, -2);
        assertThat(last(alone).values()).containsEntry("reverse_kl", -(1 - 1 + 2 + 0.5 - 20 + 3 - 2) / 7);

        float apart = (float) (0.5 / (Math.sqrt(0.5) + 1e-6));
        float[] added = taught(new Distillation(2)).perToken();
        assertThat(new float[] {added[0], added[1], added[3]})
                .containsExactly(new float[] {1 + 2 * apart, -1 - 2 * apart, 2 - 2 * apart}, within(1e-6f));
        assertThatThrownBy(() -> new Distillation(-1))
                .hasMessageContaining("outcome_weight must be finite and at least 0: -1.0");
    }

    @Test
    void shouldTeachWrongAnswersToHardPromptsAndRewardTheRest() {
        // group 1 is solved once of three: 0.5, -20 and 3 have mean -5.5 and deviation √((6² + 14.5² + 8.5²) / 2)
        double deviation = Math.sqrt((36 + 210.25 + 72.25) / 2);
        float[] taught = taught(FailureDistillation.defaults()).perToken();
        float apart = (float) (0.5 / (Math.sqrt(0.5) + 1e-6));
        assertThat(taught)
                .containsExactly(
                        new float[] {
                            apart,
                            -apart,
                            0,
                            -apart,
                            (float) (6 / deviation),
                            (float) (-14.5 / deviation),
                            (float) (8.5 / deviation),
                            (float) (2.0 / 3 / (Math.sqrt(1.0 / 3) + 1e-6))
                        },
                        within(1e-6f));

        // of 0.5 and 3 the mean is 1.75 and the deviation 1.25 √2
        float[] first = taught(new FailureDistillation(0.5, 0.5, 1)).perToken();
        assertThat(new float[] {first[4], first[5], first[6]})
                .containsExactly(new float[] {(float) -Math.sqrt(0.5), 0, (float) Math.sqrt(0.5)}, within(1e-6f));
        assertThat(taught(new FailureDistillation(0.3, 0.5, 0)).perToken()[4])
                .as("a third is not less than 0.3")
                .isNegative();
        assertThatThrownBy(() -> new FailureDistillation(0, 0.5, 0)).hasMessageContaining("solve_rate_below must be");
        assertThatThrownBy(() -> new FailureDistillation(0.5, 0.5, -1)).hasMessageContaining("horizon must be");
        assertThatThrownBy(() -> new FailureDistillation(0.5, Double.NaN, 0))
                .hasMessageContaining("correct_above must be finite: NaN");
    }

    /**
     * Over every token of a policy, weighted by its probability: the derivative by a logit is π_i (A_i − Σ_j π_j A_j).
     */
    @Test
    void shouldHaveTheGradientOfTheReverseDivergence() {
        double[] logits = {0.3, -1, 0.8};
        double[] teacher = {Math.log(0.2), Math.log(0.5), Math.log(0.3)};
        double[] own = logSoftmax(logits);
        float[] advantages = StageBatch.decide(
                        StageFacts.of(
                                        new TokenBatch(new int[] {0, 1, 2, 3}, new byte[] {1, 1, 1}, new int[3]),
                                        new double[3])
                                .vector(StageInput.PROXIMAL, floats(own))
                                .vector(StageInput.TEACHER, floats(teacher))
                                .build(),
                        List.of(Distillation.defaults()))
                .perToken();
        double mean = 0;
        for (int i = 0; i < 3; i++) {
            mean += Math.exp(own[i]) * advantages[i];
        }
        for (int i = 0; i < 3; i++) {
            double[] up = logits.clone();
            double[] down = logits.clone();
            up[i] += 1e-5;
            down[i] -= 1e-5;
            double slope = (divergence(logSoftmax(up), teacher) - divergence(logSoftmax(down), teacher)) / 2e-5;
            assertThat(Math.exp(own[i]) * (advantages[i] - mean)).isCloseTo(-slope, within(1e-6));
        }
    }

    private static double[] logSoftmax(double[] logits) {
        double sum = 0;
        for (double logit : logits) {
            sum += Math.exp(logit);
        }
        double normaliser = Math.log(sum);
        return Arrays.stream(logits).map(logit -> logit - normaliser).toArray();
    }

    private static double divergence(double[] policy, double[] teacher) {
        double sum = 0;
        for (int i = 0; i < policy.length; i++) {
            sum += Math.exp(policy[i]) * (policy[i] - teacher[i]);
        }
        return sum;
    }

    private static float[] floats(double[] values) {
        float[] floats = new float[values.length];
        for (int i = 0; i < values.length; i++) {
            floats[i] = (float) values[i];
        }
        return floats;
    }

    @Test
    void shouldPutRewardsWhereTheCreditSays() {
        // not discounted rewards to go before whitening: outcome 3 3 3, 1 1; turns 1+2, 3, 2; 4, 4; tokens 2.5, 2, 2;
        // 1, 1
        assertThat(toGo(Credit.OUTCOME)).containsExactly(3, 3, 0, 3, 1, 1);
        assertThat(toGo(Credit.TURN)).containsExactly(3, 3, 0, 2, 4, 4);
        assertThat(toGo(Credit.TOKEN)).containsExactly(2.5f, 2, 0, 2, 1, 1);
    }

    private static float[] toGo(Credit credit) {
        StageFacts facts = facts().build();
        float[][] found = new float[1][];
        AdvantageEstimator reading = new Reading(credit, found);
        StageBatch.decide(facts, List.of(reading));
        return new ReinforcePlusPlus(1, credit).compute(TURNS, found[0]).returns();
    }

    /** Keeps the rewards that a credit gives. */
    private record Reading(Credit credit, float[][] found) implements AdvantageEstimator {
        @Override
        public CorrectionUnit unit() {
            return CorrectionUnit.TOKEN;
        }

        @Override
        public StageOutcome apply(StageBatch batch) {
            found[0] = credit.rewards(batch);
            return batch.observed(this, Map.of());
        }
    }

    /** Takes one from the reward of sequence 0. */
    private record Fine() implements RewardStage {
        @Override
        public CorrectionUnit unit() {
            return CorrectionUnit.SEQUENCE;
        }

        @Override
        public StageOutcome apply(StageBatch batch) {
            double[] rewards = batch.rewards().clone();
            rewards[0] -= 1;
            return batch.reward(this, rewards, Map.of());
        }
    }

    @Test
    void shouldPutWhatShapingChangedAtTheLastTrainedToken() {
        float[][] found = new float[1][];
        StageBatch.decide(facts().build(), List.of(new Fine(), new Reading(Credit.TURN, found)));

        assertThat(found[0]).containsExactly(0, 1, 0, 2 - 1, 0, 4);
    }

    @Test
    void shouldTakeTheGreedyRewardOffInRemax() {
        assertThat(decide(Remax.defaults()).perToken()).containsExactly(2.5f, 2.5f, 0, 2.5f, -1, -1);
        assertThat(last(decide(Remax.defaults())).unit()).isEqualTo(CorrectionUnit.TOKEN);
    }

    @Test
    void shouldMeasureSuccessInUnitsOfItsShare() {
        TokenBatch batch = new TokenBatch(
                new int[] {0, 1, 2, 3, 4, 5, 6}, new byte[] {1, 1, 1, 1, 1, 1}, new int[] {0, 0, 0, 0, 1, 1});

        assertThat(new MaxRl().perSequence(batch, new double[] {1, 0, 0, 0, 0, 0}))
                .as("one success of four has four times its share; a group without one says nothing")
                .containsExactly(3, -1, -1, -1, 0, 0);
    }

    @Test
    void shouldTakeOneMeanOverTheBatch() {
        assertThat(new BatchMean().perSequence(TURNS, new double[] {3, 1})).containsExactly(1, -1);
        assertThat(last(decide(new BatchMean())).unit()).isEqualTo(CorrectionUnit.BATCH);
    }

    @Test
    void shouldCreditASampleWithTheDrawsThatItIsIn() {
        TokenBatch four = new TokenBatch(new int[] {0, 1, 2, 3, 4}, new byte[] {1, 1, 1, 1}, new int[4]);
        // one success of four, draws of two: half of the draws succeed; those with the success all do, the others 1 of
        // 3
        double[] advantages = new PassAtKAdvantage(2, false).perSequence(four, new double[] {0, 1, 0, 0});

        assertThat(advantages)
                .containsExactly(new double[] {1 / 3.0 - 0.5, 0.5, 1 / 3.0 - 0.5, 1 / 3.0 - 0.5}, within(1e-12));
        assertThat(new PassAtKAdvantage(2, true).perSequence(four, new double[] {0, 1, 0, 0})[1])
                .isCloseTo(0.5 / (0.5 + 1e-6), within(1e-12));
        assertThatThrownBy(() -> new PassAtKAdvantage(5, false).perSequence(four, new double[4]))
                .hasMessageContaining("groups of at least k sequences: group=0, sequences=4, k=5");
        assertThatThrownBy(() -> new PassAtKAdvantage(0, false)).hasMessageContaining("k must be at least 1: 0");
    }

    @Test
    void shouldAgreeWithAllDrawsWrittenOut() {
        Random random = new Random(3);
        for (int trial = 0; trial < 60; trial++) {
            int n = 1 + random.nextInt(7);
            int k = 1 + random.nextInt(n);
            double[] rewards = random.ints(n, 0, 4).asDoubleStream().toArray();
            byte[] mask = new byte[n];
            double[] expected = writtenOut(rewards, k);

            double[] actual = new PassAtKAdvantage(k, false)
                    .perSequence(new TokenBatch(IntStream.rangeClosed(0, n).toArray(), mask, new int[n]), rewards);

            assertThat(actual).containsExactly(expected, within(1e-9));
        }
    }

    private static double[] writtenOut(double[] rewards, int k) {
        List<Double> all = new ArrayList<>();
        List<List<Double>> with = new ArrayList<>();
        for (int s = 0; s < rewards.length; s++) {
            with.add(new ArrayList<>());
        }
        for (int draw = 0; draw < 1 << rewards.length; draw++) {
            if (Integer.bitCount(draw) == k) {
                double best = Double.NEGATIVE_INFINITY;
                for (int s = 0; s < rewards.length; s++) {
                    best = (draw >> s & 1) == 1 ? Math.max(best, rewards[s]) : best;
                }
                all.add(best);
                for (int s = 0; s < rewards.length; s++) {
                    if ((draw >> s & 1) == 1) {
                        with.get(s).add(best);
                    }
                }
            }
        }
        double mean = mean(all);
        return with.stream().mapToDouble(of -> mean(of) - mean).toArray();
    }

    private static double mean(List<Double> values) {
        return values.stream().mapToDouble(v -> v).average().orElseThrow();
    }

    @Test
    void shouldNormaliseTheComponentsOfARewardAndWhatShapingChanged() {
        // both components are ±1/√2; whitened over 3 and 2 tokens
        Decision plain = decide(Gdpo.defaults());
        assertThat(plain.advantages()[0]).isPositive();
        assertThat(last(plain).values()).containsEntry("components", 2.0);

        Decision shaped = StageBatch.decide(facts().build(), List.of(new Fine(), Gdpo.defaults()));
        assertThat(last(shaped).values()).containsEntry("components", 3.0);
        assertThat(decide(new Gdpo(Map.of("form", "2"))).advantages()).isEqualTo(plain.advantages());
        assertThatThrownBy(() -> new Gdpo(Map.of("form", "much")))
                .hasMessageContaining("components.form must be a finite number: 'much'");
        assertThatThrownBy(() -> decide(new Gdpo(Map.of("style", "1"))))
                .hasMessageContaining("gdpo needs the reward component style of every sequence: sequence=0");
    }

    @Test
    void shouldDecideOpobAtTheStepWhereGradientsAreKnown() {
        Opob opob = new Opob(Scope.GROUP, WeightedAverage.MEAN, Opob.Weights.NONE, 0, false, false);
        // norms 1 and 2: the baseline is (1·3 + 4·1) / 5
        assertThat(decide(opob).advantages()).containsExactly(new double[] {3 - 1.4, 1 - 1.4}, within(1e-12));
        assertThat(last(decide(opob)).values())
                .containsEntry("decided_at_step", 0.0)
                .containsEntry("norm_max", 2.0)
                .containsEntry("norm_mean", 1.5);

        Decision formed =
                StageBatch.decide(StageFacts.of(TURNS, new double[] {3, 1}).build(), List.of(opob));
        assertThat(formed.advantages()).containsExactly(1, -1);
        assertThat(last(formed).values()).containsEntry("decided_at_step", 1.0);
        assertThat(opob.optionalInputs()).containsExactly(StageInput.GRADIENT_NORMS);
    }

    @Test
    void shouldWeighOpobByProximalOverBehavior() {
        // log weights 0.5 − 1 and 0: W = 1·e^-1 and 4·1
        double heavier = Math.exp(-1);
        double baseline = (heavier * 3 + 4 * 1) / (heavier + 4);
        assertThat(decide(Opob.defaults()).advantages())
                .containsExactly(new double[] {3 - baseline, 1 - baseline}, within(1e-6));
        assertThatThrownBy(() -> new Opob(Scope.GROUP, WeightedAverage.MEAN, Opob.Weights.TRUNCATED, 0, false, false))
                .hasMessageContaining("weight_cap must be finite and at least 1");
        assertThatThrownBy(() -> new Opob(Scope.GROUP, WeightedAverage.MEAN, Opob.Weights.RAW, 2, false, false))
                .hasMessageContaining("weight_cap does nothing unless weights=truncated");
    }

    @Test
    void shouldRefuseSettingsThatSayNothing() {
        assertThatThrownBy(() -> new TokenPreservingGrpo(1, 1, Credit.OUTCOME))
                .hasMessageContaining("credit must be turn or token");
        assertThatThrownBy(() -> new OptimalTokenBaseline(true, 0.5, Credit.OUTCOME))
                .hasMessageContaining("importance_cap must be finite and at least 1, or 0");
        assertThat(new OptimalTokenBaseline(true, 0, Credit.TOKEN).inputs())
                .containsExactlyInAnyOrder(
                        StageInput.PROXIMAL, StageInput.SQUARED_PROBABILITIES, StageInput.TOKEN_REWARDS);
        assertThatThrownBy(() -> StageBatch.decide(
                        facts().turns(new int[] {0, 0, -1, 2, 0, 0}).build(),
                        List.of(new ReinforcePlusPlus(1, Credit.TURN))))
                .hasMessageContaining(
                        "a trained token must be of a turn that has a reward: sequence=0, token=3, turn=2");
    }

    @Test
    void shouldNameEstimatorsByTheirKinds() {
        assertThat(all().map(AdvantageEstimator::name))
                .contains(
                        "grpo_passk",
                        "pass_at_k",
                        "max_rl",
                        "reinforce_plus_plus",
                        "tir_optimal_token_baseline",
                        "opob");
    }

    @Test
    void shouldSayWhatValuesAreToBeFittedTo() {
        // sequence 0: advantages 2.5, 1.25 and 0.625 backwards over values of 0.5; sequence 1: 0.75 and 0.375 over 0.25
        Decision decision = decide(new Gae(1, 0.5, Credit.OUTCOME));
        assertThat(decision.returns().orElseThrow()).containsExactly(1.125f, 1.75f, 0, 3, 0.625f, 1);
        assertThat(decide(Grpo.defaults()).returns()).isEmpty();
    }
}
