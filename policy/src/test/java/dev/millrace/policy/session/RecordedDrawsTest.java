package dev.millrace.policy.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.NaiveDecoder;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.weights.Weights;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Kept tokens recorded by draws. */
class RecordedDrawsTest {
    private static final int PROMPT = 3;
    private static final int LENGTH = 14;
    private static final int STEPS = 4;

    /** One sequence per slot, three prompt tokens forced, the rest drawn. */
    private record Drawn(int[][] tokens, float[][] logProbs, float[][] tempered, int[][][] kept, TopTokens[][] top) {}

    static List<Sampling> truncations() {
        return List.of(
                new Sampling(1, 0, 0.9f, 0, true, 4),
                new Sampling(1, 5, 1, 0, true, 4),
                new Sampling(1.3f, 6, 0.8f, 0, true, 3));
    }

    @ParameterizedTest
    @MethodSource("truncations")
    void shouldScoreTheKeptTokensToTheLogProbThatWasDrawnWith(Sampling sampling) {
        for (DecoderShape shape : Shapes.VARIED) {
            Weights weights = RaggedBatches.weights(shape, 3);
            Drawn drawn = draw(
                    shape,
                    weights,
                    IntStream.range(0, 6).mapToObj(i -> sampling).toList());
            SequenceBatch cut = batch(drawn, true);
            SequenceBatch whole = batch(drawn, false);
            float[] temperatures = new float[6];
            Arrays.fill(temperatures, sampling.temperature());
            try (ScoringSession scoring = new ScoringSession(Engine.cpu(), shape, 100)) {
                float[] over = scoring.score(weights, cut, temperatures).logProbs();
                float[] tempered = scoring.score(weights, whole, temperatures).logProbs();
                double largestGap = 0;
                for (int s = 0; s < 6; s++) {
                    for (int t = PROMPT; t < LENGTH; t++) {
                        int packed = cut.offset(s) + t - PROMPT;
                        double ratio = Math.exp((double) over[packed] - drawn.logProbs()[s][t]);
                        assertThat(ratio).as("sequence %d, token %d", s, t).isCloseTo(1, within(1e-5));
                        largestGap = Math.max(largestGap, drawn.logProbs()[s][t] - tempered[packed]);
                    }
                }
                assertThat(largestGap)
                        .as("what truncation gives to a token, in nats")
                        .isGreaterThan(0.02);
            }
        }
    }

    @Test
    void shouldNameExactlyTheTokensThatTruncationLeft() {
        DecoderShape shape = Shapes.GROUPED_UNTIED_BIASED;
        Weights weights = RaggedBatches.weights(shape, 3);
        NaiveDecoder twin = new NaiveDecoder(weights);
        List<Sampling> samplings = List.of(
                new Sampling(1.2f, 5, 1, 0, true, 0),
                new Sampling(1.2f, 0, 0.7f, 0, true, 0),
                new Sampling(1.2f, 5, 1, 0, false, 0), // runs with the others, but records nothing
                Sampling.of(1.2f));
        Drawn drawn = draw(shape, weights, samplings);
        for (int s = 0; s < samplings.size(); s++) {
            double[][] logProbs = twin.logProbs(drawn.tokens()[s], 1.2);
            for (int t = 1; t < LENGTH; t++) {
                int[] expected = t < PROMPT || !samplings.get(s).recordsKept()
                        ? new int[0]
                        : left(samplings.get(s), logProbs[t - 1]);
                assertThat(drawn.kept()[s][t]).as("slot %d, token %d", s, t).containsExactly(expected);
            }
        }
    }

    @Test
    void shouldNameTheLikeliestTokensOfTheDistributionThatIsCompared() {
        DecoderShape shape = Shapes.GROUPED_UNTIED_BIASED;
        Weights weights = RaggedBatches.weights(shape, 3);
        NaiveDecoder twin = new NaiveDecoder(weights);
        List<Sampling> samplings = List.of(
                new Sampling(1.2f, 3, 1, 0, true, 5),
                new Sampling(1.2f, 3, 1, 0, false, 5),
                new Sampling(1.2f, 0, 1, 0, false, 2),
                new Sampling(1.2f, 0, 1, 0, false, 13));
        for (List<Sampling> together : List.of(samplings, samplings.subList(2, 4))) {
            Drawn drawn = draw(shape, weights, together);
            for (int s = 0; s < together.size(); s++) {
                Sampling sampling = together.get(s);
                double[][] logProbs = twin.logProbs(drawn.tokens()[s], 1.2);
                for (int t = PROMPT; t < LENGTH; t++) {
                    double[] whole = logProbs[t - 1];
                    int[] order = order(whole);
                    int among = sampling.recordsKept() ? 3 : 13;
                    double mass = Arrays.stream(order)
                            .limit(among)
                            .mapToDouble(i -> Math.exp(whole[i]))
                            .sum();
                    TopTokens top = drawn.top()[s][t];
                    assertThat(top.ids()).containsExactly(Arrays.copyOf(order, sampling.topLogProbs()));
                    double rest = 1;
                    for (int i = 0; i < sampling.topLogProbs(); i++) {
                        double expected = i < among ? whole[order[i]] - Math.log(mass) : Double.NEGATIVE_INFINITY;
                        if (i < among) {
                            assertThat((double) top.logProbs()[i]).isCloseTo(expected, within(2e-5));
                        } else {
                            assertThat(top.logProbs()[i]).isEqualTo(Float.NEGATIVE_INFINITY);
                        }
                        rest -= Math.exp(expected);
                    }
                    if (sampling.topLogProbs() >= among) {
                        assertThat(top.remainder()).isEqualTo(Float.NEGATIVE_INFINITY);
                    } else {
                        assertThat(Math.exp(top.remainder())).isCloseTo(rest, within(1e-5));
                    }
                }
            }
        }
    }

    @Test
    void shouldDrawTheSameTokensWhetherTheyAreRecordedOrNot() {
        DecoderShape shape = Shapes.DEFAULT_TASK;
        Weights weights = Weights.random(shape, 5);
        Drawn plain = draw(shape, weights, List.of(new Sampling(1, 5, 0.9f), new Sampling(1, 5, 0.9f)));
        Drawn recorded = draw(
                shape, weights, List.of(new Sampling(1, 5, 0.9f, 0, true, 3), new Sampling(1, 5, 0.9f, 0, true, 3)));
        for (int s = 0; s < 2; s++) {
            assertThat(recorded.tokens()[s]).containsExactly(plain.tokens()[s]);
            assertThat(recorded.logProbs()[s]).containsExactly(plain.logProbs()[s]);
            assertThat(recorded.tempered()[s]).containsExactly(plain.tempered()[s]);
        }
    }

    @Test
    void shouldRefuseToRecordWhatThereIsNot() {
        assertThatThrownBy(() -> new Sampling(1, 0, 1, 0, true, 0))
                .hasMessage("recordsKept needs a topK above 0, a topP below 1 or a minP above 0, since all tokens are"
                        + " kept otherwise: topK=0, topP=1.0, minP=0.0");
        assertThatThrownBy(() -> new Sampling(1, 0, 1, -0.1f, false, 0))
                .hasMessage("minP must be at least 0 and at most 1: minP=-0.1");
        assertThatThrownBy(() -> new Sampling(1, 0, 1, 0, false, -1))
                .hasMessage("topLogProbs must be at least 0: topLogProbs=-1");
        DecoderShape shape = Shapes.TIED;
        assertThatThrownBy(() -> draw(shape, Weights.random(shape, 1), List.of(new Sampling(1, 0, 1, 0, false, 12))))
                .hasMessage("slot 0 asks for the 12 likeliest tokens of a vocabulary of 11");
        assertThatThrownBy(() -> {
                    try (DecodeSession decode = new DecodeSession(Engine.cpu(), shape, 1, 4, 1)) {
                        decode.reset(0, 1);
                        DecodeInput in = new DecodeInput(1, 1);
                        in.activate(0, 1, Sampling.of(1));
                        in.sample(0, 0, 0.5f);
                        decode.advance(Weights.random(shape, 1), in).top(0, 0, 2);
                    }
                })
                .hasMessage("this call recorded no 2 likeliest tokens");
    }

    private static int[] left(Sampling sampling, double[] logProbs) {
        int[] order = order(logProbs);
        int among = sampling.topK() == 0 ? order.length : sampling.topK();
        double mass = Arrays.stream(order)
                .limit(among)
                .mapToDouble(i -> Math.exp(logProbs[i]))
                .sum();
        int count = 0;
        for (double reached = 0; count < among && reached < sampling.topP() * mass; count++) {
            reached += Math.exp(logProbs[order[count]]);
        }
        return Arrays.copyOf(order, sampling.topP() == 1 ? among : count);
    }

    private static int[] order(double[] logProbs) {
        return IntStream.range(0, logProbs.length)
                .boxed()
                .sorted((a, b) -> Double.compare(logProbs[b], logProbs[a]))
                .mapToInt(Integer::intValue)
                .toArray();
    }

    private static Drawn draw(DecoderShape shape, Weights weights, List<Sampling> samplings) {
        int slots = samplings.size();
        SplittableRandom random = new SplittableRandom(11);
        int[][] tokens = new int[slots][LENGTH];
        float[][] logProbs = new float[slots][LENGTH];
        float[][] tempered = new float[slots][LENGTH];
        int[][][] kept = new int[slots][LENGTH][];
        TopTokens[][] top = new TopTokens[slots][LENGTH];
        try (DecodeSession decode =
                new DecodeSession(Engine.cpu(), shape, slots + 1, LENGTH, STEPS)) { // one stays idle
            for (int slot = 0; slot < slots; slot++) {
                tokens[slot][0] = slot;
                decode.reset(slot, slot);
            }
            DecodeInput in = new DecodeInput(slots + 1, STEPS);
            for (int at = 1; at < LENGTH; at += STEPS) {
                int steps = Math.min(STEPS, LENGTH - at);
                in.clear();
                for (int slot = 0; slot < slots; slot++) {
                    in.activate(slot, steps, samplings.get(slot));
                    for (int step = 0; step < steps; step++) {
                        if (at + step < PROMPT) {
                            in.force(step, slot, (slot + at + step) % shape.vocabSize());
                        } else {
                            in.sample(step, slot, (float) (random.nextInt(1 << 24) * 0x1p-24));
                        }
                    }
                }
                DecodeSteps done = decode.advance(weights, in);
                for (int slot = 0; slot < slots; slot++) {
                    for (int step = 0; step < steps; step++) {
                        tokens[slot][at + step] = done.token(step, slot);
                        logProbs[slot][at + step] = done.logProb(step, slot);
                        tempered[slot][at + step] = done.temperatureLogProb(step, slot);
                        kept[slot][at + step] = done.kept(step, slot);
                        int k = samplings.get(slot).topLogProbs();
                        top[slot][at + step] = k == 0 ? null : done.top(step, slot, k);
                    }
                }
            }
        }
        return new Drawn(tokens, logProbs, tempered, kept, top);
    }

    private static SequenceBatch batch(Drawn drawn, boolean kept) {
        int sequences = drawn.tokens().length;
        int[] firstScored = new int[sequences];
        Arrays.fill(firstScored, PROMPT);
        SampledSupport[] rows = new SampledSupport[sequences];
        for (int s = 0; s < sequences && kept; s++) {
            int[][] own = Arrays.copyOfRange(drawn.kept()[s], PROMPT, LENGTH);
            List<Integer> ids = new ArrayList<>();
            Arrays.stream(own).flatMapToInt(Arrays::stream).forEach(ids::add);
            rows[s] = new SampledSupport(
                    Arrays.stream(own).mapToInt(row -> row.length).toArray(),
                    ids.stream().mapToInt(Integer::intValue).toArray());
        }
        return new SequenceBatch(drawn.tokens(), firstScored, rows);
    }
}
