package dev.millrace.policy.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.within;

import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.DecoderTraits;
import dev.millrace.policy.decoder.Experts;
import dev.millrace.policy.decoder.NaiveDecoder;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.decoder.RopeScaling;
import dev.millrace.policy.decoder.Shapes;
import dev.millrace.policy.decoder.TensorSpec;
import dev.millrace.policy.weights.Gradients;
import dev.millrace.policy.weights.Weights;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class RoutingReplayTest {
    private static final DecoderShape SHAPE = Shapes.EXPERTS;
    private static final int[] LENGTHS = {9, 2, 14, 5, 21, 14};

    private final Weights weights = RaggedBatches.weights(SHAPE, 1);
    private final Weights others = RaggedBatches.weights(SHAPE, 2);
    private final int[][] tokens = RaggedBatches.tokens(SHAPE, 2, LENGTHS);
    private final SequenceBatch batch = new SequenceBatch(tokens, filled(1));

    @Test
    void shouldGiveTheSameBitsWhereItsOwnRoutingIsReplayed() {
        try (ScoringSession session = new ScoringSession(Engine.cpu(), SHAPE, 40)) {
            ScoringSession.Routed own = session.scoreRouted(weights, batch, ones());
            assertThat(own.scores().logProbs())
                    .isEqualTo(session.score(weights, batch, ones()).logProbs());
            ScoringSession.Routed again = session.scoreRouted(weights, batch.routed(own.routing()), ones());
            assertThat(again.scores().logProbs()).isEqualTo(own.scores().logProbs());
            for (int s = 0; s < LENGTHS.length; s++) {
                assertThat(again.routing()[s].ids()).isEqualTo(own.routing()[s].ids());
                assertThat(own.routing()[s].tokens()).isEqualTo(LENGTHS[s] - 1);
            }
        }
    }

    @Test
    void shouldGoThroughTheExpertsThatAreGivenAsTheTwinDoes() {
        try (ScoringSession session = new ScoringSession(Engine.cpu(), SHAPE, 40)) {
            RoutedExperts[] routing = session.scoreRouted(others, batch, ones()).routing();
            Arrays.fill(routing[2].ids(), 0, routing[2].at(3, 0), (byte) -1); // the router's own for three tokens
            routing[3] = null;
            ScoringSession.Routed replayed = session.scoreRouted(weights, batch.routed(routing), ones());
            float[] own = session.score(weights, batch, ones()).logProbs();
            double apart = 0;
            for (int s = 0; s < LENGTHS.length; s++) {
                double[][] expected =
                        new NaiveDecoder(weights).replaying(routing[s]).logProbs(tokens[s], 1);
                for (int t = 1; t < LENGTHS[s]; t++) {
                    int packed = batch.offset(s) + t - 1;
                    assertThat((double) replayed.scores().logProbs()[packed])
                            .as("sequence %d, token %d", s, t)
                            .isCloseTo(expected[t - 1][tokens[s][t]], within(1e-5));
                    apart = Math.max(
                            apart, Math.abs(own[packed] - replayed.scores().logProbs()[packed]));
                }
            }
            assertThat(apart).as("the router would have chosen others").isGreaterThan(0.01);
            assertThat(replayed.routing()[4].ids()).isEqualTo(routing[4].ids());
        }
    }

    @Test
    void shouldDifferentiateThroughTheExpertsThatAreGiven() {
        RoutedExperts[] routing;
        try (ScoringSession session = new ScoringSession(Engine.cpu(), SHAPE, 40)) {
            routing = session.scoreRouted(others, batch, ones()).routing();
        }
        SplittableRandom random = new SplittableRandom(8);
        float[] coefficients = new float[batch.scoredCount()];
        for (int i = 0; i < coefficients.length; i++) {
            coefficients[i] = (float) random.nextDouble(-1, 1);
        }
        Gradients gradients = new Gradients(SHAPE);
        try (GradientSession session = new GradientSession(Engine.cpu(), SHAPE, 40)) {
            session.accumulate(
                    weights, batch.routed(routing), ones(), coefficients, new float[coefficients.length], gradients);
        }
        NaiveDecoder twin = new NaiveDecoder(weights);
        for (TensorSpec spec : SHAPE.tensors()) {
            double[] tensor = twin.tensor(spec.name());
            double[] before = tensor.clone();
            double[] direction = random.doubles(tensor.length, -1, 1).toArray();
            FloatBuffer gradient = gradients.tensor(spec.name());
            double claimed = 0;
            double square = 0;
            for (int i = 0; i < tensor.length; i++) {
                claimed += gradient.get(i) * direction[i];
                square += gradient.get(i) * gradient.get(i);
            }
            double difference = 0;
            for (int sign = -1; sign <= 1; sign += 2) {
                for (int i = 0; i < tensor.length; i++) {
                    tensor[i] = before[i] + sign * 1e-5 * direction[i];
                }
                difference += sign * objective(twin, routing, coefficients);
            }
            System.arraycopy(before, 0, tensor, 0, tensor.length);
            assertThat(claimed).as(spec.name()).isCloseTo(difference / 2e-5, within(1e-4 * (1 + Math.sqrt(square))));
        }
    }

    private double objective(NaiveDecoder twin, RoutedExperts[] routing, float[] coefficients) {
        double sum = 0;
        for (int s = 0; s < LENGTHS.length; s++) {
            double[][] logProbs = twin.replaying(routing[s]).logProbs(tokens[s], 1);
            for (int t = 1; t < LENGTHS[s]; t++) {
                sum += coefficients[batch.offset(s) + t - 1] * logProbs[t - 1][tokens[s][t]];
            }
        }
        return sum;
    }

    @Test
    void shouldNoteWhatWasFedWhetherTakenInOrDecodedOrCopied() {
        try (ScoringSession scoring = new ScoringSession(Engine.cpu(), SHAPE, 40);
                DecodeSession decode = new DecodeSession(Engine.cpu(), SHAPE, 3, 40, 4)) {
            int[] sequence = tokens[4];
            decode.reset(0, sequence[0]);
            decode.prefill(weights, List.of(new KnownTokens(0, Arrays.copyOfRange(sequence, 1, 9))));
            decode.copy(0, 2, 9, sequence[8]);
            DecodeInput in = new DecodeInput(3, 4);
            for (int at = 9; at < 21; at += 4) {
                in.clear();
                for (int slot = 0; slot < 3; slot += 2) {
                    in.activate(slot, 4, Sampling.of(1));
                    for (int step = 0; step < 4; step++) {
                        in.force(step, slot, sequence[at + step]);
                    }
                }
                decode.advance(weights, in);
            }
            RoutedExperts expected = scoring.scoreRouted(weights, batch, ones()).routing()[4];
            for (int slot = 0; slot < 3; slot += 2) {
                RoutedExperts noted = decode.routing(slot, 21).orElseThrow();
                assertThat(noted.tokens()).isEqualTo(20);
                for (int t = 0; t < 20; t++) {
                    for (int layer = 0; layer < 2; layer++) {
                        // nothing is computed of the last layer where tokens are taken in: the ninth was decoded
                        assertThat(noted.isNoted(t, layer)).isEqualTo(layer == 0 || t >= 8);
                        for (int i = 0; i < 3 && noted.isNoted(t, layer); i++) {
                            int at = noted.at(t, layer) + i;
                            assertThat(noted.ids()[at]).isEqualTo(expected.ids()[at]);
                            assertThat(noted.weights()[at]).isCloseTo(expected.weights()[at], within(1e-5f));
                        }
                    }
                }
            }
        }
    }

    @Test
    void shouldBeNearerToAnEngineOfAnotherPrecisionWhereItsRoutingIsReplayed() {
        DecoderShape many = new DecoderShape(11, 32, 2, 4, 2, 8, 20, 96, 100, 1e-6, false, false)
                .with(new DecoderTraits(
                        new RopeScaling.None(), false, false, true, 0, 0, new Experts(12, 2, 16, true)));
        Weights ofMany = RaggedBatches.weights(many, 1);
        int[][] sequences = RaggedBatches.tokens(many, 5, new int[] {40, 40, 40, 40});
        SequenceBatch scored = new SequenceBatch(sequences, new int[] {1, 1, 1, 1});
        float[] temperatures = {1, 1, 1, 1};
        try (ScoringSession scoring = new ScoringSession(Engine.cpu(), many, 200);
                DecodeSession decode =
                        new DecodeSession(Engine.cpu(), many, 4, 40, 39, new PreparedWeights(Precision.INT8))) {
            DecodeInput in = new DecodeInput(4, 39);
            for (int s = 0; s < 4; s++) {
                decode.reset(s, sequences[s][0]);
                in.activate(s, 39, Sampling.of(1));
                for (int t = 1; t < 40; t++) {
                    in.force(t - 1, s, sequences[s][t]);
                }
            }
            DecodeSteps done = decode.advance(ofMany, in);
            float[] decoded = new float[scored.scoredCount()];
            RoutedExperts[] routing = new RoutedExperts[4];
            for (int s = 0; s < 4; s++) {
                for (int t = 1; t < 40; t++) {
                    decoded[scored.offset(s) + t - 1] = done.logProb(t - 1, s);
                }
                routing[s] = decode.routing(s, 40).orElseThrow();
            }
            double own =
                    apart(decoded, scoring.score(ofMany, scored, temperatures).logProbs());
            double replayed = apart(
                    decoded,
                    scoring.score(ofMany, scored.routed(routing), temperatures).logProbs());
            assertThat(replayed).isPositive().isLessThan(own);
        }
    }

    /** Root of the mean square. */
    private static double apart(float[] one, float[] other) {
        double squares = 0;
        for (int i = 0; i < one.length; i++) {
            squares += (double) (one[i] - other[i]) * (one[i] - other[i]);
        }
        return Math.sqrt(squares / one.length);
    }

    @Test
    void shouldRefuseWhatIsNoRoutingOfTheModel() {
        try (ScoringSession session = new ScoringSession(Engine.cpu(), SHAPE, 40);
                ScoringSession dense = new ScoringSession(Engine.cpu(), Shapes.TIED, 40)) {
            RoutedExperts[] routing =
                    session.scoreRouted(weights, batch, ones()).routing();
            routing[1].ids()[1] = routing[1].ids()[0];
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> session.score(weights, batch.routed(routing), ones()))
                    .withMessageContaining("sequence 1: token 0, layer 0 went through experts")
                    .withMessageContaining("which are not 3 different ones of 4");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> dense.score(RaggedBatches.weights(Shapes.TIED, 1), batch.routed(routing), ones()))
                    .withMessageContaining("sequence 0 has routed experts, and the model has none");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> dense.scoreRouted(RaggedBatches.weights(Shapes.TIED, 1), batch, ones()))
                    .withMessageContaining("the model has no experts");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> new RoutedExperts(2, 2, new byte[6], new float[6]))
                    .withMessageContaining("layers=2, perToken=2, ids=6");
        }
    }

    private static int[] filled(int value) {
        int[] values = new int[LENGTHS.length];
        Arrays.fill(values, value);
        return values;
    }

    private static float[] ones() {
        float[] ones = new float[LENGTHS.length];
        Arrays.fill(ones, 1f);
        return ones;
    }
}
