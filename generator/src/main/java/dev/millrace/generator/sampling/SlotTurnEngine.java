package dev.millrace.generator.sampling;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.generator.environment.text.StopRule;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.PreparedWeights;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.LogProbDistribution;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.schemas.rollout.ComparedDistribution;
import dev.millrace.weights.NewestWeights;
import io.micrometer.core.instrument.MeterRegistry;
import java.time.Clock;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.TopicPartition;

/**
 * Answers from the policy's own engine, one slot per answer in flight, with the newest weights.
 *
 * <p>Its thread advances all answers together and takes up weights in between, by {@code generator.weight_update}.
 * The next turn of a conversation under the same version prefills new tokens only, otherwise the whole prompt; so
 * version spans hold for every token.
 */
public final class SlotTurnEngine implements TurnEngine {
    private static final TopicPartition NOWHERE = new TopicPartition("none", 0);
    private static final long IDLE_WAIT_MS = 20;

    /** One answer under way. */
    private static final class Turn {
        final TurnOrder order;
        final TokenListener listener;
        final CompletableFuture<SampledTurn> answer = new CompletableFuture<>();
        int told;
        long firstTokenAtMs;

        Turn(TurnOrder order, TokenListener listener) {
            this.order = order;
            this.listener = listener;
        }
    }

    private final GeneratorConfig config;
    private final SlotPool batcher;
    private final Tokenizer tokenizer;
    private final int vocabSize;
    private final GeneratorMeters meters;
    private final Clock clock;
    private final EngineIdentity identity;
    private final VersionWait versionWait;
    private final BlockingQueue<Turn> asked = new LinkedBlockingQueue<>();
    private final Deque<Turn> waiting = new ArrayDeque<>();
    private final Map<RunningSequence, Turn> running = new IdentityHashMap<>();
    private final TurnThread thread;
    private final ResidentVersions versions;
    private volatile long version = -1;
    private volatile long older = -1;
    private volatile long oldest = -1;
    private volatile long sampled;
    private long countedForced;
    private long countedCopied;

    /**
     * @param batcher is closed with it
     * @param weights stay the caller's
     * @param tokenizer of the policy's text
     * @throws IllegalArgumentException if weights are to be taken up at the end of groups, which sessions have no end of
     */
    private SlotTurnEngine(
            SlotPool batcher,
            NewestWeights weights,
            int vocabSize,
            Tokenizer tokenizer,
            GeneratorConfig config,
            MeterRegistry meters,
            Clock clock) {
        requireUpdates(config.weightUpdate());
        this.config = config;
        this.tokenizer = tokenizer;
        this.vocabSize = vocabSize;
        this.batcher = batcher;
        this.meters = new GeneratorMeters(meters);
        this.versions = new ResidentVersions(weights, config.weightUpdate(), batcher, this.meters);
        this.clock = clock;
        this.versionWait = new VersionWait(config);
        this.identity = SamplingLoop.identity(config.precision());
        this.thread = new TurnThread("turns-" + config.id(), "the engine", this::round, this::end);
        thread.start();
    }

    /**
     * Makes one whose weights their loader prepares.
     *
     * @param prefixBytes memory of the prefix cache; 0 turns it off
     * @throws IllegalArgumentException as above
     */
    public static Factory factory(
            Engine engine,
            Tokenizer tokenizer,
            GeneratorConfig config,
            long prefixBytes,
            MeterRegistry meters,
            Clock clock) {
        requireUpdates(config.weightUpdate());
        PreparedWeights prepared = config.prepared(engine);
        return new Factory() {
            @Override
            public TurnEngine open(NewestWeights weights, DecoderShape shape) {
                SlotPool slots = new SlotPool(engine, shape, config, prepared);
                if (prefixBytes > 0) {
                    slots.keepPrefixes(prefixBytes);
                }
                return new SlotTurnEngine(slots, weights, shape.vocabSize(), tokenizer, config, meters, clock);
            }

            @Override
            public void prepare(Weights weights) {
                prepared.prepare(weights);
            }
        };
    }

    /**
     * Refuses settings that single answers cannot follow.
     *
     * @throws IllegalArgumentException with the key and the way out
     */
    public static void requireUpdates(WeightUpdate update) {
        if (update == WeightUpdate.GROUP_END) {
            throw new IllegalArgumentException(
                    "weight_update must be in_flight, drain or multi_version with agent sessions, since the end of"
                            + " a group of sessions is unknown: group_end");
        }
    }

    @Override
    public CompletableFuture<SampledTurn> sample(TurnOrder order, TokenListener listener) {
        Turn turn = new Turn(order, listener);
        Optional<String> refusal = order.tooLong(config);
        if (refusal.isPresent()) {
            turn.answer.completeExceptionally(new IllegalArgumentException(refusal.get()));
        } else {
            asked.add(turn);
            if (thread.isOver()) {
                turn.answer.completeExceptionally(thread.over());
            }
        }
        return turn.answer;
    }

    private void round() throws InterruptedException {
        receive();
        takeUpNewestWeights();
        fillSlots();
        advance();
    }

    private void end(IllegalStateException over) {
        List<Turn> left = new ArrayList<>(running.values());
        left.addAll(waiting);
        asked.drainTo(left);
        left.forEach(turn -> turn.answer.completeExceptionally(over));
        batcher.close();
    }

    private void receive() throws InterruptedException {
        boolean nothingElse = batcher.active() == 0;
        if (nothingElse) {
            long from = System.nanoTime();
            Turn first = asked.poll(waiting.isEmpty() ? IDLE_WAIT_MS : 1, TimeUnit.MILLISECONDS);
            if (first != null) {
                waiting.add(first);
            }
            meters.idle(System.nanoTime() - from);
        }
        asked.drainTo(waiting);
        waiting.removeIf(turn -> turn.answer.isDone());
        running.entrySet().removeIf(each -> {
            boolean isGivenUp = each.getValue().answer.isDone();
            if (isGivenUp) {
                batcher.drop(each.getKey());
            }
            return isGivenUp;
        });
    }

    private void takeUpNewestWeights() {
        versions.takeUp(false);
        version = versions.version();
        older = versions.olderVersion().orElse(-1);
    }

    private void fillSlots() {
        while (versions.mayBegin(false)
                && batcher.hasRoom()
                && !waiting.isEmpty()
                && versionWait.mayBegin(waiting.element().order.leastVersion(), version)) {
            Turn turn = waiting.remove();
            RunningSequence sequence = new RunningSequence(prompt(turn.order), 0, vocabSize, clock.millis());
            running.put(sequence, turn);
            versions.begin(sequence);
        }
    }

    private AcceptedPrompt prompt(TurnOrder order) {
        PromptRequest request = PromptRequest.newBuilder()
                .setRunId("")
                .setEpoch(0)
                .setGroupId("turn")
                .setOrdinal(0)
                .setEnvironment("turn")
                .setEnvironmentState("")
                .setPromptTokens(PackedInts.of(order.promptTokens()))
                .setSamples(1)
                .setSampling(order.sampling())
                .setTokenizerHash("")
                .setAdmittedVersion(order.leastVersion())
                .setReleasedAtMs(0)
                .build();
        return new AcceptedPrompt(
                request,
                order.promptTokens(),
                new OneTurn(new StopRule(
                        order.stopTokens().stream().mapToInt(Integer::intValue).toArray(),
                        order.stopTexts(),
                        tokenizer)),
                NOWHERE,
                0);
    }

    private void advance() {
        if (batcher.active() == 0) {
            oldest = -1;
            return;
        }
        List<RunningSequence> finished = new ArrayList<>();
        if (!versions.advance(finished::add, () -> running.forEach(this::tell))) {
            SamplingLoop.awaitEnvironments(); // all there is stands still while it is computed again
        }
        for (RunningSequence sequence : finished) {
            Turn turn = running.remove(sequence);
            if (turn != null) {
                turn.answer.complete(answer(sequence, turn));
            }
        }
        oldest = versions.oldestInFlight().orElse(-1);
        older = versions.olderVersion().orElse(-1);
        meters.tokens(
                batcher.sampledTokens() - sampled,
                batcher.forcedTokens() - countedForced,
                batcher.copiedTokens() - countedCopied);
        sampled = batcher.sampledTokens();
        countedForced = batcher.forcedTokens();
        countedCopied = batcher.copiedTokens();
    }

    private void tell(RunningSequence sequence, Turn turn) {
        int length = sequence.length();
        if (length == turn.told) {
            return;
        }
        if (turn.told == 0) {
            turn.firstTokenAtMs = clock.millis();
        }
        int from = turn.told;
        turn.told = length;
        if (turn.listener == TokenListener.NONE) {
            return;
        }
        turn.listener.sampled(
                Arrays.copyOfRange(sequence.responseTokens(), from, length),
                Arrays.copyOfRange(sequence.logProbs(), from, length));
    }

    private SampledTurn answer(RunningSequence sequence, Turn turn) {
        LogProbDistribution distribution = ComparedDistribution.sampled(turn.order.sampling());
        return new SampledTurn(
                sequence.responseTokens(),
                new SampledTurn.LogProbs(
                        sequence.logProbs(),
                        distribution,
                        distribution == LogProbDistribution.TRUNCATED ? sequence.temperedLogProbs() : new float[0]),
                sequence.spans().toRecords(sequence.length()),
                sequence.trace(),
                sequence.finishReason() == FinishReason.LENGTH ? FinishReason.LENGTH : FinishReason.STOP,
                new SampledTurn.Times(sequence.startedAtMs(), turn.firstTokenAtMs, clock.millis()),
                sequence.reused());
    }

    @Override
    public int capacityTokens() {
        return config.capacityTokens();
    }

    @Override
    public long version() {
        return version;
    }

    @Override
    public OptionalLong olderVersion() {
        long now = older;
        return now < 0 ? OptionalLong.empty() : OptionalLong.of(now);
    }

    @Override
    public OptionalLong oldestVersion() {
        long now = oldest;
        return now < 0 ? OptionalLong.empty() : OptionalLong.of(now);
    }

    @Override
    public long sampledTokens() {
        return sampled;
    }

    @Override
    public EngineIdentity identity() {
        return identity;
    }

    @Override
    public void requireAlive() {
        thread.requireAlive();
    }

    @Override
    public void close() {
        thread.close();
    }

    /** Lets the policy write until its text is over. Its finder judges it. */
    private record OneTurn(StopRule stop) implements Environment, Episode {
        @Override
        public String name() {
            return "turn";
        }

        @Override
        public int endToken() {
            return -1;
        }

        @Override
        public Episode begin(String state) {
            return this;
        }

        @Override
        public StepResult afterToken(Transcript response) {
            return stop.endsAt(response) ? StepResult.END : StepResult.GO_ON;
        }

        @Override
        public VerifiedReward verify(Transcript response) {
            throw new IllegalStateException("a turn is judged by its caller");
        }
    }
}
