package dev.millrace.corrections.objective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Numbers one can work out on paper. */
class ObjectivesByHandTest {
    private static final UpdateFacts SUM = UpdateFacts.of(new LossAggregation.TokenSum());
    private static final UpdateFacts SEQUENCES = UpdateFacts.of(new LossAggregation.SeqMeanTokenMean());
    /** Two sequences of two tokens. */
    private final TokenBatch batch = new TokenBatch(new int[] {0, 2, 4}, new byte[] {1, 1, 1, 1});

    private static float log(double probability) {
        return (float) Math.log(probability);
    }

    private ObjectiveInput input(float[] advantages, double[] current, double[] proximal) {
        float[] q = new float[4];
        float[] p = new float[4];
        for (int t = 0; t < 4; t++) {
            q[t] = log(current[t]);
            p[t] = log(proximal[t]);
        }
        return ObjectiveInput.of(batch, q, advantages).withProximal(p).withBehavior(p);
    }

    @Test
    void shouldBoundTheMoveOfAProbabilityInDppoWhereverItStarted() {
        // 0.001 → 0.01 is ten times likelier and nothing; 0.5 → 0.6 is 1.2 times likelier and a tenth of everything
        ObjectiveInput in = input(
                new float[] {1, 1, -1, -1}, new double[] {0.01, 0.6, 0.01, 0.4}, new double[] {0.001, 0.5, 0.001, 0.5});

        ObjectiveResult tv = new DppoTv(Anchor.PROXIMAL, 0.05, 0.05, 20).evaluate(in, SUM);
        ObjectiveResult kl = new DppoKl(Anchor.PROXIMAL, 0.01, 0.01, 20).evaluate(in, SUM);

        assertThat(tv.gradient()).containsExactly(new float[] {-10, 0, 10, 0}, within(1e-4f));
        // binary KL of 0.001 to 0.01 is 0.0068, of 0.5 to 0.6 or 0.4 is 0.0204
        assertThat(kl.gradient()).containsExactly(new float[] {-10, 0, 10, 0}, within(1e-4f));
        assertThat(tv.metrics()).containsEntry(ObjectiveResult.CLIPPED_FRACTION, 0.5);
        assertThat(tv.clipFlags()).containsExactly(0, 1, 0, 1);
        assertThat(new DppoTv(Anchor.PROXIMAL, 0.05, 0.05, 2).evaluate(in, SUM).gradient()[0])
                .isCloseTo(-2, within(1e-6f));
    }

    @Test
    void shouldKeepAGradientWhereCispoClips() {
        ObjectiveResult result = new Cispo(Anchor.PROXIMAL, 0.2, 0.3)
                .evaluate(
                        input(new float[] {1, 1, -1, 1}, new double[] {0.4, 0.1, 0.4, 0.2}, new double[] {
                            0.2, 0.2, 0.2, 0.2
                        }),
                        SUM);

        assertThat(result.gradient()).containsExactly(new float[] {-1.3f, -0.8f, 1.3f, -1}, within(1e-5f));
        assertThat(result.metrics()).containsEntry(ObjectiveResult.CLIPPED_FRACTION, 0.75);
    }

    @Test
    void shouldBeThePolicyGradientOnPolicyAndFadeAwayFromItInSapo() {
        double[] same = {0.2, 0.3, 0.4, 0.5};
        ObjectiveResult onPolicy =
                new Sapo(Anchor.PROXIMAL, 1, 1.05).evaluate(input(new float[] {1, -2, 3, 4}, same, same), SUM);
        ObjectiveResult far = new Sapo(Anchor.PROXIMAL, 1, 1.05)
                .evaluate(
                        input(new float[] {1, 1, 1, 1}, new double[] {0.9, 0.9, 0.9, 0.9}, new double[] {
                            0.01, 0.1, 0.3, 0.6
                        }),
                        SUM);

        assertThat(onPolicy.gradient()).containsExactly(new float[] {-1, 2, -3, -4}, within(1e-5f));
        assertThat(Math.abs(far.gradient()[0])).isLessThan(Math.abs(far.gradient()[1]));
        assertThat(Math.abs(far.gradient()[0])).isLessThan(1e-3f);
    }

    @Test
    void shouldGiveGspoTokenTheGradientOfGspoForSequenceAdvantages() {
        ObjectiveInput in = input(
                new float[] {1, 1, -2, -2}, new double[] {0.2, 0.3, 0.2, 0.3}, new double[] {0.21, 0.29, 0.19, 0.31});
        Gspo whole = new Gspo(Anchor.PROXIMAL, 0.05, 0.05, Double.POSITIVE_INFINITY);

        assertThat(new GspoToken(Anchor.PROXIMAL, 0.05, 0.05)
                        .evaluate(in, SEQUENCES)
                        .gradient())
                .containsExactly(whole.evaluate(in, SEQUENCES).gradient(), within(1e-6f));
        // s = √(0.2·0.3 / (0.21·0.29)) for the first sequence, half of a half each
        assertThat(whole.evaluate(in, SEQUENCES).gradient()[0])
                .isCloseTo((float) (-Math.sqrt(0.06 / 0.0609) / 4), within(1e-6f));
    }

    @Test
    void shouldClipTheProductOfThePrefixInABandThatWidensInCtpo() {
        // ratios 1.02 1.1, 0.9 1.15: products 1.02 1.122, 0.9 1.035; bands 0.9753 to 1.0513 and 0.9653 to 1.0733
        ObjectiveInput in = input(
                new float[] {1, 1, -1, -1}, new double[] {0.204, 0.22, 0.18, 0.23}, new double[] {0.2, 0.2, 0.2, 0.2});

        ObjectiveResult result = Ctpo.defaults().evaluate(in, SUM);

        double wide = Math.exp(0.05 * Math.sqrt(2));
        assertThat(result.loss()).isCloseTo(-1.02 - wide + Math.exp(-0.025) + 1.035, within(1e-6));
        assertThat(result.gradient()).containsExactly(new float[] {-1.02f, 0, 0, 1.035f}, within(1e-6f));
        assertThat(result.clipFlags()).containsExactly(0, ObjectiveResult.CLIPPED, ObjectiveResult.CLIPPED, 0);

        // 0.9 · 1.3 = 1.17 is beyond the dual bound of 1.0733
        ObjectiveResult dual = Ctpo.defaults()
                .evaluate(
                        input(new float[] {0, 0, -1, -1}, new double[] {0.2, 0.2, 0.18, 0.26}, new double[] {
                            0.2, 0.2, 0.2, 0.2
                        }),
                        SUM);
        assertThat(dual.loss()).isCloseTo(Math.exp(-0.025) + wide, within(1e-6));
        assertThat(dual.gradient()).containsOnly(0f, -0f);
        assertThat(dual.clipFlags()[3]).isEqualTo(ObjectiveResult.LOWER_CLIPPED);
        assertThatThrownBy(() -> new Ctpo(Anchor.OLD, 0.025, 0, 0.05)).hasMessageContaining("high must be above 0");
    }

    @Test
    void shouldVanishWhereDroIsSatisfied() {
        // A = 0.5, β = 2: at rest where the log ratio is 0.25
        double rest = 0.2 * Math.exp(0.25);
        ObjectiveResult result = new Dro(Anchor.PROXIMAL, 2)
                .evaluate(
                        input(new float[] {0.5f, 0.5f, 0, 0}, new double[] {rest, 0.2, 0.2, 0.2}, new double[] {
                            0.2, 0.2, 0.2, 0.2
                        }),
                        SUM);

        assertThat(result.gradient()).containsExactly(new float[] {0, -0.5f, 0, 0}, within(1e-5f));
    }

    @Test
    void shouldVanishAtTheRegularisedOptimumInOapl() {
        // β log(π/μ) summed over a sequence = A: 0.5 · (0.3 + 0.1) = 0.2
        double e = Math.exp(0.3);
        double f = Math.exp(0.1);
        ObjectiveResult result = new Oapl(0.5)
                .evaluate(
                        input(new float[] {0.2f, 0.2f, 1, 1}, new double[] {0.2 * e, 0.2 * f, 0.2, 0.2}, new double[] {
                            0.2, 0.2, 0.2, 0.2
                        }),
                        SEQUENCES);

        assertThat(result.gradient()).containsExactly(new float[] {0, 0, -0.5f, -0.5f}, within(1e-5f));
        assertThat(result.loss()).isCloseTo(0.5, within(1e-6));
    }

    @Test
    void shouldImitateGoodAnswersAndTaperBadOnesInTopr() {
        // the second sequence has become 6 times likelier: its weight is capped at 1; halved, it would be 0.5
        ObjectiveResult likelier = new Topr()
                .evaluate(
                        input(new float[] {1, 1, -1, -1}, new double[] {0.01, 0.01, 0.4, 0.6}, new double[] {
                            0.2, 0.2, 0.2, 0.2
                        }),
                        SUM);
        ObjectiveResult rarer = new Topr()
                .evaluate(
                        input(new float[] {1, 1, -1, -1}, new double[] {0.01, 0.01, 0.1, 0.2}, new double[] {
                            0.2, 0.2, 0.2, 0.2
                        }),
                        SUM);

        assertThat(likelier.gradient()).containsExactly(new float[] {-1, -1, 1, 1}, within(1e-5f));
        assertThat(rarer.gradient()).containsExactly(new float[] {-1, -1, 0.5f, 0.5f}, within(1e-5f));
    }

    @Test
    void shouldRefuseBothSignsInOneSequenceUnderTopr() {
        ObjectiveInput both =
                input(new float[] {1, 1, 1, -1}, new double[] {0.1, 0.1, 0.1, 0.1}, new double[] {0.1, 0.1, 0.1, 0.1});

        assertThatThrownBy(() -> new Topr().evaluate(both, SUM)).hasMessageContaining("sequence=1");
    }

    @Test
    void shouldSilenceASequenceWithAZeroWeightInGmpo() {
        ObjectiveInput in = input(
                        new float[] {1, 1, 1, 1}, new double[] {0.2, 0.2, 0.2, 0.2}, new double[] {0.2, 0.2, 0.2, 0.2})
                .withWeights(new float[] {0, 1, 1, 1});

        assertThat(Gmpo.defaults().evaluate(in, SEQUENCES).gradient())
                .containsExactly(new float[] {-0f, -0f, -0.25f, -0.25f}, within(1e-7f));
    }

    @Test
    void shouldCountMaskedSequencesInTheMeanOfGmpoOnlyIfTheWholeDoes() {
        ObjectiveInput in = input(
                        new float[] {1, 1, 1, 1}, new double[] {0.2, 0.2, 0.2, 0.2}, new double[] {0.2, 0.2, 0.2, 0.2})
                .withMask(new byte[] {1, 1, 0, 0});

        assertThat(Gmpo.defaults().evaluate(in, SEQUENCES).loss()).isCloseTo(-1, within(1e-12));
        GlobalBatch both = new GlobalBatch(GlobalBatch.OF_THIS_BATCH, 2, 1);
        assertThat(Gmpo.defaults()
                        .evaluate(in, UpdateFacts.of(new LossAggregation.SeqMeanTokenMean(), both))
                        .loss())
                .isCloseTo(-0.5, within(1e-12));
    }

    @Test
    void shouldHoldTheTokensOfLargestCovarianceInKlCov() {
        // mean advantage 0, mean log-prob between the two values: covariances +, −, −, +; equal in size
        ObjectiveInput in =
                input(new float[] {1, -1, 1, -1}, new double[] {0.4, 0.4, 0.1, 0.1}, new double[] {0.2, 0.2, 0.2, 0.2});
        float[] free = new M2poSurrogate(Anchor.PROXIMAL).evaluate(in, SUM).gradient();

        float[] oneHeld =
                new KlCov(Anchor.PROXIMAL, 0.25, 0.5).evaluate(in, SUM).gradient();
        float[] twoHeld = new KlCov(Anchor.PROXIMAL, 0.5, 0.5).evaluate(in, SUM).gradient();

        assertThat(oneHeld).containsExactly(new float[] {free[0] + 0.5f, free[1], free[2], free[3]}, within(1e-6f));
        assertThat(twoHeld)
                .containsExactly(new float[] {free[0] + 0.5f, free[1], free[2], free[3] - 0.5f}, within(1e-6f));
    }

    @Test
    void shouldDrawTheSameTokensAtTheSameStepInClipCov() {
        RandomInput in = RandomInput.of(8, 0.1);
        Set<String> draws = new HashSet<>();
        ClipCov objective = new ClipCov(Anchor.PROXIMAL, 0.2, 0.2, 0.1, 0.01, 9);
        for (long step = 0; step < 20; step++) {
            UpdateFacts facts = SUM.after(step);
            byte[] first = objective.evaluate(in.input(), facts).clipFlags();

            assertThat(objective.evaluate(in.input(), facts).clipFlags()).containsExactly(first);
            draws.add(Arrays.toString(first));
        }
        assertThat(draws.size()).isGreaterThan(1);
    }

    @Test
    void shouldDropATokenWhoseProbabilityMovedWhicheverWayInIpo() {
        // moved by +0.4 and −0.4, with an advantage along the move and against it; then by 0.2 and 0.099, both kept
        ObjectiveInput in = input(
                new float[] {1, 1, 2, -1}, new double[] {0.6, 0.1, 0.4, 0.1}, new double[] {0.2, 0.5, 0.2, 0.001});

        ObjectiveResult result = new Ipo(0.3, 0).evaluate(in, SUM);
        float[] pulled = new Ipo(0.3, 0.5).evaluate(in, SUM).gradient();

        assertThat(result.gradient()).containsExactly(new float[] {0, 0, -4, 100}, within(1e-3f));
        assertThat(result.metrics()).containsEntry(ObjectiveResult.CLIPPED_FRACTION, 0.5);
        assertThat(result.actedOn()).isEqualTo(new ActedOn(2, 1));
        // 2 β log r = log 2
        assertThat(pulled[2]).isCloseTo((float) (-4 + Math.log(2)), within(1e-5f));
    }

    @Test
    void shouldGiveATokenOfALongAnswerAsMuchAsOneOfAShortOneInLuspo() {
        TokenBatch ragged = new TokenBatch(new int[] {0, 3, 4}, new byte[] {1, 1, 1, 1});
        float[] same = {-1, -1, -1, -1};
        ObjectiveInput in =
                ObjectiveInput.of(ragged, same, new float[] {1, 1, 1, 1}).withProximal(same);

        assertThat(Gspo.defaults().evaluate(in, SEQUENCES).gradient())
                .containsExactly(new float[] {-1 / 6f, -1 / 6f, -1 / 6f, -0.5f}, within(1e-6f));
        assertThat(Luspo.defaults().evaluate(in, SEQUENCES).gradient())
                .containsExactly(new float[] {-0.5f, -0.5f, -0.5f, -0.5f}, within(1e-6f));
    }

    @Test
    void shouldCapAndPullBackAsTheSampleSizeFallsInP3o() {
        double[] same = {0.2, 0.3, 0.4, 0.5};
        ObjectiveResult onPolicy = P3o.defaults().evaluate(input(new float[] {1, -2, 3, 4}, same, same), SUM);
        // ratios 3, 1, 1, 1: effective share 6² / (4 · 12) = 0.75
        ObjectiveResult off = P3o.defaults()
                .evaluate(
                        input(new float[] {1, 1, 1, 0}, new double[] {0.6, 0.2, 0.2, 0.2}, new double[] {
                            0.2, 0.2, 0.2, 0.2
                        }),
                        SUM);

        assertThat(onPolicy.gradient()).containsExactly(new float[] {-1, 2, -3, -4}, within(1e-5f));
        assertThat(onPolicy.actedOn()).isEqualTo(new ActedOn(0, 0));
        assertThat(off.metrics().get(P3o.ESS)).isCloseTo(0.75, within(1e-6));
        // −0.75 + 0.25 (1 − 1/3) for the first; nothing pulls where the ratio is 1
        assertThat(off.gradient())
                .containsExactly(new float[] {-0.75f + 0.25f * 2 / 3, -0.75f, -0.75f, 0}, within(1e-5f));
    }

    @Test
    void shouldLeaveAnAnswerAloneThatHasMovedFarEitherWayInVespo() {
        // whole answers at ratio 1 and 2 (up), then at ratio 1/2 and 2 with negative advantages
        ObjectiveResult up = Vespo.defaults()
                .evaluate(
                        input(new float[] {1, 1, 1, 1}, new double[] {0.2, 0.2, 0.4, 0.2}, new double[] {
                            0.2, 0.2, 0.2, 0.2
                        }),
                        SUM);
        ObjectiveResult down = Vespo.defaults()
                .evaluate(
                        input(new float[] {-1, -1, -1, -1}, new double[] {0.1, 0.2, 0.4, 0.2}, new double[] {
                            0.2, 0.2, 0.2, 0.2
                        }),
                        SUM);

        float likelier = (float) (4 * Math.exp(-3)); // W² e^(3 − 3 W) at 2
        assertThat(up.gradient()).containsExactly(new float[] {-1, -1, -likelier, -likelier}, within(1e-5f));
        float half = (float) (Math.E / 8); // W³ e^(2 − 2 W) at a half
        float twice = (float) (8 * Math.exp(-2)); // and at 2
        assertThat(down.gradient()).containsExactly(new float[] {half, half, twice, twice}, within(1e-5f));
        assertThat(up.actedOn()).isEqualTo(new ActedOn(2, 1));
    }

    @Test
    void shouldRefuseAGradientThatOverflows() {
        TokenBatch one = new TokenBatch(new int[] {0, 1}, new byte[] {1});
        ObjectiveInput in =
                ObjectiveInput.of(one, new float[] {-1}, new float[] {-1}).withProximal(new float[] {-120});

        assertThatThrownBy(() -> KlCov.defaults().evaluate(in, SUM))
                .hasMessageContaining("gradient (the ratio overflows)")
                .hasMessageContaining("sequence=0, token=0");
    }

    static Stream<Runnable> meaningless() {
        return Stream.of(
                () -> new DppoTv(Anchor.OLD, -1, 1, 1),
                () -> new DppoKl(Anchor.OLD, 1, Double.NaN, 1),
                () -> new DppoTv(Anchor.OLD, 1, 1, 0),
                () -> new Sapo(Anchor.OLD, 0, 1),
                () -> new SequenceSapo(Anchor.OLD, 1, -1),
                () -> new Dro(Anchor.OLD, 0),
                () -> new Oapl(0),
                () -> new KlCov(Anchor.OLD, 0, 1),
                () -> new KlCov(Anchor.OLD, 1.5, 1),
                () -> new KlCov(Anchor.OLD, 0.5, -1),
                () -> new ClipCov(Anchor.OLD, 0.2, 0.2, 0, 1, 5),
                () -> new ClipCov(Anchor.OLD, 0.2, 0.2, 1, 5, 1),
                () -> new Gspo(Anchor.OLD, 0.2, 0.2, 1),
                () -> new Ipo(0, 0),
                () -> new Ipo(1.5, 0),
                () -> new Ipo(0.3, -1),
                () -> new Luspo(Anchor.OLD, -1, 0.2),
                () -> new Vespo(2, 3, 0, 2),
                () -> new Vespo(2, Double.POSITIVE_INFINITY, 3, 2));
    }

    @ParameterizedTest
    @MethodSource("meaningless")
    void shouldRefuseSettingsThatMeanNothing(Runnable construction) {
        assertThatThrownBy(construction::run).isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void shouldNameTheVectorThatIsMissing() {
        ObjectiveInput bare = ObjectiveInput.of(batch, new float[4], new float[4]);

        for (Objective objective : List.of(
                DppoTv.defaults(),
                Sapo.defaults(),
                Cispo.defaults(),
                Dro.defaults(),
                Gspo.defaults(),
                GspoToken.defaults(),
                Gmpo.defaults(),
                KlCov.defaults(),
                ClipCov.defaults(),
                Luspo.defaults(),
                P3o.defaults(),
                M2poSurrogate.defaults())) {
            assertThatThrownBy(() -> objective.evaluate(bare, SUM)).hasMessageContaining("give proximal log-probs");
        }
        for (Objective objective : List.of(new Topr(), Ipo.defaults(), Vespo.defaults(), Oapl.defaults())) {
            assertThatThrownBy(() -> objective.evaluate(bare, SUM)).hasMessageContaining("give behavior log-probs");
        }
    }
}
