package dev.millrace.gateway.engine;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Transcript;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.gateway.HttpDefaults;
import dev.millrace.gateway.engine.EngineConfig.EngineLogProbs;
import dev.millrace.generator.environment.Environments;
import dev.millrace.generator.sampling.GeneratorConfig;
import dev.millrace.generator.sampling.RolloutSampler;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.packed.PackedInts;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Clock;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * A double of an external engine's documented API over Millrace's own engine, so samples and log-probs are real. It
 * refuses fields that it does not know and calls that come in the wrong order, and notes both.
 */
public abstract class EngineDouble implements AutoCloseable {
    static final ObjectMapper JSON = new ObjectMapper();

    /** Current fault. */
    public enum Fault {
        NONE,
        /** Dies when weights are loaded: closes connections, and is not {@link #startAgain started again}. */
        DIES_IN_UPDATE,
        /** It takes the label of new weights and keeps the old ones. */
        KEEPS_WEIGHTS,
        /** Reports a wrong version. */
        SAYS_ANOTHER_VERSION,
        /** All log-probs are 0. */
        ZERO_LOG_PROBS,
        /** Log-probs are vLLM's stand-in for minus infinity. */
        CLAMPED_LOG_PROB,
        /** Log-probs are of other tokens than those that it gives. */
        OTHER_TOKENS,
        /** One log-prob too few. */
        LACKS_A_LOG_PROB,
        /** It has another prompt than it was given. */
        REWRITES_PROMPTS,
        /** Ends answers without a result, as if out of memory. */
        GIVES_UP,
        /** Reports no versions. */
        NAMES_NO_VERSIONS
    }

    /** A call that is refused. */
    static final class RefusedException extends RuntimeException {
        private static final long serialVersionUID = 1;
        final int status;

        RefusedException(int status, String message) {
            super(message);
            this.status = status;
        }
    }

    /** Sampled tokens, each with its version. */
    record Sampled(int[] tokens, float[] logProbs, List<String> labels, boolean isCutOff) {}

    private final HttpServer server;
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final RealEngine real;
    private final Weights base;
    private final EngineLogProbs logProbs;
    private final List<String> violations = new ArrayList<>();
    private final Set<String> salts = new TreeSet<>();
    private volatile Fault fault = Fault.NONE;
    private volatile boolean isDown;
    private long life;
    private Weights weights;
    private String label;
    private boolean isPaused;
    private int running;
    private int holdAt = Integer.MAX_VALUE;
    private int mostTokens;
    private int updates;

    /**
     * @param base weights that it is started with
     * @param logProbs that it gives
     */
    EngineDouble(Weights base, EngineLogProbs logProbs) {
        this.base = base;
        this.weights = base;
        this.label = firstLabel();
        this.logProbs = logProbs;
        this.real = RealEngine.BY_SHAPE.computeIfAbsent(base.shape(), RealEngine::new);
        try {
            HttpDefaults.apply(); // the first server of a process decides for all
            this.server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        server.setExecutor(threads);
        server.createContext("/", this::handle);
        server.start();
    }

    /** Where it answers. */
    public String url() {
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    public void fault(Fault next) {
        fault = next;
    }

    Fault fault() {
        return fault;
    }

    /** Holds answers at this many tokens until weights change. */
    public synchronized void holdAt(int tokens) {
        holdAt = tokens;
        notifyAll();
    }

    /** Waits until an answer in flight has this many tokens. */
    public synchronized void awaitTokens(int tokens) throws InterruptedException {
        while (mostTokens < tokens) {
            wait(10_000);
        }
    }

    /** Waits until weights were taken up so often. */
    public synchronized void awaitUpdates(int count) throws InterruptedException {
        while (updates < count) {
            wait(10_000);
        }
    }

    /** As a supervisor does: with the weights and the label of its start. */
    public synchronized void startAgain() {
        life++;
        weights = base;
        label = firstLabel();
        isPaused = false;
        isDown = false;
        notifyAll();
    }

    /** Dies: closes connections and aborts work in progress. */
    public synchronized void die() {
        isDown = true;
        life++;
        notifyAll();
    }

    /** Calls that were made wrongly. */
    public synchronized List<String> violations() {
        return List.copyOf(violations);
    }

    /** Separates the answers' keys and values. */
    public synchronized Set<String> salts() {
        return Set.copyOf(salts);
    }

    public synchronized int updates() {
        return updates;
    }

    abstract String firstLabel();

    /** Answers a call; null for an empty answer. */
    abstract ObjectNode answer(String method, String path, Map<String, String> query, JsonNode body);

    private void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            if (isDown) {
                return; // cut
            }
            int status = 200;
            byte[] answer;
            try {
                byte[] body = exchange.getRequestBody().readAllBytes();
                ObjectNode said = answer(
                        exchange.getRequestMethod(),
                        exchange.getRequestURI().getPath(),
                        query(exchange.getRequestURI().getQuery()),
                        body.length == 0 ? JSON.createObjectNode() : JSON.readTree(body));
                answer = said == null ? new byte[0] : JSON.writeValueAsBytes(said);
            } catch (RefusedException e) {
                status = e.status;
                answer = JSON.writeValueAsBytes(JSON.createObjectNode().put("error", e.getMessage()));
            }
            if (isDown) {
                return;
            }
            exchange.getResponseHeaders().set("Content-Type", "application/json");
            exchange.sendResponseHeaders(status, answer.length == 0 ? -1 : answer.length);
            if (answer.length > 0) {
                exchange.getResponseBody().write(answer);
            }
        }
    }

    private static Map<String, String> query(String text) {
        Map<String, String> query = new HashMap<>();
        if (text != null) {
            for (String each : text.split("&")) {
                query.put(each.substring(0, each.indexOf('=')), each.substring(each.indexOf('=') + 1));
            }
        }
        return query;
    }

    RefusedException violation(int status, String sentence) {
        synchronized (this) {
            violations.add(sentence);
        }
        return new RefusedException(status, sentence);
    }

    /** All fields must be known, and these must be there. */
    void require(JsonNode body, Set<String> known, String... needed) {
        for (Iterator<String> names = body.fieldNames(); names.hasNext(); ) {
            String name = names.next();
            if (!known.contains(name)) {
                throw violation(400, "unknown field " + name);
            }
        }
        for (String name : needed) {
            if (body.path(name).isMissingNode()) {
                throw violation(400, "missing field " + name);
            }
        }
    }

    /** A value that must be given, since a model's generation_config.json would decide otherwise. */
    void requireNeutral(JsonNode parameters, Map<String, Double> neutral) {
        neutral.forEach((name, value) -> {
            if (!parameters.path(name).isNumber() || parameters.get(name).doubleValue() != value) {
                throw violation(400, name + " is not " + value + ": " + parameters.path(name));
            }
        });
    }

    synchronized void pause(boolean waits) {
        isPaused = true;
        while (waits && running > 0) {
            await();
        }
        notifyAll();
    }

    synchronized void resume() {
        if (!isPaused) {
            throw violation(409, "resumed without a pause");
        }
        isPaused = false;
        notifyAll();
    }

    synchronized void requirePaused(String what) {
        if (!isPaused) {
            throw violation(409, what + " without a pause");
        }
    }

    synchronized int running() {
        return running;
    }

    /** Loads the weights in the folder. */
    void load(String path) {
        requirePaused("loaded");
        if (fault == Fault.DIES_IN_UPDATE) {
            fault = Fault.NONE;
            die();
            throw new RefusedException(500, "dead");
        }
        Weights read;
        try {
            if (!Path.of(path).isAbsolute()) {
                throw violation(400, "a relative path: " + path);
            }
            read = new CheckpointDirectory(Path.of(path)).load();
        } catch (IOException e) {
            throw new RefusedException(500, String.valueOf(e.getMessage()));
        }
        synchronized (this) {
            if (fault != Fault.KEEPS_WEIGHTS) {
                weights = read;
            }
        }
    }

    synchronized void label(String next) {
        label = fault == Fault.SAYS_ANOTHER_VERSION ? "41" : next;
        updates++;
        notifyAll();
    }

    synchronized String label() {
        return label;
    }

    synchronized void salted(String salt) {
        salts.add(salt);
        if (!salt.equals("millrace-" + label)) {
            violations.add("keys and values of " + salt + " are used under version " + label);
        }
    }

    private void await() {
        try {
            wait(20_000);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new RefusedException(503, "closed");
        }
    }

    /** Samples token for token, each with the weights that are there at that moment. */
    Sampled sample(int[] prompt, double temperature, int most, long seed, Set<Integer> stops) {
        int[] all = Arrays.copyOf(prompt, prompt.length + most);
        float[] given = new float[most];
        List<String> labels = new ArrayList<>();
        int length = 0;
        long mine;
        synchronized (this) {
            mine = life;
            while (isPaused && life == mine) {
                await();
            }
            running++;
        }
        try {
            while (length < most) {
                Weights now;
                synchronized (this) {
                    int before = updates;
                    mostTokens = length;
                    notifyAll();
                    while (life == mine && (isPaused || length >= holdAt && updates == before)) {
                        await();
                    }
                    if (length >= holdAt) {
                        holdAt = Integer.MAX_VALUE;
                    }
                    if (life != mine) {
                        throw new RefusedException(500, "dead");
                    }
                    now = weights;
                    labels.add(label);
                    all[prompt.length + length] =
                            real.token(now, Arrays.copyOf(all, prompt.length + length), temperature, seed + length);
                }
                length++;
                given[length - 1] = switch (fault) {
                    case ZERO_LOG_PROBS -> 0;
                    case CLAMPED_LOG_PROB -> -9999f;
                    default ->
                        real.logProb(
                                now, Arrays.copyOf(all, prompt.length + length), logProbs.temperature(temperature));
                };
                if (stops.contains(all[prompt.length + length - 1])) {
                    return sampled(prompt, all, given, labels, length, false);
                }
            }
            return sampled(prompt, all, given, labels, length, true);
        } finally {
            synchronized (this) {
                running--;
                notifyAll();
            }
        }
    }

    private static Sampled sampled(
            int[] prompt, int[] all, float[] given, List<String> labels, int length, boolean isCutOff) {
        return new Sampled(
                Arrays.copyOfRange(all, prompt.length, prompt.length + length),
                Arrays.copyOf(given, length),
                labels,
                isCutOff);
    }

    /** As both engines name the versions of an answer's tokens. */
    static void spans(List<String> labels, ArrayNode into) {
        int from = 0;
        for (int i = 1; i <= labels.size(); i++) {
            if (i == labels.size() || !labels.get(i).equals(labels.get(from))) {
                into.addObject()
                        .put("version", labels.get(from))
                        .put("start", from)
                        .put("end", i);
                from = i;
            }
        }
    }

    static int[] ints(JsonNode list) {
        int[] ints = new int[list.size()];
        for (int i = 0; i < ints.length; i++) {
            ints[i] = list.get(i).intValue();
        }
        return ints;
    }

    static Set<Integer> stops(JsonNode list) {
        Set<Integer> stops = new TreeSet<>();
        list.forEach(each -> stops.add(each.intValue()));
        return stops;
    }

    @Override
    public void close() {
        die();
        server.stop(0);
        threads.shutdownNow();
    }

    /** Engine shared by doubles of one shape: compiling its graphs takes longer than a test. */
    private static final class RealEngine {
        static final Map<DecoderShape, RealEngine> BY_SHAPE = new ConcurrentHashMap<>();

        private final RolloutSampler sampler;
        private final ScoringSession scoring;

        RealEngine(DecoderShape shape) {
            this.sampler = new RolloutSampler(
                    Engine.cpu(),
                    shape,
                    new Environments(List.of(new OneToken())),
                    GeneratorConfig.defaults().withSlots(1, shape.maxPositions(), 1),
                    Clock.systemUTC());
            this.scoring = new ScoringSession(Engine.cpu(), shape, 1_000);
        }

        synchronized int token(Weights now, int[] before, double temperature, long seed) {
            Rollout rollout = sampler.sample(
                            List.of(PromptRequest.newBuilder()
                                    .setRunId("double")
                                    .setEpoch(0)
                                    .setGroupId("g")
                                    .setOrdinal(0)
                                    .setEnvironment("one-token")
                                    .setEnvironmentState("")
                                    .setPromptTokens(PackedInts.of(before))
                                    .setSamples(1)
                                    .setSampling(
                                            new SamplingParameters(temperature, 0, 1.0, 1, seed, false, 0, 0.0, false))
                                    .setTokenizerHash("")
                                    .setAdmittedVersion(0)
                                    .setReleasedAtMs(0)
                                    .build()),
                            now,
                            0)
                    .get(0);
            return PackedInts.get(rollout.getResponseTokens(), 0);
        }

        float logProb(Weights now, int[] all, double temperature) {
            return scoring.score(now, new SequenceBatch(new int[][] {all}, new int[] {all.length - 1}), new float[] {
                        (float) temperature
                    })
                    .logProbs()[0];
        }
    }

    private record OneToken() implements Environment, Episode {
        @Override
        public String name() {
            return "one-token";
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
            return StepResult.GO_ON;
        }

        @Override
        public VerifiedReward verify(Transcript response) {
            return new VerifiedReward(0, Map.of());
        }
    }
}
