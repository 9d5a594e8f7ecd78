package dev.millrace.policy.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.NaiveDecoder;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.weights.Weights;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

class DecodeSessionTest {
    static final List<DecoderShape> SHAPES = Shapes.VARIED;
    private static final Sampling PLAIN = Sampling.of(1);
    /** The plain CPU, and the CPU treated as a device. */
    private static final List<Engine> ENGINES = List.of(Engine.cpu(), Engine.cpuAsDevice());

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldAgreeWithFullSequenceScoringAndTheNaiveTwinOnForcedSequences(DecoderShape shape) {
        ENGINES.forEach(engine -> agree(engine, shape));
    }

    private static void agree(Engine engine, DecoderShape shape) {
        Weights weights = RaggedBatches.weights(shape, 1);
        int[] lengths = {9, 2, 14, 5, 21};
        int[][] tokens = RaggedBatches.tokens(shape, 2, lengths);
        float[] temperatures = RaggedBatches.temperatures(3, lengths.length);
        SequenceBatch batch = new SequenceBatch(tokens, new int[] {1, 1, 1, 1, 1});
        NaiveDecoder twin = new NaiveDecoder(weights);
        try (DecodeSession decode = new DecodeSession(engine, shape, lengths.length, 21, 4);
                ScoringSession scoring = new ScoringSession(Engine.cpu(), shape, 100)) {
            TokenScores scores = scoring.score(weights, batch, temperatures);
            float[][] logProbs = force(decode, weights, tokens, temperatures);
            for (int s = 0; s < lengths.length; s++) {
                double[][] expected = twin.logProbs(tokens[s], temperatures[s]);
                for (int t = 1; t < lengths[s]; t++) {
                    assertThat(logProbs[s][t]).isCloseTo(scores.logProbs()[batch.offset(s) + t - 1], within(2e-6f));
                    assertThat((double) logProbs[s][t]).isCloseTo(expected[t - 1][tokens[s][t]], within(1e-5));
                }
            }
        }
    }

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldReportLogProbsAndEntropiesOfWhatItSampled(DecoderShape shape) {
        ENGINES.forEach(engine -> report(engine, shape));
    }

    private static void report(Engine engine, DecoderShape shape) {
        Weights weights = RaggedBatches.weights(shape, 1);
        int slots = 7;
        SplittableRandom random = new SplittableRandom(5);
        int[][] sampled = new int[slots][13];
        float[][] logProbs = new float[slots][13];
        float[][] entropies = new float[slots][13];
        try (DecodeSession decode = new DecodeSession(engine, shape, slots, 13, 5);
                ScoringSession scoring = new ScoringSession(Engine.cpu(), shape, 100)) {
            DecodeInput in = new DecodeInput(slots, 5);
            for (int slot = 0; slot < slots; slot++) {
                sampled[slot][0] = slot % shape.vocabSize();
                decode.reset(slot, sampled[slot][0]);
            }
            for (int at = 1; at < 13; at += 4) {
                in.clear();
                for (int slot = 0; slot < slots; slot++) {
                    in.activate(slot, 4, Sampling.of(0.7f + 0.1f * slot));
                    for (int step = 0; step < 4; step++) {
                        in.sample(step, slot, (float) (random.nextInt(1 << 24) * 0x1p-24));
                    }
                }
                DecodeSteps done = decode.advance(weights, in);
                for (int slot = 0; slot < slots; slot++) {
                    for (int step = 0; step < 4; step++) {
                        sampled[slot][at + step] = done.token(step, slot);
                        logProbs[slot][at + step] = done.logProb(step, slot);
                        entropies[slot][at + step] = done.entropy(step, slot);
                        assertThat(done.temperatureLogProb(step, slot)).isEqualTo(done.logProb(step, slot));
                    }
                }
            }
            int[] firstScored = new int[slots];
            Arrays.fill(firstScored, 1);
            float[] temperatures = new float[slots];
            IntStream.range(0, slots).forEach(slot -> temperatures[slot] = 0.7f + 0.1f * slot);
            SequenceBatch batch = new SequenceBatch(sampled, firstScored);
            TokenScores scores = scoring.score(weights, batch, temperatures);
            for (int slot = 0; slot < slots; slot++) {
                assertThat(Arrays.copyOfRange(logProbs[slot], 1, 13))
                        .containsExactly(
                                Arrays.copyOfRange(scores.logProbs(), batch.offset(slot), batch.offset(slot + 1)),
                                within(2e-6f));
                assertThat(Arrays.copyOfRange(entropies[slot], 1, 13))
                        .containsExactly(
                                Arrays.copyOfRange(scores.entropies(), batch.offset(slot), batch.offset(slot + 1)),
                                within(2e-6f));
            }
        }
    }

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldResumeAPrefixOfAnotherSessionBitForBit(DecoderShape shape) {
        ENGINES.forEach(engine -> resume(engine, shape));
    }

    private static void resume(Engine engine, DecoderShape shape) {
        Weights weights = RaggedBatches.weights(shape, 1);
        int[] known = {1, 2, 3, 4, 5, 6, 1, 2, 3};
        try (DecodeSession first = new DecodeSession(engine, shape, 2, 21, 2);
                DecodeSession second = new DecodeSession(engine, shape, 2, 21, 2)) {
            first.reset(1, 0);
            first.prefill(weights, List.of(new KnownTokens(1, known)));
            int sampled = drawTwo(first, weights, 1).token(1, 1);
            HeldPrefix held = first.take(1, known.length + 2);
            assertThat(held.tokens()).isEqualTo(11);
            second.reset(0, 3);
            drawTwo(second, weights, 0); // something else was there
            second.resume(0, held, 11, sampled);
            assertThat(second.position(0)).isEqualTo(first.position(1)).isEqualTo(12);
            DecodeSteps there = drawTwo(first, weights, 1);
            DecodeSteps here = drawTwo(second, weights, 0);
            for (int step = 0; step < 2; step++) {
                assertThat(here.token(step, 0)).isEqualTo(there.token(step, 1));
                assertThat(here.logProb(step, 0)).isEqualTo(there.logProb(step, 1));
            }
            second.resume(1, held, 4, known[3]); // as if the prefix had only its first 4 tokens
            assertThat(second.position(1)).isEqualTo(5);
            assertThat(second.prefixBytes(11))
                    .isEqualTo(2L * shape.layers() * shape.kvHeads() * shape.headSize() * 4 * 11);
            assertThatThrownBy(() -> second.resume(0, held, 12, 1))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("12 tokens of a prefix of 11");
            assertThatThrownBy(() -> first.take(1, 14))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("slot 1 holds 14 tokens and not 15");
        }
    }

    private static DecodeSteps drawTwo(DecodeSession session, Weights weights, int slot) {
        DecodeInput in = new DecodeInput(2, 2);
        in.activate(slot, 2, PLAIN);
        in.sample(0, slot, 0.3f);
        in.sample(1, slot, 0.8f);
        return session.advance(weights, in);
    }

    @Test
    void shouldSampleEachTokenAsOftenAsItsProbabilitySays() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = RaggedBatches.weights(shape, 3);
        double[] expected = distribution(weights, new int[] {4, 7}, 1.2);
        int[] counts = sampleOnce(shape, weights, new int[] {4, 7}, Sampling.of(1.2f), 64, 200);
        assertChiSquare(counts, expected);
    }

    @Test
    void shouldSampleOnlyTheLikeliestUnderTopKAndRenormalise() {
        assertTruncated(new Sampling(1.2f, 4, 1f), 4);
    }

    @Test
    void shouldSampleTheFewestTokensThatReachTopPAndRenormalise() {
        Weights weights = RaggedBatches.weights(Shapes.TIED, 3);
        double[] sorted = sortedDown(distribution(weights, new int[] {4, 7}, 1.2));
        int support = 0;
        for (double reached = 0; reached < 0.6; support++) {
            reached += sorted[support];
        }
        assertThat(support).isBetween(2, 9);
        assertTruncated(new Sampling(1.2f, 0, 0.6f), support);
    }

    @Test
    void shouldSampleTheTokensThatAreLikelyBesideTheLikeliestUnderMinPAndRenormalise() {
        Weights weights = RaggedBatches.weights(Shapes.TIED, 3);
        double[] sorted = sortedDown(distribution(weights, new int[] {4, 7}, 1.2));
        float share = (float) ((sorted[5] + sorted[6]) / 2 / sorted[0]);
        assertTruncated(new Sampling(1.2f, 0, 1, share, false, 0), 6);
        assertTruncated(new Sampling(1.2f, 4, 1, share, false, 0), 4);
        assertTruncated(new Sampling(1.2f, 9, 1, share, false, 0), 6);
        assertTruncated(new Sampling(1.2f, 0, (float) (sorted[0] + sorted[1] / 2), share, false, 0), 2);
    }

    @Test
    void shouldApplyTopPToWhatTopKLeft() {
        Weights weights = RaggedBatches.weights(Shapes.TIED, 3);
        double[] sorted = sortedDown(distribution(weights, new int[] {4, 7}, 1.2));
        double five = Arrays.stream(sorted).limit(5).sum();
        int support = 0;
        for (double reached = 0; reached < 0.6; support++) {
            reached += sorted[support] / five;
        }
        assertThat(support).isBetween(2, 4);
        assertTruncated(new Sampling(1.2f, 5, 0.6f), support);
    }

    @Test
    void shouldSayMinusInfinityOfAForcedTokenThatTruncationLeavesOut() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = RaggedBatches.weights(shape, 3);
        double[] expected = distribution(weights, new int[] {4}, 1);
        int[] order = order(expected);
        try (DecodeSession decode = new DecodeSession(Engine.cpu(), shape, 3, 10, 2)) {
            DecodeInput in = new DecodeInput(3, 2);
            int[] forced = {order[0], order[3], order[3]};
            for (int slot = 0; slot < 3; slot++) {
                decode.reset(slot, 4);
                in.activate(slot, 1, slot < 2 ? new Sampling(1, 3, 1) : PLAIN);
                in.force(0, slot, forced[slot]);
            }
            DecodeSteps done = decode.advance(weights, in);
            double three = expected[order[0]] + expected[order[1]] + expected[order[2]];
            assertThat((double) done.logProb(0, 0)).isCloseTo(Math.log(expected[order[0]] / three), within(1e-5));
            assertThat(done.logProb(0, 1)).isEqualTo(Float.NEGATIVE_INFINITY);
            assertThat((double) done.temperatureLogProb(0, 1)).isCloseTo(Math.log(expected[order[3]]), within(1e-5));
            assertThat((double) done.logProb(0, 2))
                    .as("a slot that keeps all, next to ones that truncate")
                    .isCloseTo(Math.log(expected[order[3]]), within(1e-5));
            assertThat(IntStream.range(0, 3).map(slot -> done.token(0, slot)))
                    .containsExactly(forced[0], forced[1], forced[2]);
        }
    }

    @Test
    void shouldTakeTheLikeliestTokenAtTopKOneWhateverTheUniform() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = RaggedBatches.weights(shape, 3);
        int likeliest = order(distribution(weights, new int[] {4}, 1))[0];
        try (DecodeSession decode = new DecodeSession(Engine.cpu(), shape, 3, 10, 1)) {
            DecodeInput in = new DecodeInput(3, 1);
            float[] uniforms = {0, 0.5f, Math.nextDown(1f)};
            for (int slot = 0; slot < 3; slot++) {
                decode.reset(slot, 4);
                in.activate(slot, 1, new Sampling(1, 1, 1));
                in.sample(0, slot, uniforms[slot]);
            }
            DecodeSteps done = decode.advance(weights, in);
            for (int slot = 0; slot < 3; slot++) {
                assertThat(done.token(0, slot)).isEqualTo(likeliest);
                assertThat(done.logProb(0, slot)).isZero();
            }
        }
    }

    @Test
    void shouldChooseTokensFromFirstToLastAsTheUniformGrows() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = RaggedBatches.weights(shape, 3);
        double[] expected = distribution(weights, new int[] {4}, 1);
        try (DecodeSession decode = new DecodeSession(Engine.cpu(), shape, shape.vocabSize() + 2, 10, 1)) {
            DecodeInput in = new DecodeInput(shape.vocabSize() + 2, 1);
            double below = 0;
            for (int slot = 0; slot < shape.vocabSize() + 2; slot++) {
                decode.reset(slot, 4);
                in.activate(slot, 1, PLAIN);
                if (slot < shape.vocabSize()) {
                    in.sample(0, slot, (float) (below + expected[slot] / 2));
                    below += expected[slot];
                }
            }
            in.sample(0, shape.vocabSize(), 0f);
            in.sample(0, shape.vocabSize() + 1, Math.nextDown(1f));
            DecodeSteps done = decode.advance(weights, in);
            assertThat(IntStream.range(0, shape.vocabSize()).map(slot -> done.token(0, slot)))
                    .containsExactly(
                            IntStream.range(0, shape.vocabSize()).boxed().toArray(Integer[]::new));
            assertThat(done.token(0, shape.vocabSize())).isZero();
            assertThat(done.token(0, shape.vocabSize() + 1)).isEqualTo(shape.vocabSize() - 1);
        }
    }

    @Test
    void shouldGoOnWithOldKeysAndValuesWhenTheWeightsChangeInMidSequence() {
        DecoderShape shape = Shapes.GROUPED_UNTIED_BIASED;
        Weights early = RaggedBatches.weights(shape, 1);
        Weights late = RaggedBatches.weights(shape, 2);
        int[][] tokens = RaggedBatches.tokens(shape, 3, 9);
        float[] one = {1};
        try (DecodeSession decode = new DecodeSession(Engine.cpu(), shape, 1, 9, 4)) {
            float[] allEarly = force(decode, early, tokens, one)[0];
            float[] allLate = force(decode, late, tokens, one)[0];
            float[] mixed = new float[9];
            decode.reset(0, tokens[0][0]);
            for (int at = 1; at < 9; at += 4) {
                DecodeInput in = new DecodeInput(1, 4);
                in.activate(0, 4, PLAIN);
                for (int step = 0; step < 4; step++) {
                    in.force(step, 0, tokens[0][at + step]);
                }
                DecodeSteps done = decode.advance(at == 1 ? early : late, in);
                for (int step = 0; step < 4; step++) {
                    mixed[at + step] = done.logProb(step, 0);
                }
            }
            assertThat(Arrays.copyOf(mixed, 5)).containsExactly(Arrays.copyOf(allEarly, 5));
            for (int t = 5; t < 9; t++) {
                assertThat(Math.abs(mixed[t] - allLate[t])).as("position %d", t).isGreaterThan(1e-4f);
                assertThat(Math.abs(mixed[t] - allEarly[t]))
                        .as("position %d", t)
                        .isGreaterThan(1e-4f);
            }
        }
    }

    @Test
    void shouldNotLetSlotsOrIdlenessOrReuseShowInTheNumbers() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = RaggedBatches.weights(shape, 1);
        int[][] tokens = RaggedBatches.tokens(shape, 3, 12, 12, 12);
        float[] one = {1, 1, 1};
        try (DecodeSession decode = new DecodeSession(Engine.cpu(), shape, 3, 12, 3)) {
            float[][] together = force(decode, weights, tokens, one);
            // the slots now hold full sequences; slot 1 restarts and runs alone with other pauses
            decode.reset(1, tokens[1][0]);
            assertThat(decode.position(0)).isEqualTo(12);
            DecodeInput in = new DecodeInput(3, 3);
            for (int at = 1; at < 12; ) {
                int steps = Math.min(1 + at % 3, 12 - at);
                in.clear();
                in.activate(1, steps, PLAIN);
                for (int step = 0; step < steps; step++) {
                    in.force(step, 1, tokens[1][at + step]);
                }
                DecodeSteps done = decode.advance(weights, in);
                for (int step = 0; step < steps; step++) {
                    assertThat(done.logProb(step, 1)).isCloseTo(together[1][at + step], within(2e-6f));
                }
                assertThat(done.steps(0)).isZero();
                at += steps;
                assertThat(decode.position(1)).isEqualTo(at);
                assertThat(decode.position(0)).isEqualTo(12);
            }
            float[][] again = force(decode, weights, tokens, one);
            for (int s = 0; s < 3; s++) {
                assertThat(again[s]).containsExactly(together[s]);
            }
        }
    }

    @Test
    void shouldGoOnFromWhereItWasCutAsIfNothingHadComeAfter() {
        DecoderShape shape = Shapes.GROUPED_UNTIED_BIASED;
        Weights weights = RaggedBatches.weights(shape, 1);
        int[] tokens = RaggedBatches.tokens(shape, 2, 12)[0];
        try (DecodeSession decode = new DecodeSession(Engine.cpu(), shape, 1, 12, 6)) {
            float[] expected = force(decode, weights, new int[][] {tokens}, new float[] {1})[0];
            DecodeInput in = new DecodeInput(1, 6);
            decode.reset(0, tokens[0]);
            in.activate(0, 6, PLAIN);
            for (int step = 0; step < 6; step++) { // three that stay, and three others
                in.force(step, 0, step < 3 ? tokens[step + 1] : (tokens[step + 1] + 1) % shape.vocabSize());
            }
            decode.advance(weights, in);
            decode.cut(0, 4, tokens[3]);
            assertThat(decode.position(0)).isEqualTo(4);
            for (int from = 4; from < 12; from += 4) {
                in.clear();
                in.activate(0, 4, PLAIN);
                for (int step = 0; step < 4; step++) {
                    in.force(step, 0, tokens[from + step]);
                }
                DecodeSteps done = decode.advance(weights, in);
                for (int step = 0; step < 4; step++) {
                    assertThat(done.logProb(step, 0)).isCloseTo(expected[from + step], within(2e-6f));
                }
            }
            assertThatThrownBy(() -> decode.cut(0, 13, 0)).hasMessageContaining("holds 12 tokens and not 13");
            assertThatThrownBy(() -> decode.cut(0, 0, 0)).hasMessageContaining("tokens and not 0");
            assertThatThrownBy(() -> decode.cut(0, 4, 99)).hasMessageContaining("token 99");
        }
    }

    @Test
    void shouldRefuseWhatDoesNotFit() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = Weights.random(shape, 1);
        try (DecodeSession decode = new DecodeSession(Engine.cpu(), shape, 2, 4, 3)) {
            DecodeInput in = new DecodeInput(2, 3);
            assertThatThrownBy(() -> decode.advance(weights, in)).hasMessage("no slot is active in this call");
            in.activate(1, 3, PLAIN);
            assertThatThrownBy(() -> decode.advance(weights, in))
                    .hasMessage("slot 1 has no sequence; reset it with its first token");
            decode.reset(1, 5);
            assertThatThrownBy(() -> decode.advance(weights, in))
                    .hasMessage("step 0 of slot 1 is neither forced nor sampled, of 3 steps");
            in.sample(0, 1, 0.5f);
            in.sample(1, 1, 0.5f);
            in.force(2, 1, 11);
            assertThatThrownBy(() -> decode.advance(weights, in))
                    .hasMessage("forced token 11 at step 2 of slot 1 is outside the vocabulary of 11");
            in.force(2, 1, 10);
            DecodeSteps done = decode.advance(weights, in);
            assertThat(done.token(2, 1)).isEqualTo(10);
            assertThatThrownBy(() -> done.token(0, 0)).hasMessage("slot 0 took 0 steps, there is no step 0");
            assertThatThrownBy(() -> decode.advance(weights, in))
                    .hasMessage("slot 1 holds 4 tokens and cannot take 3 more: capacityTokens=4");
            assertThatThrownBy(() -> decode.reset(0, 11))
                    .hasMessage("token 11 for slot 0 is outside the vocabulary of 11");
            assertThatThrownBy(() -> in.sample(0, 0, 1f))
                    .hasMessageStartingWith("a uniform number must be at least 0 and below 1");
            weights.tensor("model.norm.weight").put(0, Float.NaN);
            decode.reset(1, 5);
            assertThatThrownBy(() -> decode.advance(weights, in))
                    .isInstanceOf(NonFiniteScoreException.class)
                    .hasMessageStartingWith("slot 1, position 1: logProb=NaN");
        }
        assertThatThrownBy(() -> new DecodeSession(Engine.cpu(), shape, 2, 97, 3))
                .hasMessage(
                        "capacityTokens must be at least 2 and at most the model's maxPositions=96: capacityTokens=97");
        assertThatThrownBy(() -> new Sampling(1, 0, 0)).hasMessage("topP must be above 0 and at most 1: topP=0.0");
    }

    /** In the key of a layer: what the broken weights leave in the cache would make every later softmax a NaN. */
    @Test
    void shouldLeaveNothingOfBrokenWeightsBehind() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = RaggedBatches.weights(shape, 3);
        Weights broken = weights.copy();
        broken.tensor("model.layers.0.self_attn.k_proj.weight").put(0, Float.NaN);
        try (DecodeSession decode = new DecodeSession(Engine.cpu(), shape, 9, 12, 3);
                DecodeSession other = new DecodeSession(Engine.cpu(), shape, 9, 12, 3)) {
            for (DecodeSession session : List.of(decode, other)) {
                session.reset(1, 5);
                session.prefill(weights, List.of(new KnownTokens(1, new int[] {4, 3, 2, 1})));
                session.reset(2, 6);
            }
            DecodeInput in = new DecodeInput(9, 3);
            in.activate(2, 3, Sampling.of(1));
            in.sample(0, 2, 0.1f);
            in.sample(1, 2, 0.2f);
            in.sample(2, 2, 0.3f);
            assertThatThrownBy(() -> decode.advance(broken, in)).isInstanceOf(NonFiniteScoreException.class);
            decode.reset(2, 6);
            DecodeSteps again = decode.advance(weights, in);
            DecodeSteps never = other.advance(weights, in);
            in.clear();
            in.activate(1, 2, Sampling.of(1)); // was idle
            in.sample(0, 1, 0.4f);
            in.sample(1, 1, 0.5f);
            DecodeSteps idle = decode.advance(weights, in);
            DecodeSteps idleNever = other.advance(weights, in);
            for (int step = 0; step < 2; step++) {
                assertThat(again.logProb(step, 2)).isEqualTo(never.logProb(step, 2));
                assertThat(idle.logProb(step, 1)).isEqualTo(idleNever.logProb(step, 1));
            }
        }
    }

    private static void assertTruncated(Sampling sampling, int support) {
        DecoderShape shape = Shapes.TIED;
        Weights weights = RaggedBatches.weights(shape, 3);
        double[] all = distribution(weights, new int[] {4, 7}, sampling.temperature());
        int[] order = order(all);
        double kept = Arrays.stream(order)
                .limit(support)
                .mapToDouble(token -> all[token])
                .sum();
        double[] expected = new double[all.length];
        Arrays.stream(order).limit(support).forEach(token -> expected[token] = all[token] / kept);
        assertChiSquare(sampleOnce(shape, weights, new int[] {4, 7}, sampling, 64, 100), expected);
    }

    /** Samples the token after {@code prompt} again and again; checks the reported log-probs on the way. */
    private static int[] sampleOnce(
            DecoderShape shape, Weights weights, int[] prompt, Sampling sampling, int slots, int rounds) {
        double[] all = distribution(weights, prompt, sampling.temperature());
        int[] counts = new int[shape.vocabSize()];
        double[] reported = new double[shape.vocabSize()];
        SplittableRandom random = new SplittableRandom(99);
        try (DecodeSession decode = new DecodeSession(Engine.cpu(), shape, slots, 8, prompt.length)) {
            DecodeInput in = new DecodeInput(slots, prompt.length);
            for (int round = 0; round < rounds; round++) {
                in.clear();
                for (int slot = 0; slot < slots; slot++) {
                    decode.reset(slot, prompt[0]);
                    in.activate(slot, prompt.length, sampling);
                    for (int t = 1; t < prompt.length; t++) {
                        in.force(t - 1, slot, prompt[t]);
                    }
                    in.sample(prompt.length - 1, slot, (float) (random.nextInt(1 << 24) * 0x1p-24));
                }
                DecodeSteps done = decode.advance(weights, in);
                for (int slot = 0; slot < slots; slot++) {
                    int token = done.token(prompt.length - 1, slot);
                    counts[token]++;
                    reported[token] = Math.exp(done.logProb(prompt.length - 1, slot));
                    assertThat((double) done.temperatureLogProb(prompt.length - 1, slot))
                            .isCloseTo(Math.log(all[token]), within(1e-5));
                }
            }
        }
        assertThat(Arrays.stream(reported).sum())
                .as("the reported probabilities of the tokens seen")
                .isCloseTo(1, within(1e-5));
        return counts;
    }

    /**
     * Pearson's statistic against a bound that true frequencies exceed once in about ten thousand seeds: mean + 5
     * deviations.
     */
    private static void assertChiSquare(int[] counts, double[] expected) {
        int total = Arrays.stream(counts).sum();
        double statistic = 0;
        int cells = 0;
        for (int token = 0; token < counts.length; token++) {
            if (expected[token] == 0) {
                assertThat(counts[token])
                        .as("token %d is outside of the support", token)
                        .isZero();
            } else {
                statistic += Math.pow(counts[token] - total * expected[token], 2) / (total * expected[token]);
                cells++;
            }
        }
        int degrees = cells - 1;
        assertThat(statistic).isLessThan(degrees + 5 * Math.sqrt(2.0 * degrees));
    }

    private static double[] distribution(Weights weights, int[] prompt, double temperature) {
        double[][] logProbs = new NaiveDecoder(weights).logProbs(prompt, temperature);
        return Arrays.stream(logProbs[prompt.length - 1]).map(Math::exp).toArray();
    }

    private static int[] order(double[] probs) {
        return IntStream.range(0, probs.length)
                .boxed()
                .sorted((a, b) -> Double.compare(probs[b], probs[a]))
                .mapToInt(Integer::intValue)
                .toArray();
    }

    private static double[] sortedDown(double[] probs) {
        return Arrays.stream(order(probs)).mapToDouble(token -> probs[token]).toArray();
    }

    /** Forces whole sequences through the slots and returns the log-prob of each token, [sequence][position]. */
    private static float[][] force(DecodeSession decode, Weights weights, int[][] tokens, float[] temperatures) {
        float[][] logProbs = Arrays.stream(tokens)
                .map(sequence -> new float[sequence.length])
                .toArray(float[][]::new);
        for (int slot = 0; slot < tokens.length; slot++) {
            decode.reset(slot, tokens[slot][0]);
        }
        DecodeInput in = new DecodeInput(decode.slots(), decode.tokensPerCall());
        while (true) {
            in.clear();
            boolean any = false;
            for (int slot = 0; slot < tokens.length; slot++) {
                int steps = Math.min(decode.tokensPerCall(), tokens[slot].length - decode.position(slot));
                if (steps > 0) {
                    any = true;
                    in.activate(slot, steps, Sampling.of(temperatures[slot]));
                    for (int step = 0; step < steps; step++) {
                        in.force(step, slot, tokens[slot][decode.position(slot) + step]);
                    }
                }
            }
            if (!any) {
                return logProbs;
            }
            DecodeSteps done = decode.advance(weights, in);
            for (int slot = 0; slot < tokens.length; slot++) {
                for (int step = 0; step < done.steps(slot); step++) {
                    logProbs[slot][decode.position(slot) - done.steps(slot) + step] = done.logProb(step, slot);
                }
            }
        }
    }
}
