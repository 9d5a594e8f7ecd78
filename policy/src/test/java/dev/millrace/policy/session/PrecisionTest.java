package dev.millrace.policy.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.NaiveDecoder;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.Weights;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** Engines that generate in less than float32. */
class PrecisionTest {
    static final List<DecoderShape> SHAPES = Shapes.VARIED;
    private static final int LENGTH = 12;
    private static final int TAKEN_IN = 5;

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldRoundToBfloat16WhereTheTwinDoes(DecoderShape shape) {
        assertAgreesWithTwin(shape, Precision.BF16);
    }

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldMultiplyIntegersAsTheTwinDoes(DecoderShape shape) {
        assertAgreesWithTwin(shape, Precision.INT8);
    }

    private static void assertAgreesWithTwin(DecoderShape shape, Precision precision) {
        Weights weights = RaggedBatches.weights(shape, 1);
        int[] tokens = RaggedBatches.tokens(shape, 2, new int[] {LENGTH})[0];
        double[][] expected = new NaiveDecoder(weights, precision).logProbs(tokens, 1);
        double[][] exact = new NaiveDecoder(weights).logProbs(tokens, 1);
        float[] found = logProbs(shape, weights, precision, tokens);
        double fromTwin = 0;
        double fromExact = 0;
        for (int t = TAKEN_IN; t < LENGTH; t++) {
            fromTwin = Math.max(fromTwin, Math.abs(found[t] - expected[t - 1][tokens[t]]));
            fromExact = Math.max(fromExact, Math.abs(found[t] - exact[t - 1][tokens[t]]));
        }
        // a sum that float32 and double round to different neighbours moves a log-prob by far less than the precision
        // does
        assertThat(fromTwin).as("compared with a twin of the same precision").isLessThan(0.1 * fromExact);
        assertThat(fromExact).as("compared with a twin in double precision").isBetween(1e-4, 0.5);
    }

    /** The first tokens are taken in at once, the others forced one by one. */
    private static float[] logProbs(DecoderShape shape, Weights weights, Precision precision, int[] tokens) {
        float[] logProbs = new float[tokens.length];
        try (DecodeSession session =
                new DecodeSession(Engine.cpu(), shape, 2, LENGTH, 1, new PreparedWeights(precision))) {
            session.reset(1, tokens[0]);
            session.prefill(weights, List.of(new KnownTokens(1, Arrays.copyOfRange(tokens, 1, TAKEN_IN))));
            for (int t = TAKEN_IN; t < tokens.length; t++) {
                DecodeInput in = new DecodeInput(2, 1);
                in.activate(1, 1, Sampling.of(1));
                in.force(0, 1, tokens[t]);
                logProbs[t] = session.advance(weights, in).logProb(0, 1);
            }
        }
        return logProbs;
    }

    @Test
    void shouldReadWeightsOfBfloat16AsTheyAre() {
        DecoderShape shape = Shapes.TIED;
        Weights whole = RaggedBatches.weights(shape, 1);
        int[] tokens = RaggedBatches.tokens(shape, 2, new int[] {LENGTH})[0];
        assertThat(logProbs(shape, whole.as(Dtype.BF16), Precision.BF16, tokens))
                .containsExactly(logProbs(shape, whole, Precision.BF16, tokens), within(0f));
    }

    @Test
    void shouldTakeUpOtherWeightsAndComeBack() {
        DecoderShape shape = Shapes.TIED;
        Weights one = RaggedBatches.weights(shape, 1);
        Weights other = RaggedBatches.weights(shape, 2);
        PreparedWeights prepared = new PreparedWeights(Precision.INT8);
        prepared.prepare(one);
        prepared.prepare(other);
        try (DecodeSession session = new DecodeSession(Engine.cpu(), shape, 1, LENGTH, 1, prepared)) {
            float[] found = new float[3];
            Weights[] order = {one, other, one};
            for (int i = 0; i < order.length; i++) {
                session.reset(0, 1);
                DecodeInput in = new DecodeInput(1, 1);
                in.activate(0, 1, Sampling.of(1));
                in.force(0, 0, 2);
                found[i] = session.advance(order[i], in).logProb(0, 0);
            }
            assertThat(found[2]).isEqualTo(found[0]).isNotEqualTo(found[1]);
        }
    }
}
