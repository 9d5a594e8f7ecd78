package dev.millrace.generator.sampling;

import dev.millrace.generator.environment.Environments;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedInts;
import java.time.Clock;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.IdentityHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.LongFunction;
import java.util.function.ToLongFunction;
import java.util.stream.IntStream;
import org.apache.kafka.common.TopicPartition;

/**
 * Samples given requests with given weights, without a log: the slots, the environments and the records of a
 * {@link Generator}, for callers that choose the version of each request.
 *
 * <p>Every token of a rollout belongs to the requested version. The same requests, weights and engine give the same rollouts,
 * independent of earlier calls. Not thread-safe: one owner.
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
    public RolloutSampler(
            Engine engine, DecoderShape shape, Environments environments, GeneratorConfig config, Clock clock) {
        this.environments = environments;
        this.config = config;
        this.vocabSize = shape.vocabSize();
        this.clock = clock;
        this.slots = new SlotPool(engine, shape, config);
        this.records = new RolloutRecords(config.id());
    }

    /**
     * Returns all samples of all requests, in the requests' order, then by sample index.
     *
     * @param weights of {@code version}; read, and not kept
     * @throws IllegalArgumentException if a request does not fit a slot or names an unknown environment
     * @throws dev.millrace.policy.session.NonFiniteScoreException if the weights are broken; the sampler is then to be closed
     */
    public List<Rollout> sample(List<PromptRequest> requests, Weights weights, long version) {
        return sample(
                requests.stream()
                        .flatMap(request -> IntStream.range(0, request.getSamples())
                                .mapToObj(index ->
                                        new VersionedSample(request, index, List.of(new VersionSpan(version, 0, 1)))))
                        .toList(),
                any -> weights);
    }

    /**
     * Samples one rollout per sample, in order, every token by the version that the sample names for its position.
     *
     * <p>Reproduces a generator that changed weights between two calls, unless it kept a prompt's cache over a swap.
     * A rollout whose environment or reward failed is {@code FAILED} and has the error.
     *
     * @param weights of a version; read, and not kept
     * @throws IllegalArgumentException as above
     * @throws dev.millrace.policy.session.NonFiniteScoreException as above
     */
    public List<Rollout> sample(List<VersionedSample> samples, LongFunction<Weights> weights) {
        slots.forgetVersions();
        Deque<RunningSequence> waiting = new ArrayDeque<>();
        Map<RunningSequence, Integer> places = new IdentityHashMap<>();
        Map<PromptRequest, AcceptedPrompt> prompts = new IdentityHashMap<>();
        for (VersionedSample sample : samples) {
            RunningSequence sequence = new RunningSequence(
                    prompts.computeIfAbsent(sample.request(), this::accepted),
                    sample.index(),
                    vocabSize,
                    clock.millis());
            places.put(sequence, places.size());
            waiting.add(sequence);
        }
        RunningSequence[] finished = new RunningSequence[samples.size()];
        Set<RunningSequence> sampling = new LinkedHashSet<>();
        ToLongFunction<RunningSequence> next = sequence ->
                samples.get(Objects.requireNonNull(places.get(sequence))).versionAt(sequence.length());
        while (!waiting.isEmpty() || slots.active() > 0) {
            while (slots.hasRoom() && !waiting.isEmpty()) {
                sampling.add(waiting.peek());
                slots.add(waiting.remove());
            }
            long version = oldest(sampling, next);
            boolean advanced = slots.advance(
                    weights.apply(version), version, sequence -> next.applyAsLong(sequence) == version, sequence -> {
                        sampling.remove(sequence);
                        sequence.judge();
                        finished[Objects.requireNonNull(places.get(sequence))] = sequence;
                    });
            if (!advanced) {
                SamplingLoop.awaitEnvironments();
            }
        }
        return Arrays.stream(finished)
                .map(sequence -> records.of(sequence, clock.millis()))
                .toList();
    }

    /** The oldest version that samples one of them now; where all wait for their environments, any of theirs. */
    private static long oldest(Set<RunningSequence> sampling, ToLongFunction<RunningSequence> next) {
        return sampling.stream()
                .filter(sequence -> !sequence.waits())
                .mapToLong(next)
                .min()
                .orElseGet(() -> sampling.stream().mapToLong(next).min().orElseThrow());
    }

    private AcceptedPrompt accepted(PromptRequest request) {
        int[] tokens = PackedInts.toArray(request.getPromptTokens());
        long needed = (long) tokens.length + request.getSampling().getMaxTokens();
        if (needed > config.capacityTokens()) {
            throw new IllegalArgumentException("a prompt of " + tokens.length + " tokens and max_tokens="
                    + request.getSampling().getMaxTokens() + " need " + needed + " positions, a slot has "
                    + config.capacityTokens() + " (capacity_tokens)");
        }
        return new AcceptedPrompt(request, tokens, environments.playing(request), NOWHERE, 0);
    }

    @Override
    public void close() {
        slots.close();
    }
}
