package dev.millrace.policy.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.weights.Weights;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.FieldSource;

/** Compares graphs with compiled-in weights to graphs that are fed the weights. */
class PackedWeightsTest {
    static final List<DecoderShape> SHAPES = Shapes.VARIED;
    private static final int SLOTS = 3;
    private static final int LENGTH = 24;
    private static final int PROMPT = 9;

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldDecodeAsIfTheWeightsWereFed(DecoderShape shape) {
        Weights weights = RaggedBatches.weights(shape, 1);
        try (DecodeSession packed = session(shape, packed(Precision.F32));
                DecodeSession fed = session(shape, new PreparedWeights(Precision.F32))) {
            assertThat(decode(packed, weights)).containsExactly(decode(fed, weights), within(2e-6f));
        }
    }

    @ParameterizedTest
    @EnumSource(Precision.class)
    void shouldPackWhatEveryPrecisionReads(Precision precision) {
        Weights weights = RaggedBatches.weights(Shapes.TIED, 1);
        try (DecodeSession packed = session(Shapes.TIED, packed(precision));
                DecodeSession fed = session(Shapes.TIED, new PreparedWeights(precision))) {
            // bfloat16 rounds after every operation, where the last bit of a sum may decide
            float far = precision == Precision.F32 ? 2e-6f : 2e-2f;
            assertThat(decode(packed, weights)).containsExactly(decode(fed, weights), within(far));
        }
    }

    @Test
    void shouldGoFromVersionToVersionAndBackPreparedOrNot() {
        DecoderShape shape = Shapes.TIED;
        List<Weights> versions = new ArrayList<>();
        for (int seed = 0; seed < 5; seed++) {
            versions.add(RaggedBatches.weights(shape, seed));
        }
        PreparedWeights prepared = packed(Precision.F32);
        try (DecodeSession packed = session(shape, prepared);
                DecodeSession fed = session(shape, new PreparedWeights(Precision.F32))) {
            for (int version : new int[] {0, 1, 0, 2, 1, 3, 4, 0}) {
                Weights weights = versions.get(version);
                if (version % 2 == 1) {
                    prepared.prepare(weights);
                    prepared.prepare(versions.get((version + 1) % 5)); // which takes the place of one that has not run
                }
                assertThat(decode(packed, weights))
                        .as("version %d", version)
                        .containsExactly(decode(fed, weights), within(2e-6f));
            }
        }
    }

    @Test
    void shouldReadWeightsThatWereWrittenOnceTheyAreForgotten() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = RaggedBatches.weights(shape, 1);
        PreparedWeights prepared = packed(Precision.F32);
        try (DecodeSession packed = session(shape, prepared)) {
            float[] before = decode(packed, weights);
            weights.copyFrom(RaggedBatches.weights(shape, 2));
            assertThat(decode(packed, weights)).isEqualTo(before); // it has a copy
            prepared.forget();
            try (DecodeSession fed = session(shape, new PreparedWeights(Precision.F32))) {
                assertThat(decode(packed, weights)).containsExactly(decode(fed, weights), within(2e-6f));
            }
        }
    }

    @Test
    void shouldGiveASequenceTheSameBitsInAnyCompany() {
        DecoderShape shape = Shapes.TIED;
        Weights weights = RaggedBatches.weights(shape, 1);
        try (DecodeSession together = session(shape, packed(Precision.F32));
                DecodeSession alone = new DecodeSession(Engine.cpu(), shape, 11, LENGTH, 4, packed(Precision.F32))) {
            assertThat(decode(alone, weights)).isEqualTo(decode(together, weights));
        }
    }

    @Test
    void shouldTakeWeightsThatArePreparedAfterItIsClosed() { // by the thread that loads, which may have begun before
        PreparedWeights prepared = packed(Precision.F32);
        Weights weights = RaggedBatches.weights(Shapes.TIED, 1);
        try (DecodeSession session = session(Shapes.TIED, prepared)) {
            decode(session, weights);
        }
        assertThatCode(() -> prepared.prepare(RaggedBatches.weights(Shapes.TIED, 2)))
                .doesNotThrowAnyException();
    }

    private static PreparedWeights packed(Precision precision) {
        return new PreparedWeights(precision, true);
    }

    private static DecodeSession session(DecoderShape shape, PreparedWeights prepared) {
        return new DecodeSession(Engine.cpu(), shape, SLOTS, LENGTH, 4, prepared);
    }

    /** Log-probs of forced tokens after prefilled prompts, one sequence after the other. */
    private static float[] decode(DecodeSession session, Weights weights) {
        int[] lengths = new int[SLOTS];
        Arrays.fill(lengths, LENGTH);
        int[][] tokens = RaggedBatches.tokens(weights.shape(), 3, lengths);
        List<KnownTokens> prompts = new ArrayList<>();
        for (int slot = 0; slot < SLOTS; slot++) {
            session.reset(slot, tokens[slot][0]);
            prompts.add(new KnownTokens(slot, Arrays.copyOfRange(tokens[slot], 1, PROMPT)));
        }
        session.prefill(weights, prompts);
        float[] logProbs = new float[SLOTS * (LENGTH - PROMPT)];
        DecodeInput in = new DecodeInput(session.slots(), session.tokensPerCall());
        for (int at = PROMPT; at < LENGTH; at += session.tokensPerCall()) {
            in.clear();
            int steps = Math.min(session.tokensPerCall(), LENGTH - at);
            for (int slot = 0; slot < SLOTS; slot++) {
                in.activate(slot, steps, Sampling.of(1));
                for (int step = 0; step < steps; step++) {
                    in.force(step, slot, tokens[slot][at + step]);
                }
            }
            DecodeSteps done = session.advance(weights, in);
            for (int slot = 0; slot < SLOTS; slot++) {
                for (int step = 0; step < steps; step++) {
                    logProbs[slot * (LENGTH - PROMPT) + at - PROMPT + step] = done.temperatureLogProb(step, slot);
                }
            }
        }
        return logProbs;
    }
}
