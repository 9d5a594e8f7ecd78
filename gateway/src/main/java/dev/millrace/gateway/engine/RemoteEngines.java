package dev.millrace.gateway.engine;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.gateway.engine.EngineApi.EngineAnswer;
import dev.millrace.gateway.engine.EngineApi.EngineCall;
import dev.millrace.gateway.engine.EngineApi.LabelSpan;
import dev.millrace.gateway.engine.EngineApi.WeightChange;
import dev.millrace.gateway.engine.RemoteEngines.EngineWeights.EngineMeters;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.SampledTurn;
import dev.millrace.generator.sampling.TurnEngine;
import dev.millrace.generator.sampling.TurnOrder;
import dev.millrace.generator.sampling.TurnThread;
import dev.millrace.generator.sampling.VersionWait;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.FinishReason;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.rollout.ComparedDistribution;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.weights.NewestWeights;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.nio.file.Path;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Opens another program's engine as a configuration names it. */
public final class RemoteEngines {
    private RemoteEngines() {}

    /**
     * @param checkpoint config and tokenizer for written versions; empty for none
     * @throws IllegalArgumentException if the configuration is unsupported, or names a missing key
     */
    public static TurnEngine.Factory factory(
            EngineConfig config,
            GeneratorConfig generator,
            RunIdentity run,
            String checkpoint,
            Engine own,
            MeterRegistry meters,
            Clock clock) {
        config.require(generator);
        EngineHttp http = new EngineHttp(config.url(), key(config, System.getenv()));
        return (weights, shape) -> {
            EngineMeters counts = new EngineMeters(meters);
            EngineWeights followed = new EngineWeights(
                    api(config, http, config.change(generator)),
                    http,
                    config,
                    config.change(generator),
                    new VersionDirectories(
                            config, run.runId() + "-e" + run.epoch() + "-" + generator.id() + "-v", checkpoint),
                    new PolicyProbe(own, shape, config, generator.capacityTokens()),
                    counts);
            return new RemoteTurnEngine(
                    followed, generator, () -> version(weights.current()), shape.vocabSize(), counts, clock);
        };
    }

    private static EngineWeights.Version version(NewestWeights.Loaded loaded) {
        return new EngineWeights.Version(
                loaded.version(), loaded.manifest().getWeights().getSha256(), loaded.weights());
    }

    static EngineApi api(EngineConfig config, EngineHttp http, WeightChange change) {
        return switch (config.kind()) {
            case VLLM -> new VllmApi(http, config, change);
            case SGLANG -> new SglangApi(http, config);
            case OWN -> throw new IllegalArgumentException("kind must be vllm or sglang: own");
        };
    }

    static @Nullable String key(EngineConfig config, Map<String, String> environment) {
        if (config.keyVariable().isEmpty()) {
            return null;
        }
        String key = environment.getOrDefault(config.keyVariable(), "");
        if (key.isEmpty()) {
            throw new IllegalArgumentException("engine.key_variable is " + config.keyVariable()
                    + ", and there is no such variable of the environment, or it is empty; set it before the start");
        }
        return key;
    }

    /**
     * Samples with an external engine that follows the run's versions.
     *
     * <p>Its thread connects, loads each newest version, probes log-probs and hands over orders. If the engine
     * disconnects, its orders fail, and it gets its weights again before the next.
     */
    static final class RemoteTurnEngine implements TurnEngine {
        private static final Logger LOG = LoggerFactory.getLogger(RemoteTurnEngine.class);
        private static final long POLL_MS = 10;
        private static final long RETRY_MS = 500;
        /** Consecutive impossible answers from which on the engine is at fault. */
        private static final int MOST_UNTRUE = 10;

        private static final class Turn {
            final TurnOrder order;
            final TokenListener listener;
            final CompletableFuture<SampledTurn> answer = new CompletableFuture<>();
            long version;
            long update;
            long startedAtMs;

            @Nullable
            CompletableFuture<JsonNode> asked;

            Turn(TurnOrder order, TokenListener listener) {
                this.order = order;
                this.listener = listener;
            }
        }

        private record Arrival(
                Turn turn,
                @Nullable JsonNode answer,
                @Nullable Throwable failure) {}

        private final EngineApi api;
        private final EngineHttp http;
        private final EngineConfig config;
        private final GeneratorConfig generator;
        private final WeightChange change;
        private final Supplier<EngineWeights.Version> newest;
        private final EngineWeights weights;
        private final int vocabSize;
        private final EngineMeters meters;
        private final Clock clock;
        private final VersionWait versionWait;
        private final BlockingQueue<Turn> ordered = new LinkedBlockingQueue<>();
        private final BlockingQueue<Arrival> arrived = new LinkedBlockingQueue<>();
        private final Deque<Turn> waiting = new ArrayDeque<>();
        private final Set<Turn> running = new LinkedHashSet<>();
        private final TurnThread thread;
        private int untrueInARow;
        private long awaySinceNanos = -1;
        private long tryAgainAtNanos;
        private volatile long oldest = -1;
        private final AtomicLong sampled = new AtomicLong();

        /** @param weights of the engine that it samples with; closed with it */
        RemoteTurnEngine(
                EngineWeights weights,
                GeneratorConfig generator,
                Supplier<EngineWeights.Version> newest,
                int vocabSize,
                EngineMeters meters,
                Clock clock) {
            this.weights = weights;
            this.api = weights.api;
            this.http = weights.http;
            this.config = weights.config;
            this.change = weights.change;
            this.generator = generator;
            this.newest = newest;
            this.vocabSize = vocabSize;
            this.meters = meters;
            this.clock = clock;
            this.versionWait = new VersionWait(generator);
            this.thread =
                    new TurnThread("engine-" + generator.id(), "the engine " + config.name(), this::round, this::end);
            thread.start();
        }

        @Override
        public CompletableFuture<SampledTurn> sample(TurnOrder order, TokenListener listener) {
            Turn turn = new Turn(order, listener);
            Optional<String> refusal = order.tooLong(generator).or(() -> refusal(order.sampling()));
            if (refusal.isPresent()) {
                turn.answer.completeExceptionally(new IllegalArgumentException(refusal.get()));
            } else {
                ordered.add(turn);
                if (thread.isOver()) {
                    turn.answer.completeExceptionally(thread.over());
                }
            }
            return turn.answer;
        }

        private void round() throws InterruptedException {
            receive();
            keepUp();
            hand();
        }

        private void end(IllegalStateException over) {
            List<Turn> left = new ArrayList<>(running);
            left.addAll(waiting);
            ordered.drainTo(left);
            left.forEach(RemoteTurnEngine::giveUp);
            left.forEach(turn -> turn.answer.completeExceptionally(over));
            weights.close();
        }

        private static void giveUp(Turn turn) {
            if (turn.asked != null) {
                turn.asked.cancel(true);
            }
        }

        private void receive() throws InterruptedException {
            List<Arrival> came = new ArrayList<>();
            Arrival first = arrived.poll(POLL_MS, TimeUnit.MILLISECONDS);
            if (first != null) {
                came.add(first);
            }
            arrived.drainTo(came);
            ordered.drainTo(waiting);
            waiting.removeIf(turn -> turn.answer.isDone());
            running.removeIf(turn -> {
                boolean isGivenUp = turn.answer.isDone();
                if (isGivenUp) {
                    giveUp(turn);
                }
                return isGivenUp;
            });
            if (!came.isEmpty()) {
                settle(came);
            }
            oldest = running.stream().mapToLong(turn -> turn.version).min().orElse(-1);
        }

        /** Answers without a version need the label once all are complete. */
        private void settle(List<Arrival> came) {
            @Nullable String labelNow = null;
            for (Arrival each : came) {
                if (!running.remove(each.turn())) {
                    continue; // given up
                }
                if (each.failure() != null) {
                    failed(each.turn(), each.failure());
                    continue;
                }
                try {
                    EngineAnswer answer = api.read(Objects.requireNonNull(each.answer()), each.turn().order);
                    requireKnown(answer.tokens());
                    if (answer.spans().isEmpty() && answer.label() == null && labelNow == null) {
                        labelNow = api.label();
                    }
                    List<VersionSpan> spans = weights.spans(answer, each.turn().version, each.turn().update, labelNow);
                    untrueInARow = 0;
                    finish(each.turn(), answer, spans);
                } catch (EngineException e) {
                    failed(each.turn(), e);
                }
            }
        }

        private void requireKnown(int[] tokens) {
            for (int token : tokens) {
                if (token >= vocabSize) {
                    throw EngineException.untrue("the engine sampled token " + token + ", which is not among the "
                            + vocabSize + " of the vocabulary");
                }
            }
        }

        private void finish(Turn turn, EngineAnswer answer, List<VersionSpan> spans) {
            long now = clock.millis();
            sampled.addAndGet(answer.tokens().length);
            meters.answered(answer.tokens().length);
            if (turn.listener != TokenListener.NONE) {
                turn.listener.sampled(answer.tokens(), answer.logProbs());
            }
            turn.answer.complete(new SampledTurn(
                    answer.tokens(),
                    new SampledTurn.LogProbs(
                            answer.logProbs(), ComparedDistribution.sampled(turn.order.sampling()), new float[0]),
                    spans,
                    null,
                    answer.isCutOff() ? FinishReason.LENGTH : FinishReason.STOP, // its tokens come all at once
                    new SampledTurn.Times(turn.startedAtMs, now, now),
                    answer.cachedTokens()));
        }

        private void failed(Turn turn, Throwable problem) {
            Throwable cause =
                    problem instanceof CompletionException && problem.getCause() != null ? problem.getCause() : problem;
            meters.failed(cause instanceof EngineException known ? known.kind().name() : "OTHER");
            turn.answer.completeExceptionally(cause);
            if (!(cause instanceof EngineException engine)) {
                throw new IllegalStateException("an answer could not be read", cause);
            }
            switch (engine.kind()) {
                case AWAY -> {
                    weights.lose(); // a reconnected engine may have restarted
                    awayWith(engine);
                }
                case UNTRUE -> {
                    LOG.warn("an answer of the engine is not trained on: {}", engine.getMessage());
                    if (++untrueInARow == MOST_UNTRUE) {
                        throw EngineException.unfit(
                                MOST_UNTRUE + " consecutive answers are invalid; the last: " + engine.getMessage());
                    }
                }
                case FAILED -> LOG.warn("the engine did not answer: {}", engine.getMessage());
                case UNFIT -> throw engine;
            }
        }

        private void awayWith(EngineException problem) {
            long now = System.nanoTime();
            if (awaySinceNanos < 0) {
                awaySinceNanos = now;
                LOG.warn(
                        "waits for the engine, up to {} s (engine.start_ms): {}",
                        config.startMs() / 1000,
                        problem.getMessage());
            }
            if (now - awaySinceNanos > Duration.ofMillis(config.startMs()).toNanos()) {
                throw problem;
            }
            tryAgainAtNanos = now + Duration.ofMillis(RETRY_MS).toNanos();
        }

        private void keepUp() {
            EngineWeights.Version wanted = newest.get();
            if (weights.isServing(wanted) && !weights.isLost()
                    || System.nanoTime() - tryAgainAtNanos < 0 && awaySinceNanos >= 0) {
                return;
            }
            if (change == WeightChange.DRAINED && !weights.isLost() && !running.isEmpty()) {
                return; // until they are finished none is begun
            }
            try {
                weights.update(wanted);
                awaySinceNanos = -1;
            } catch (EngineException e) {
                weights.lose(); // a partial update has an unknown state: answers in progress may be of any version
                List<Turn> underWay = List.copyOf(running);
                running.clear();
                underWay.forEach(RemoteTurnEngine::giveUp);
                underWay.forEach(turn -> turn.answer.completeExceptionally(e));
                if (e.kind() == EngineException.Kind.UNFIT || e.kind() == EngineException.Kind.UNTRUE) {
                    throw e;
                }
                meters.updateFailed();
                awayWith(e);
            }
        }

        private void hand() {
            boolean isNewerDue = change == WeightChange.DRAINED && weights.isOtherThan(newest.get());
            while (!weights.isLost()
                    && !isNewerDue
                    && running.size() < generator.slots()
                    && !waiting.isEmpty()
                    && versionWait.mayBegin(waiting.element().order.leastVersion(), weights.version())) {
                Turn turn = waiting.remove();
                turn.version = weights.version();
                turn.update = weights.updates();
                turn.startedAtMs = clock.millis();
                EngineCall call = api.call(turn.order, Long.toString(turn.version));
                running.add(turn);
                CompletableFuture<JsonNode> asked =
                        http.ask(call.path(), call.body(), Duration.ofMillis(config.answerMs()));
                turn.asked = asked;
                asked.whenComplete((answer, problem) -> arrived.add(new Arrival(turn, answer, problem)));
            }
        }

        @Override
        public Optional<String> refusal(SamplingParameters sampling) {
            return config.refusal(sampling);
        }

        @Override
        public boolean isSeeded() {
            return api.isSeeded();
        }

        @Override
        public int capacityTokens() {
            return generator.capacityTokens();
        }

        @Override
        public long version() {
            return weights.version();
        }

        @Override
        public OptionalLong oldestVersion() {
            long now = oldest;
            return now < 0 ? OptionalLong.empty() : OptionalLong.of(now);
        }

        @Override
        public long sampledTokens() {
            return sampled.get();
        }

        @Override
        public EngineIdentity identity() {
            return weights.identity();
        }

        @Override
        public void requireAlive() {
            thread.requireAlive();
        }

        @Override
        public void close() {
            thread.close();
        }
    }

    /**
     * Keeps an external engine on the run's versions, and maps its labels to versions of tokens. Owned by one thread,
     * unless noted.
     */
    static final class EngineWeights implements AutoCloseable {
        private static final Logger LOG = LoggerFactory.getLogger(EngineWeights.class);

        /** @param sha256 of the weights: a truncated log may reuse a number */
        record Version(long number, String sha256, Weights weights) {
            boolean isSame(Version other) {
                return number == other.number && sha256.equals(other.sha256);
            }
        }

        private final EngineApi api;
        private final EngineHttp http;
        private final EngineConfig config;
        private final WeightChange change;
        private final VersionDirectories directories;
        private final PolicyProbe probe;
        private final EngineMeters meters;
        private final Map<String, Long> loaded = new HashMap<>();
        private @Nullable Version serving;
        private boolean isLost = true;
        private long updates;
        private volatile EngineIdentity identity;
        private volatile long version = -1;

        /** @param probe closed with this */
        EngineWeights(
                EngineApi api,
                EngineHttp http,
                EngineConfig config,
                WeightChange change,
                VersionDirectories directories,
                PolicyProbe probe,
                EngineMeters meters) {
            this.api = api;
            this.http = http;
            this.config = config;
            this.change = change;
            this.directories = directories;
            this.probe = probe;
            this.meters = meters;
            this.identity = new EngineIdentity(
                    config.name(), "not known yet", config.dtype().torchName(), null);
        }

        /** From any thread. */
        EngineIdentity identity() {
            return identity;
        }

        /** Loaded last, -1 before the first; from any thread. */
        long version() {
            return version;
        }

        boolean isServing(Version wanted) {
            return serving != null && wanted.isSame(serving);
        }

        boolean isOtherThan(Version wanted) {
            return serving != null && !wanted.isSame(serving);
        }

        boolean isLost() {
            return isLost;
        }

        /** The engine may have restarted, or have a partial update. */
        void lose() {
            isLost = true;
        }

        long updates() {
            return updates;
        }

        void update(Version wanted) {
            long begun = System.nanoTime();
            if (isLost) {
                identity = api.identity();
                loaded.clear(); // earlier labels no longer describe its weights
            }
            Path directory = directories.write(wanted.number(), wanted.weights());
            String label = Long.toString(wanted.number());
            api.pause(change);
            updates++;
            api.load(directories.seen(directory), label, change);
            loaded.put(label, wanted.number());
            api.resume();
            String said = api.label();
            if (!said.equals(label)) {
                throw EngineException.failed(
                        "the engine was given version " + label + " and says it has '" + said + "'");
            }
            look(wanted, label);
            directories.removeOld();
            isLost = false;
            serving = wanted;
            version = wanted.number();
            meters.updated(version, System.nanoTime() - begun);
            LOG.info(
                    "{} {} at {} loaded version {}",
                    identity.getName(),
                    identity.getVersion(),
                    config.url(),
                    wanted.number());
        }

        private void look(Version wanted, String label) {
            if (!probe.isWanted()) {
                return;
            }
            PolicyProbe.Finding found =
                    probe.require(wanted.weights(), wanted.number(), order -> askedNow(order, label));
            if (change != WeightChange.DRAINED
                    && found.answers().stream()
                            .anyMatch(answer -> answer.spans().isEmpty())) {
                throw EngineException.unfit(
                        "generator.weight_update is in_flight, and the engine's answers do not say which version"
                                + " sampled which token (weight_versions); set generator.weight_update=drain, or"
                                + " use an engine version that does");
            }
        }

        private EngineAnswer askedNow(TurnOrder order, String label) {
            EngineCall call = api.call(order, label);
            return api.read(http.post(call.path(), call.body(), Duration.ofMillis(config.answerMs())), order);
        }

        /**
         * Versions of an answer's tokens.
         *
         * @param begun version at its start
         * @param update {@link #updates} then
         * @param labelNow the engine's label now, if the answer has none
         * @throws EngineException if it cannot be determined
         */
        List<VersionSpan> spans(EngineAnswer answer, long begun, long update, @Nullable String labelNow) {
            if (!answer.spans().isEmpty()) {
                List<VersionSpan> spans = new ArrayList<>();
                for (LabelSpan span : answer.spans()) {
                    spans.add(new VersionSpan(versionOf(span.label()), span.start(), span.end()));
                }
                return spans;
            }
            long said = versionOf(answer.label() != null ? answer.label() : String.valueOf(labelNow));
            if (update != updates || said != begun) {
                throw EngineException.failed("version " + begun + " was loaded when an answer started and " + said
                        + " when it ended, and the engine does not name the version of each token; the"
                        + " answer is not trained on");
            }
            return List.of(new VersionSpan(said, 0, answer.tokens().length));
        }

        private long versionOf(String label) {
            Long known = loaded.get(label);
            if (known == null) {
                isLost = true;
                throw EngineException.failed(
                        "the engine says that its weights are of version '" + label + "', and loaded were "
                                + loaded.keySet() + "; it was restarted, or another process updates it");
            }
            return known;
        }

        @Override
        public void close() {
            probe.close();
        }

        static final class EngineMeters {
            private final MeterRegistry registry;
            private final Counter tokens;
            private final Counter answers;
            private final Counter updates;
            private final Counter updateSeconds;
            private volatile long servedVersion = -1;

            EngineMeters(MeterRegistry registry) {
                this.registry = registry;
                this.tokens = Counter.builder("millrace.generator.tokens")
                        .description("tokens sampled")
                        .register(registry);
                this.answers = Counter.builder("millrace.engine.answers")
                        .description("accepted answers of another engine")
                        .register(registry);
                this.updates = Counter.builder("millrace.engine.updates")
                        .description("versions loaded by another engine")
                        .register(registry);
                this.updateSeconds = Counter.builder("millrace.engine.update.seconds")
                        .description("from writing a version to the end of its check")
                        .register(registry);
                if (registry.find("millrace.policy.version")
                                .tag("role", "generator")
                                .gauge()
                        == null) { // a gateway has none
                    Gauge.builder("millrace.policy.version", this, m -> m.servedVersion)
                            .tag("role", "generator")
                            .register(registry);
                }
            }

            void answered(int sampled) {
                tokens.increment(sampled);
                answers.increment();
            }

            void failed(String kind) {
                registry.counter("millrace.engine.lost.answers", "reason", kind.toLowerCase(Locale.ROOT))
                        .increment();
            }

            void updated(long version, long nanos) {
                servedVersion = version;
                updates.increment();
                updateSeconds.increment(nanos / 1e9);
            }

            void updateFailed() {
                registry.counter("millrace.engine.failed.updates").increment();
            }
        }
    }
}
