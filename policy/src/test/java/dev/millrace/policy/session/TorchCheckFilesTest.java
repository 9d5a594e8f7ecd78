package dev.millrace.policy.session;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/**
 * Leaves weights, a batch, our scores and our gradients under {@code target/torch-check}, for
 * {@code src/test/python/torch_check.py} to compare with PyTorch's autograd where PyTorch is installed.
 */
class TorchCheckFilesTest {
    static final List<DecoderShape> SHAPES = List.of(
            Shapes.TIED,
            Shapes.GROUPED_UNTIED_BIASED,
            Shapes.ONE_KEY_HEAD,
            Shapes.DEFAULT_TASK,
            new DecoderShape(300, 128, 4, 8, 2, 16, 352, 256, 10_000, 1e-6, true, true));

    @ParameterizedTest
    @FieldSource("SHAPES")
    void shouldLeaveGradientsThatReadBackBitForBit(DecoderShape shape) throws IOException {
        Weights weights = RaggedBatches.weights(shape, 1);
        SequenceBatch batch = RaggedBatches.random(shape, 2, 12, 30, 2, 47, 12);
        float[] temperatures = RaggedBatches.temperatures(3, batch.sequenceCount());
        float[] c = new float[batch.scoredCount()];
        float[] e = new float[batch.scoredCount()];
        SplittableRandom random = new SplittableRandom(4);
        for (int i = 0; i < c.length; i++) {
            c[i] = (float) random.nextDouble(-1, 1);
            e[i] = (float) random.nextDouble(-1, 1);
        }
        Gradients gradients = new Gradients(shape);
        TokenScores scores;
        try (GradientSession session = new GradientSession(Engine.cpu(), shape, 100)) {
            scores = session.accumulate(weights, batch, temperatures, c, e, gradients);
        }
        Weights asWeights = Weights.zeros(shape);
        for (TensorSpec spec : shape.tensors()) {
            asWeights.tensor(spec.name()).put(gradients.values(spec.name()));
        }
        Path directory =
                Path.of("target", "torch-check", shape.vocabSize() + "x" + shape.hiddenSize() + "x" + shape.layers());
        new CheckpointDirectory(directory).save(weights);
        new CheckpointDirectory(directory.resolve("gradients")).save(asWeights);
        Map<String, Object> sequences = new LinkedHashMap<>();
        sequences.put(
                "tokens",
                IntStream.range(0, batch.sequenceCount())
                        .mapToObj(s -> RaggedBatches.sequence(batch, s))
                        .toList());
        sequences.put(
                "first_scored",
                IntStream.range(0, batch.sequenceCount())
                        .map(batch::firstScored)
                        .toArray());
        sequences.put("temperatures", temperatures);
        sequences.put("log_prob_coefficients", c);
        sequences.put("entropy_coefficients", e);
        sequences.put("log_probs", scores.logProbs());
        sequences.put("entropies", scores.entropies());
        sequences.put("sum_squared_probs", scores.sumSquaredProbs());
        new ObjectMapper().writeValue(directory.resolve("batch.json").toFile(), sequences);

        Weights back = new CheckpointDirectory(directory.resolve("gradients")).load();
        for (TensorSpec spec : shape.tensors()) {
            float[] read = new float[spec.elementCount()];
            back.tensor(spec.name()).get(read);
            assertThat(Arrays.equals(read, gradients.values(spec.name())))
                    .as(spec.name())
                    .isTrue();
        }
    }
}
