package dev.millrace.generator.sampling;

import dev.millrace.generator.environment.Environments;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.packed.PackedInts;
import java.time.Clock;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;

/**
 * Samples given requests with given weights, without a log: the slots, the environments and the records of a
 * {@link Generator}, for whoever decides by himself which version samples what.
 *
 * <p>Every token of a rollout is of the one version it was asked for with. The same requests, weights and engine give the
 * same rollouts, whatever was sampled before. Not thread-safe: one owner.
 */
public final class RolloutSampler implements AutoCloseable {
    private static final TopicPartition NOWHERE = new TopicPartition("none", 0);

    private final Environments environments;
    private final GeneratorConfig config;
    private final int vocabSize;
    private final Clock clock;
    private final SlotPool slots;
    private final RolloutRecords records;

    /** @param config slots, capacity and tokens per call; the rest of it is about the log */
    public RolloutSampler(Engine engine, DecoderShape shape, Environments environments, GeneratorConfig config, Clock clock) {
        this.environments = environments;
        this.config = config;
        this.vocabSize = shape.vocabSize();
        this.clock = clock;
        this.slots = new SlotPool(engine, shape, config);
        this.records = new RolloutRecords(config.id());
    }

    /**
     * All samples of all requests, in the requests' order and within one by sample index.
     *
     * @param weights of {@code version}; read, and not kept
     * @throws IllegalArgumentException if a request does not fit a slot or names an unknown environment
     * @throws dev.millrace.policy.session.NonFiniteScoreException if the weights are broken; the sampler is then to be closed
     */
    public List<Rollout> sample(List<PromptRequest> requests, Weights weights, long version) {
        Deque<InFlight> waiting = new ArrayDeque<>();
        List<String> order = new ArrayList<>();
        for (PromptRequest request : requests) {
            AcceptedPrompt prompt = accepted(request);
            for (int sample = 0; sample < request.getSamples(); sample++) {
                InFlight sequence = new InFlight(prompt, sample, vocabSize, clock.millis());
                waiting.add(sequence);
                order.add(sequence.rolloutId());
            }
        }
        Map<String, Rollout> finished = new HashMap<>();
        while (!waiting.isEmpty() || slots.active() > 0) {
            while (slots.hasRoom() && !waiting.isEmpty()) {
                slots.add(waiting.remove());
            }
            boolean advanced = slots.advance(weights, version,
                    sequence -> finished.put(sequence.rolloutId(), records.of(sequence, clock.millis())));
            if (!advanced) {
                SamplingLoop.awaitEnvironments();
            }
        }
        return order.stream().map(finished::get).toList();
    }

    private AcceptedPrompt accepted(PromptRequest request) {
        int[] tokens = PackedInts.toArray(request.getPromptTokens());
        long needed = (long) tokens.length + request.getSampling().getMaxTokens();
        if (needed > config.capacityTokens()) {
            throw new IllegalArgumentException("a prompt of " + tokens.length + " tokens and max_tokens="
                    + request.getSampling().getMaxTokens() + " need " + needed + " positions, a slot has "
                    + config.capacityTokens() + " (capacity_tokens)");
        }
        return new AcceptedPrompt(request, tokens, environments.named(request.getEnvironment()), NOWHERE, 0);
    }

    @Override
    public void close() {
        slots.close();
    }
}
