package dev.millrace.policy.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.NaiveDecoder;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.weights.Weights;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

class ScoringSessionTest {
    static final List<DecoderShape> SHAPES = Shapes.VARIED;
    private static final int[] LENGTHS = {2, 5, 1, 9, 33, 12, 13, 3, 70, 12};

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldAgreeWithNaiveTwinOnRaggedBatches(DecoderShape shape) {
        requireWhatTheNaiveTwinFinds(shape, RaggedBatches.random(shape, 2, LENGTHS));
    }

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldRenormaliseOverTheKeptTokensWhereASequenceHasThem(DecoderShape shape) {
        requireWhatTheNaiveTwinFinds(shape, RaggedBatches.cut(shape, 7, RaggedBatches.random(shape, 2, LENGTHS)));
    }

    private static void requireWhatTheNaiveTwinFinds(DecoderShape shape, SequenceBatch batch) {
        Weights weights = RaggedBatches.weights(shape, 1);
        float[] temperatures = RaggedBatches.temperatures(3, LENGTHS.length);
        try (ScoringSession session = new ScoringSession(Engine.cpu(), shape, 40)) {
            TokenScores scores = session.score(weights, batch, temperatures);

            NaiveDecoder twin = new NaiveDecoder(weights);
            for (int s = 0; s < LENGTHS.length; s++) {
                double[][] expected = twin.logProbs(RaggedBatches.sequence(batch, s), temperatures[s]);
                double[] values = shape.valueHead() ? twin.values(RaggedBatches.sequence(batch, s)) : new double[0];
                for (int t = batch.firstScored(s); t < batch.length(s); t++) {
                    int packed = batch.offset(s) + t - batch.firstScored(s);
                    double[] distribution = RaggedBatches.renormalised(batch, s, t, expected[t - 1]);
                    assertThat((double) scores.logProbs()[packed])
                            .as("sequence %d token %d", s, t)
                            .isCloseTo(distribution[batch.token(s, t)], within(1e-5));
                    assertThat((double) scores.entropies()[packed])
                            .isCloseTo(
                                    Arrays.stream(distribution)
                                            .map(lp -> lp == Double.NEGATIVE_INFINITY ? 0 : -Math.exp(lp) * lp)
                                            .sum(),
                                    within(1e-5));
                    assertThat((double) scores.sumSquaredProbs()[packed])
                            .isCloseTo(
                                    Arrays.stream(distribution)
                                            .map(lp -> Math.exp(2 * lp))
                                            .sum(),
                                    within(1e-5));
                    if (shape.valueHead()) {
                        assertThat((double) scores.values()[packed]).isCloseTo(values[t - 1], within(1e-5));
                    }
                }
            }
        }
    }

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldGiveTheSameBitsInAnyCompany(DecoderShape shape) {
        Weights weights = RaggedBatches.weights(shape, 4);
        SequenceBatch batch = RaggedBatches.random(shape, 5, LENGTHS);
        float[] temperatures = RaggedBatches.temperatures(6, LENGTHS.length);
        try (ScoringSession narrow = new ScoringSession(Engine.cpu(), shape, 1);
                ScoringSession wide = new ScoringSession(Engine.cpu(), shape, 100_000)) {
            TokenScores alone = narrow.score(weights, batch, temperatures);
            assertSameBits(wide.score(weights, batch, temperatures), alone);

            int[] order = {7, 3, 8, 0, 9, 1, 5, 2, 6, 4};
            SequenceBatch shuffled = new SequenceBatch(
                    Arrays.stream(order)
                            .mapToObj(s -> RaggedBatches.sequence(batch, s))
                            .toArray(int[][]::new),
                    Arrays.stream(order).map(batch::firstScored).toArray());
            float[] shuffledTemperatures = new float[order.length];
            IntStream.range(0, order.length).forEach(i -> shuffledTemperatures[i] = temperatures[order[i]]);
            TokenScores other = wide.score(weights, shuffled, shuffledTemperatures);
            for (int i = 0; i < order.length; i++) {
                assertThat(Arrays.copyOfRange(other.logProbs(), shuffled.offset(i), shuffled.offset(i + 1)))
                        .containsExactly(Arrays.copyOfRange(
                                alone.logProbs(), batch.offset(order[i]), batch.offset(order[i] + 1)));
            }
        }
    }

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldGiveTheSameBitsOverKeptTokensInAnyCompany(DecoderShape shape) {
        Weights weights = RaggedBatches.weights(shape, 4);
        SequenceBatch whole = RaggedBatches.random(shape, 5, LENGTHS);
        SequenceBatch batch = RaggedBatches.cut(shape, 8, whole);
        float[] temperatures = RaggedBatches.temperatures(6, LENGTHS.length);
        try (ScoringSession narrow = new ScoringSession(Engine.cpu(), shape, 1);
                ScoringSession wide = new ScoringSession(Engine.cpu(), shape, 100_000)) {
            TokenScores alone = narrow.score(weights, batch, temperatures);
            assertSameBits(wide.score(weights, batch, temperatures), alone);
            TokenScores uncut = wide.score(weights, whole, temperatures);
            for (int s = 0; s < LENGTHS.length; s += 3) {
                assertThat(Arrays.copyOfRange(alone.logProbs(), batch.offset(s), batch.offset(s + 1)))
                        .as("sequence %d, which was not cut", s)
                        .containsExactly(Arrays.copyOfRange(uncut.logProbs(), batch.offset(s), batch.offset(s + 1)));
            }
        }
    }

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldSayWhatItThinksOfFurtherTokensAtEachPosition(DecoderShape shape) {
        Weights weights = RaggedBatches.weights(shape, 1);
        NaiveDecoder twin = new NaiveDecoder(weights);
        float[] temperatures = RaggedBatches.temperatures(3, LENGTHS.length);
        SequenceBatch whole = RaggedBatches.random(shape, 2, LENGTHS);
        int k = 3;
        int[][] entries = new int[LENGTHS.length][];
        for (int s = 0; s < entries.length; s++) {
            int first = s;
            entries[s] = IntStream.range(0, k * (whole.length(s) - whole.firstScored(s)))
                    .map(i -> (first + i / k + 2 * (i % k)) % shape.vocabSize())
                    .toArray();
        }
        for (LogitsMemory logits : List.of(LogitsMemory.DEFAULT, new LogitsMemory(1))) {
            try (ScoringSession session = new ScoringSession(Engine.cpu(), shape, 40, logits)) {
                for (SequenceBatch batch : List.of(whole, RaggedBatches.cut(shape, 7, whole))) {
                    EntryScores found = session.scoreEntries(weights, batch, temperatures, entries, k);

                    assertSameBits(found.scores(), session.score(weights, batch, temperatures));
                    for (int s = 0; s < LENGTHS.length; s++) {
                        double[][] expected = twin.logProbs(RaggedBatches.sequence(batch, s), temperatures[s]);
                        for (int t = batch.firstScored(s); t < batch.length(s); t++) {
                            int row = t - batch.firstScored(s);
                            double[] distribution = RaggedBatches.renormalised(batch, s, t, expected[t - 1]);
                            double rest = 1;
                            for (int i = 0; i < k; i++) {
                                double logProb = distribution[entries[s][row * k + i]];
                                float claimed = found.logProbs()[(batch.offset(s) + row) * k + i];
                                if (logProb == Double.NEGATIVE_INFINITY) {
                                    assertThat(claimed).isEqualTo(Float.NEGATIVE_INFINITY);
                                } else {
                                    assertThat((double) claimed).isCloseTo(logProb, within(1e-5));
                                }
                                rest -= Math.exp(logProb);
                            }
                            assertThat(Math.exp(found.remainders()[batch.offset(s) + row]))
                                    .as("sequence %d token %d", s, t)
                                    .isCloseTo(Math.max(0, rest), within(1e-5));
                        }
                    }
                }
                assertThatThrownBy(() -> session.scoreEntries(weights, whole, temperatures, entries, 2))
                        .hasMessageStartingWith("k=2 entries per scored token: ");
                assertThatThrownBy(() ->
                                session.scoreEntries(weights, whole, temperatures, entries, shape.vocabSize() + 1))
                        .hasMessageStartingWith(
                                "k must be at least 1 and at most the vocabulary of " + shape.vocabSize());
            }
        }
    }

    @Test
    void shouldRefuseKeptTokensThatDoNotFit() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = Weights.random(shape, 1);
        try (ScoringSession session = new ScoringSession(Engine.cpu(), shape, 100)) {
            assertThatThrownBy(() -> session.score(weights, kept(new int[] {2, 1}, 4, 2, 3), new float[] {1}))
                    .hasMessage("token 1 at scored token 0 of sequence 0 is not among the 2 that were kept to be drawn"
                            + " from");
            assertThatThrownBy(() -> session.score(weights, kept(new int[] {2, 1}, 1, 11, 3), new float[] {1}))
                    .hasMessage("kept token 11 at scored token 0 of sequence 0 is outside the vocabulary of 11");
        }
        assertThatThrownBy(() -> kept(new int[] {1}, 1))
                .hasMessage("one row of kept tokens per scored token: 1 for 2 of sequence 0");
        assertThatThrownBy(() -> kept(new int[] {2, 1}, 1, 2))
                .hasMessage("the counts of kept tokens add up to 3, and there are 2 ids");
        assertThatThrownBy(() -> kept(new int[] {-1, 1}, 1))
                .hasMessage("a count of kept tokens must be at least 0: -1 at scored token 0");
    }

    private static SequenceBatch kept(int[] counts, int... ids) {
        return new SequenceBatch(
                new int[][] {{0, 1, 3}}, new int[] {1}, new SampledSupport[] {new SampledSupport(counts, ids)});
    }

    @Test
    void shouldGiveTheSameBitsAtTheSizeOfTheDefaultTask() {
        DecoderShape shape = Shapes.DEFAULT_TASK;
        Weights weights = Weights.random(shape, 7);
        int[] lengths = IntStream.range(0, 97).map(s -> 6 + s % 12).toArray();
        SequenceBatch batch = RaggedBatches.random(shape, 8, lengths);
        float[] temperatures = RaggedBatches.temperatures(9, lengths.length);
        try (ScoringSession narrow = new ScoringSession(Engine.cpu(), shape, 1);
                ScoringSession medium = new ScoringSession(Engine.cpu(), shape, 77);
                ScoringSession wide = new ScoringSession(Engine.cpu(), shape, 100_000)) {
            TokenScores alone = narrow.score(weights, batch, temperatures);
            assertSameBits(medium.score(weights, batch, temperatures), alone);
            assertSameBits(wide.score(weights, batch, temperatures), alone);
        }
    }

    @Test
    void shouldGiveTheSameBitsInAnyCompanyWhenMatricesOutgrowTheKernelsBlocks() {
        DecoderShape shape = new DecoderShape(300, 512, 1, 8, 2, 64, 700, 256, 10_000, 1e-6, false, true);
        Weights weights = Weights.random(shape, 7);
        SequenceBatch batch = RaggedBatches.random(shape, 8, 2, 3, 9, 2, 130, 17, 131, 16, 3, 250);
        float[] temperatures = RaggedBatches.temperatures(9, batch.sequenceCount());
        try (ScoringSession narrow = new ScoringSession(Engine.cpu(), shape, 1);
                ScoringSession wide = new ScoringSession(Engine.cpu(), shape, 100_000)) {
            assertSameBits(wide.score(weights, batch, temperatures), narrow.score(weights, batch, temperatures));
        }
    }

    @Test
    void shouldGiveTheSameBitsToSeveralThreadsAtOnce() throws Exception {
        DecoderShape shape = Shapes.DEFAULT_TASK;
        Weights weights = Weights.random(shape, 7);
        SequenceBatch batch = RaggedBatches.random(
                shape, 8, IntStream.range(0, 40).map(s -> 6 + s % 12).toArray());
        float[] temperatures = RaggedBatches.temperatures(9, 40);
        ExecutorService threads = Executors.newFixedThreadPool(4);
        try (ScoringSession session = new ScoringSession(Engine.cpu(), shape, 100)) {
            TokenScores alone = session.score(weights, batch, temperatures);
            List<Callable<TokenScores>> calls =
                    Collections.nCopies(40, () -> session.score(weights, batch, temperatures));
            for (Future<TokenScores> call : threads.invokeAll(calls)) {
                assertSameBits(call.get(90, TimeUnit.SECONDS), alone);
            }
        } finally {
            threads.shutdownNow();
        }
    }

    @Test
    void shouldSeeAWriteToTheWeightsAtTheNextCall() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = Weights.random(shape, 1);
        Weights other = Weights.random(shape, 2);
        SequenceBatch batch = RaggedBatches.random(shape, 3, 8, 9);
        float[] temperatures = {1, 1};
        try (ScoringSession session = new ScoringSession(Engine.cpu(), shape, 100)) {
            TokenScores before = session.score(weights, batch, temperatures);
            TokenScores expected = session.score(other, batch, temperatures);
            weights.copyFrom(other);
            assertSameBits(session.score(weights, batch, temperatures), expected);
            assertThat(before.logProbs()).isNotEqualTo(expected.logProbs());
        }
    }

    @Test
    void shouldRefuseWhatCannotBeScored() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = Weights.random(shape, 1);
        try (ScoringSession session = new ScoringSession(Engine.cpu(), shape, 100)) {
            assertThatThrownBy(() -> session.score(weights, one(0, 11, 3), new float[] {1}))
                    .hasMessage("token 11 at position 1 of sequence 0 is outside the vocabulary of 11");
            assertThatThrownBy(() -> session.score(weights, one(0, 1, 3), new float[] {0}))
                    .hasMessage("temperature must be finite and above 0: temperature=0.0 of sequence 0");
            assertThatThrownBy(() -> session.score(weights, one(0, 1, 3), new float[] {1, 1}))
                    .hasMessage("one temperature per sequence: 2 for 1 sequences");
            assertThatThrownBy(() -> session.score(weights, one(new int[97]), new float[] {1}))
                    .hasMessage("sequence 0 has 97 tokens, more than the model's maxPositions=96");
            assertThatThrownBy(() -> session.score(Weights.random(Shapes.ONE_KEY_HEAD, 1), one(0, 1), new float[] {1}))
                    .hasMessageStartingWith("these weights are of another shape");
            weights.tensor("model.norm.weight").put(0, Float.NaN);
            assertThatThrownBy(() -> session.score(weights, one(0, 1, 3), new float[] {1}))
                    .isInstanceOf(NonFiniteScoreException.class)
                    .hasMessageStartingWith("sequence 0, token 1: logProb=NaN");
        }
        assertThatThrownBy(() -> new SequenceBatch(new int[][] {{1, 2}}, new int[] {0}))
                .hasMessage("firstScored must be at least 1 and at most the length 2: firstScored=0 of sequence 0");
    }

    @Test
    void shouldStopBetweenMicroBatchesWhenInterrupted() {
        DecoderShape shape = Shapes.TIED;
        try (ScoringSession session = new ScoringSession(Engine.cpu(), shape, 100)) {
            Thread.currentThread().interrupt();
            assertThatThrownBy(() -> session.score(Weights.random(shape, 1), one(0, 1, 3), new float[] {1}))
                    .isInstanceOf(CancellationException.class);
            assertThat(Thread.interrupted()).isTrue();
        }
    }

    @Test
    void shouldPadByAtMostAQuarterAndByTheLengthAlone() {
        assertThat(IntStream.of(1, 4, 5, 12, 16, 17, 32, 33, 64, 65, 100, 1000).map(MicroBatch::paddedLength))
                .containsExactly(4, 4, 8, 12, 16, 20, 32, 40, 64, 80, 112, 1024);
        assertThat(IntStream.rangeClosed(16, 5000))
                .allMatch(n -> MicroBatch.paddedLength(n) >= n && MicroBatch.paddedLength(n) <= 1.25 * n + 1);
    }

    private static SequenceBatch one(int... tokens) {
        return new SequenceBatch(new int[][] {tokens}, new int[] {1});
    }

    private static void assertSameBits(TokenScores actual, TokenScores expected) {
        assertThat(actual.logProbs()).containsExactly(expected.logProbs());
        assertThat(actual.entropies()).containsExactly(expected.entropies());
        assertThat(actual.sumSquaredProbs()).containsExactly(expected.sumSquaredProbs());
        assertThat(actual.values()).containsExactly(expected.values());
    }
}
