package dev.millrace.generator.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Prompt;
import dev.millrace.generator.environment.FixedAnswer;
import dev.millrace.generator.environment.Guess;
import dev.millrace.generator.environment.GuessPrompts;
import dev.millrace.generator.environment.IncPrompts;
import dev.millrace.generator.environment.Symbols;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.decoder.Precision;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.WeightPlacement;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PromptRequest;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;

class SlotPoolTest {
    private static final DecoderShape SHAPE = new DecoderShape(16, 32, 2, 4, 2, 8, 48, 64, 100, 1e-6, false, false);

    private final Weights weights = Weights.random(SHAPE, 3);

    /** What a rollout is, to the bit. */
    private record Sampled(List<Integer> tokens, List<Float> logProbs) {}

    @Test
    void shouldSampleTheSameRolloutsWithAnyNumberOfThreads() {
        Map<String, Sampled> one = sample(1, 4);
        assertThat(one).hasSize(36);
        assertThat(one.values().stream().distinct()).hasSizeGreaterThan(20);
        assertThat(sample(2, 4)).isEqualTo(one);
        assertThat(sample(3, 7)).isEqualTo(one);
        assertThat(sample(5, 11)).isEqualTo(one);
    }

    private Map<String, Sampled> sample(int threads, int slots) {
        Deque<RunningSequence> waiting = samples();
        Map<String, Sampled> found = new TreeMap<>();
        try (SlotPool pool = new SlotPool(Engine.cpu(), SHAPE, config(threads, slots))) {
            for (int call = 0; !waiting.isEmpty() || pool.active() > 0; call++) {
                while (pool.hasRoom() && !waiting.isEmpty()) {
                    pool.add(waiting.remove());
                }
                assertThat(pool.active()).isLessThanOrEqualTo(slots);
                pool.advance(weights, 0, sequence -> found.put(sequence.rolloutId(), sampled(sequence)));
                assertThat(call).as("calls").isLessThan(10_000);
            }
        }
        return found;
    }

    private static Sampled sampled(RunningSequence sequence) {
        List<Float> logProbs = new ArrayList<>();
        for (float logProb : sequence.logProbs()) {
            logProbs.add(logProb);
        }
        return new Sampled(Arrays.stream(sequence.responseTokens()).boxed().toList(), logProbs);
    }

    @Test
    void shouldTakeAGroupsPromptInOnceWhereItsSamplesFitBesideEachOther() {
        try (SlotPool pool = new SlotPool(Engine.cpu(), SHAPE, config(2, 8))) {
            Deque<RunningSequence> samples = samples();
            for (int i = 0; i < 8; i++) { // the samples of each prompt are adjacent
                pool.add(samples.remove());
            }
            assertThat(pool.hasRoom()).isFalse();
            pool.advance(weights, 0, sequence -> {});
            assertThat(pool.copiedTokens()).isPositive();
            int left = pool.active();
            pool.revoke(Set.of(new TopicPartition("prompts", 1)));
            assertThat(pool.active()).isEqualTo(left).isPositive();
            pool.revoke(Set.of(new TopicPartition("prompts", 0)));
            assertThat(pool.active()).isZero();
        }
    }

    @Test
    void shouldSayWhatBrokeDownOnAnyOfItsThreads() {
        Weights broken = Weights.random(SHAPE, 3);
        for (int token = 0; token < SHAPE.vocabSize(); token++) {
            broken.tensor(SHAPE.tensors().get(0).name()).put(token * SHAPE.hiddenSize(), Float.NaN);
        }
        try (SlotPool pool = new SlotPool(Engine.cpu(), SHAPE, config(2, 4))) {
            Deque<RunningSequence> samples = samples();
            for (int i = 0; i < 4; i++) {
                pool.add(samples.remove());
            }
            assertThatThrownBy(() -> pool.advance(broken, 0, sequence -> {}))
                    .hasMessageContaining("no softmax survives");
        }
    }

    @Test
    void shouldRefuseMoreThreadsThanSlots() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> config(3, 5))
                .withMessage("threads must be at most half of slots=5, since each needs at least two slots: 3");
    }

    /** Three samples of each of twelve prompts. */
    private static Deque<RunningSequence> samples() {
        Deque<RunningSequence> samples = new ArrayDeque<>();
        for (int ordinal = 0; ordinal < 12; ordinal++) {
            boolean guesses = ordinal % 2 == 1;
            Prompt prompt = guesses
                    ? new GuessPrompts(1, 4).prompt(1, ordinal)
                    : new IncPrompts(2 + ordinal % 3).prompt(1, ordinal);
            Environment environment = guesses ? new Guess() : new FixedAnswer();
            PromptRequest request = Requests.request(
                            ordinal, prompt.tokens(), environment.name(), prompt.environmentState(), 3)
                    .setSampling(Requests.sampling(1, 0, 1, 9))
                    .build();
            AcceptedPrompt accepted = Requests.accepted(request, prompt.tokens(), environment);
            for (int sample = 0; sample < 3; sample++) {
                samples.add(
                        new RunningSequence(accepted, sample, Symbols.names().size(), 0));
            }
        }
        return samples;
    }

    private static GeneratorConfig config(int threads, int slots) {
        return new GeneratorConfig(
                "test",
                slots,
                threads,
                16,
                3,
                3,
                7,
                Precision.F32,
                WeightPlacement.AUTO,
                WeightUpdate.IN_FLIGHT,
                CacheOnSwap.RECOMPUTE,
                25,
                100,
                10,
                100,
                100,
                1000,
                1000);
    }
}
