package dev.millrace.policy.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.LayerGradient.Activations;
import dev.millrace.policy.decoder.LoraShape;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.decoder.WholeTensor;
import dev.millrace.policy.weights.Dtype;
import dev.millrace.policy.weights.FrozenWeights;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.LoraAdapter;
import dev.millrace.policy.weights.TensorSet;
import dev.millrace.policy.weights.Weights;
import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.FieldSource;

/** Compares decoders whose matrices are split into several tensors with the same decoders unsplit. */
class CutTensorsTest {
    static final List<DecoderShape> SHAPES = Shapes.VARIED;
    /** Cuts every matrix of every shape above, and all of their embeddings and heads but one into more than two. */
    private static final int MOST = 64;

    private static final int[] LENGTHS = {6, 2, 9, 1, 13, 6};
    private static final float[] TEMPERATURES = RaggedBatches.temperatures(3, LENGTHS.length);
    private static final LogitsMemory FOUR_ROWS = new LogitsMemory(1);

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldHoldTheSameNumbersOneBehindTheOther(DecoderShape shape) {
        DecoderShape cut = shape.within(MOST);
        assertThat(cut.tensors()).allMatch(spec -> spec.elementCount() <= MOST);
        assertThat(cut.embedding().isCut()).isTrue();
        Weights whole = RaggedBatches.weights(shape, 1);
        Weights pieces = RaggedBatches.weights(cut, 1);
        for (WholeTensor tensor : cut.wholes()) {
            assertThat(joined(pieces.tensors(), tensor)).isEqualTo(joined(whole.tensors(), uncut(tensor)));
        }
    }

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldScoreBitForBitAlike(DecoderShape shape) {
        SequenceBatch batch = RaggedBatches.random(shape, 2, LENGTHS);
        for (SequenceBatch given : List.of(batch, RaggedBatches.cut(shape, 7, batch))) {
            for (LogitsMemory logits : List.of(LogitsMemory.DEFAULT, FOUR_ROWS)) {
                TokenScores whole = score(shape, given, logits);
                TokenScores cut = score(shape.within(MOST), given, logits);
                assertThat(cut.logProbs()).isEqualTo(whole.logProbs());
                assertThat(cut.entropies()).isEqualTo(whole.entropies());
                assertThat(cut.sumSquaredProbs()).isEqualTo(whole.sumSquaredProbs());
            }
        }
    }

    private static TokenScores score(DecoderShape shape, SequenceBatch batch, LogitsMemory logits) {
        try (ScoringSession session = new ScoringSession(Engine.cpu(), shape, 20, logits)) {
            return session.score(RaggedBatches.weights(shape, 1), batch, TEMPERATURES);
        }
    }

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldTakePromptsInAndSampleBitForBitAlike(DecoderShape shape) {
        for (Precision precision : Precision.values()) {
            assertThat(sampled(shape.within(MOST), new PreparedWeights(precision), Dtype.F32))
                    .as("%s", precision)
                    .isEqualTo(sampled(shape, new PreparedWeights(precision), Dtype.F32));
        }
        assertThat(sampled(shape.within(MOST), new PreparedWeights(Precision.BF16), Dtype.BF16))
                .isEqualTo(sampled(shape, new PreparedWeights(Precision.BF16), Dtype.BF16));
    }

    /** Tokens alike; log-probs to the last bits, since what is packed is multiplied by other kernels, which take narrow matrices another way. */
    @ParameterizedTest
    @EnumSource(Precision.class)
    void shouldSampleAlikeWhereTheWeightsArePacked(Precision precision) {
        float far = precision == Precision.BF16 ? 2e-2f : 2e-6f;
        assertThat(sampled(Shapes.TIED.within(MOST), new PreparedWeights(precision, true), Dtype.F32))
                .containsExactly(sampled(Shapes.TIED, new PreparedWeights(precision, true), Dtype.F32), within(far));
    }

    /** Tokens, then log-probs, of sequences that were taken in from prompts and then sampled. */
    private static float[] sampled(DecoderShape shape, PreparedWeights prepared, Dtype dtype) {
        Weights weights = RaggedBatches.weights(shape, 1).as(dtype);
        int slots = 3;
        int steps = 4;
        int[][] prompts = RaggedBatches.tokens(shape, 5, 7, 12, 3);
        float[] found = new float[2 * slots * steps];
        try (DecodeSession session = new DecodeSession(Engine.cpu(), shape, slots, 24, steps, prepared)) {
            List<KnownTokens> known = new ArrayList<>();
            DecodeInput in = new DecodeInput(slots, steps);
            for (int slot = 0; slot < slots; slot++) {
                session.reset(slot, prompts[slot][0]);
                known.add(new KnownTokens(slot, Arrays.copyOfRange(prompts[slot], 1, prompts[slot].length)));
                in.activate(slot, steps, Sampling.of(1));
                for (int step = 0; step < steps; step++) {
                    in.sample(step, slot, (slot + 0.3f * step) / slots % 1);
                }
            }
            session.prefill(weights, known);
            DecodeSteps done = session.advance(weights, in);
            for (int slot = 0; slot < slots; slot++) {
                for (int step = 0; step < steps; step++) {
                    found[slot * steps + step] = done.token(step, slot);
                    found[(slots + slot) * steps + step] = done.logProb(step, slot);
                }
            }
        }
        return found;
    }

    /** What flows back through a matrix is summed over its pieces, so the last bits of a gradient are others. */
    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldFindTheSameGradient(DecoderShape shape) {
        DecoderShape cut = shape.within(MOST);
        SequenceBatch batch = RaggedBatches.random(shape, 2, LENGTHS);
        for (SequenceBatch given : List.of(batch, RaggedBatches.cut(shape, 7, batch))) {
            for (LogitsMemory logits : List.of(LogitsMemory.DEFAULT, FOUR_ROWS)) {
                TensorSet whole = gradient(Engine.cpu(), shape, given, logits).tensors();
                for (Engine engine : List.of(Engine.cpu(), Engine.cpuAsDevice())) {
                    TensorSet pieces = gradient(engine, cut, given, logits).tensors();
                    for (WholeTensor tensor : cut.wholes()) {
                        float[] expected = joined(whole, uncut(tensor));
                        double norm = 0;
                        for (float each : expected) {
                            norm += (double) each * each;
                        }
                        assertThat(norm).as(tensor.name()).isPositive();
                        assertThat(joined(pieces, tensor)).as(tensor.name()).containsExactly(expected, within((float)
                                (1e-6 * (1 + Math.sqrt(norm)))));
                    }
                }
            }
        }
    }

    private static Gradients gradient(Engine engine, DecoderShape shape, SequenceBatch batch, LogitsMemory logits) {
        Gradients gradients = new Gradients(shape);
        try (GradientSession session = new GradientSession(engine, shape, 20, logits)) {
            session.accumulate(
                    RaggedBatches.weights(shape, 1),
                    new GradientPass.Part(
                            batch,
                            TEMPERATURES,
                            GradientSessionTest.coefficients(4, batch),
                            GradientSessionTest.coefficients(5, batch),
                            GradientSessionTest.coefficients(6, batch)),
                    gradients);
        }
        return gradients;
    }

    @ParameterizedTest
    @FieldSource("dev.millrace.policy.session.GradientNormSessionTest#SHAPES")
    void shouldFindTheNormsOfEachSequencesGradient(DecoderShape shape) {
        DecoderShape cut = shape.within(shape.equals(Shapes.DEFAULT_TASK) ? 600 : MOST);
        int[] lengths = {3, 3, 60, 17};
        SequenceBatch batch = RaggedBatches.random(shape, 5, lengths);
        float[] temperatures = RaggedBatches.temperatures(3, lengths.length);
        double[] expected = norms(shape, batch, temperatures);
        double[] found = norms(cut, batch, temperatures);
        for (int s = 0; s < lengths.length; s++) {
            assertThat(found[s]).isCloseTo(expected[s], within(1e-5 * (expected[s] + 1e-3)));
        }
    }

    private static double[] norms(DecoderShape shape, SequenceBatch batch, float[] temperatures) {
        try (GradientNormSession session = new GradientNormSession(Engine.cpu(), shape, 40)) {
            return session.norms(
                    RaggedBatches.weights(shape, 1), batch, temperatures, GradientSessionTest.coefficients(4, batch));
        }
    }

    /** The projections that get adapters are whole, the embedding and its head are not. */
    @Test
    void shouldFindTheSameGradientOfAnAdapterUponACutEmbedding() {
        DecoderShape shape = new DecoderShape(61, 16, 2, 4, 4, 6, 20, 96, 100, 1e-6, true, false);
        DecoderShape cut = shape.within(400);
        assertThat(cut.wholes().stream().filter(WholeTensor::isCut)).containsExactly(cut.embedding());
        assertThat(cut.embedding().pieces()).hasSize(3);
        LoraShape lora = new LoraShape(2, 3, LoraShape.MODULES);
        SequenceBatch batch = RaggedBatches.random(shape, 2, LENGTHS);
        Gradients whole = adapterGradient(shape, lora, batch);
        Gradients pieces = adapterGradient(cut, lora, batch);
        assertThat(pieces.specs()).isEqualTo(whole.specs());
        for (TensorSpec spec : whole.specs()) {
            assertThat(pieces.values(spec.name()))
                    .as(spec.name())
                    .containsExactly(whole.values(spec.name()), within(1e-6f));
        }
    }

    private static Gradients adapterGradient(DecoderShape shape, LoraShape lora, SequenceBatch batch) {
        Weights base = RaggedBatches.weights(shape, 1).as(Dtype.BF16);
        LoraAdapter adapter = LoraAdapter.initial(lora, new FrozenWeights(base, "hash"), 3);
        for (TensorSpec spec : adapter.parameters().specs()) {
            FloatBuffer values = adapter.parameters().tensor(spec.name());
            while (values.hasRemaining()) {
                values.put(0.25f * (1 + values.position() % 3));
            }
        }
        Weights weights = base.copy().with(adapter);
        weights.merge();
        Gradients gradients = new Gradients(lora.tensors(shape));
        try (GradientSession session = new GradientSession(
                Engine.cpu(),
                shape,
                Optional.of(lora),
                MicrobatchLimit.ofTokens(40),
                FOUR_ROWS,
                Activations.RECOMPUTED)) {
            session.accumulate(
                    weights,
                    batch,
                    TEMPERATURES,
                    GradientSessionTest.coefficients(4, batch),
                    GradientSessionTest.coefficients(5, batch),
                    gradients);
        }
        return gradients;
    }

    @Test
    void shouldKnowThatJoiningLogitsTakesMemory() {
        DecoderShape shape = Shapes.TIED;
        long bytes = 1L << 20;
        assertThat(new LogitsMemory(bytes).scoringRows(shape.within(MOST)))
                .isLessThan(new LogitsMemory(bytes).scoringRows(shape));
        PassMemory whole = PassMemory.of(shape, Optional.empty(), Activations.KEPT, LogitsMemory.DEFAULT);
        PassMemory cut = PassMemory.of(shape.within(MOST), Optional.empty(), Activations.KEPT, LogitsMemory.DEFAULT);
        assertThat(cut.bytes(2, 64)).isGreaterThanOrEqualTo(whole.bytes(2, 64));
    }

    @Test
    void shouldRefuseATokenBehindTheLastPieceAsBehindTheWhole() {
        DecoderShape cut = Shapes.TIED.within(MOST);
        Weights weights = RaggedBatches.weights(cut, 1);
        SequenceBatch beyond = new SequenceBatch(new int[][] {{1, cut.vocabSize(), 2}}, new int[] {2});
        try (ScoringSession session = new ScoringSession(Engine.cpu(), cut, 20)) {
            assertThatThrownBy(() -> session.score(weights, beyond, new float[] {1}))
                    .isInstanceOf(RuntimeException.class)
                    .hasMessageContaining(String.valueOf(cut.vocabSize()));
        }
    }

    private static WholeTensor uncut(WholeTensor tensor) {
        return new WholeTensor(tensor.name(), tensor.dims(), List.of(new TensorSpec(tensor.name(), tensor.dims())));
    }

    private static float[] joined(TensorSet tensors, WholeTensor whole) {
        FloatBuffer joined = FloatBuffer.allocate(Math.toIntExact(whole.elementCount()));
        whole.pieces().forEach(piece -> joined.put(tensors.tensor(piece.name())));
        return joined.array();
    }
}
