package dev.millrace.corrections.objective;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.corrections.TokenBatch;
import java.util.Arrays;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Every objective against its naive twin, and its gradient against finite differences of that twin with the detached
 * parts held fixed; also against finite differences of its own value where nothing but the weights is detached.
 */
class ObjectiveGradientTest {
    private static final int SEEDS = 40;
    private static final double TWIN_STEP = 1e-6;

    @ParameterizedTest
    @MethodSource("dev.millrace.corrections.objective.TwinnedObjectives#all")
    void shouldAgreeWithNaiveTwinOnRandomRaggedBatches(TwinnedObjective twinned) {
        for (int seed = 0; seed < SEEDS; seed++) {
            RandomInput in = twinned.input(seed);
            double[] current = doubles(in.current());

            double expected = twinned.twin().loss(in, current, current.clone());

            assertThat(twinned.evaluate(in).loss())
                    .as("seed %d", seed)
                    .isCloseTo(expected, within(1e-12 * (1 + Math.abs(expected))));
        }
    }

    @ParameterizedTest
    @MethodSource("dev.millrace.corrections.objective.TwinnedObjectives#all")
    void shouldDeriveItsTwinWithDetachedPartsHeldFixed(TwinnedObjective twinned) {
        int checked = 0;
        int kinks = 0;
        for (int seed = 0; seed < SEEDS; seed++) {
            RandomInput in = twinned.input(seed);
            double[] current = doubles(in.current());
            float[] gradient = twinned.evaluate(in).gradient();
            double atRest = twinned.twin().loss(in, current, current);
            for (int t : trained(in.batch())) {
                double up = (moved(twinned, in, current, t, TWIN_STEP) - atRest) / TWIN_STEP;
                double down = (atRest - moved(twinned, in, current, t, -TWIN_STEP)) / TWIN_STEP;
                checked++;
                if (Math.abs(up - down) > 1e-3 * (Math.abs(up) + Math.abs(down)) + 1e-6) {
                    kinks++;
                } else {
                    assertThat((double) gradient[t])
                            .as("seed %d token %d", seed, t)
                            .isCloseTo((up + down) / 2, within(1e-6 + 1e-5 * Math.abs(up)));
                }
            }
        }
        assertThat(checked).isGreaterThan(1000);
        assertThat(kinks)
                .as("tokens too close to a kink to be checked, of %d", checked)
                .isLessThan(checked / 50);
    }

    @ParameterizedTest
    @MethodSource("dev.millrace.corrections.objective.TwinnedObjectives#withoutDetachedParts")
    void shouldDeriveItsOwnValue(TwinnedObjective twinned) {
        int checked = 0;
        int kinks = 0;
        for (int seed = 0; seed < SEEDS; seed++) {
            RandomInput in = twinned.input(seed);
            ObjectiveResult result = twinned.evaluate(in);
            for (int t : trained(in.batch())) {
                double up = (loss(twinned, in.moved(t, 1)) - result.loss()) / RandomInput.STEP;
                double down = (result.loss() - loss(twinned, in.moved(t, -1))) / RandomInput.STEP;
                checked++;
                if (Math.abs(up - down) > 4 * RandomInput.STEP * (Math.abs(up) + Math.abs(down)) + 1e-9) {
                    kinks++;
                } else {
                    assertThat((double) result.gradient()[t])
                            .as("seed %d token %d", seed, t)
                            .isCloseTo((up + down) / 2, within(1e-7 + 1e-3 * Math.abs(up)));
                }
            }
        }
        assertThat(kinks)
                .as("tokens too close to a kink to be checked, of %d", checked)
                .isLessThan(checked / 20);
    }

    @ParameterizedTest
    @MethodSource("dev.millrace.corrections.objective.TwinnedObjectives#all")
    void shouldNotDependOnTheOrderOfSequences(TwinnedObjective twinned) {
        for (int seed = 0; seed < SEEDS; seed++) {
            RandomInput in = twinned.input(seed);
            ObjectiveResult forward = twinned.evaluate(in);
            ObjectiveResult backward = twinned.evaluate(in.reversed());

            assertThat(backward.loss()).isCloseTo(forward.loss(), within(1e-12 * (1 + Math.abs(forward.loss()))));
            assertThat(sorted(backward.gradient())).containsExactly(sorted(forward.gradient()), within(1e-7f));
            forward.metrics()
                    .forEach((name, value) ->
                            assertThat(backward.metrics().get(name)).as(name).isCloseTo(value, within(1e-12)));
        }
    }

    @ParameterizedTest
    @MethodSource("dev.millrace.corrections.objective.TwinnedObjectives#all")
    void shouldLeaveContextTokensWithoutGradientAndUnread(TwinnedObjective twinned) {
        RandomInput in = twinned.input(3); // NaN at every context token
        ObjectiveResult result = twinned.evaluate(in);

        assertThat(result.loss()).isFinite();
        for (int t = 0; t < in.batch().tokenCount(); t++) {
            assertThat(in.batch().isTrained(t) || result.gradient()[t] == 0f).isTrue();
        }
    }

    @ParameterizedTest
    @MethodSource("dev.millrace.corrections.objective.TwinnedObjectives#all")
    void shouldCountEveryTokenThatItFlagsAmongThoseItActedOn(TwinnedObjective twinned) {
        for (int seed = 0; seed < SEEDS; seed++) {
            RandomInput in = twinned.input(seed);
            ObjectiveResult result = twinned.evaluate(in);
            TokenBatch batch = in.batch();
            int flagged = 0;
            int sequences = 0;
            for (int s = 0; s < batch.sequenceCount(); s++) {
                int of = (int) IntStream.range(batch.start(s), batch.end(s))
                        .filter(t -> result.clipFlags()[t] != 0)
                        .count();
                flagged += of;
                sequences += of > 0 ? 1 : 0;
            }

            assertThat(result.actedOn().tokens()).isBetween(flagged, batch.trainedTokens());
            assertThat(result.actedOn().sequences())
                    .isBetween(sequences, Math.min(result.actedOn().tokens(), batch.sequenceCount()));
        }
    }

    private static double loss(TwinnedObjective twinned, RandomInput in) {
        return twinned.evaluate(in).loss();
    }

    private static double moved(TwinnedObjective twinned, RandomInput in, double[] current, int t, double step) {
        double[] moved = current.clone();
        moved[t] += step;
        return twinned.twin().loss(in, moved, current);
    }

    private static int[] trained(TokenBatch batch) {
        return IntStream.range(0, batch.tokenCount()).filter(batch::isTrained).toArray();
    }

    private static double[] doubles(float[] values) {
        double[] doubles = new double[values.length];
        Arrays.setAll(doubles, i -> values[i]);
        return doubles;
    }

    private static float[] sorted(float[] values) {
        float[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted;
    }
}
