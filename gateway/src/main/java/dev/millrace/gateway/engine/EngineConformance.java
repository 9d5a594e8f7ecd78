package dev.millrace.gateway.engine;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.gateway.engine.EngineApi.EngineAnswer;
import dev.millrace.gateway.engine.EngineApi.EngineCall;
import dev.millrace.gateway.engine.EngineApi.LabelSpan;
import dev.millrace.gateway.engine.EngineApi.WeightChange;
import dev.millrace.generator.sampling.TurnOrder;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.SamplingParameters;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;

/**
 * Checks a running engine against the adapter's requirements, without run or Kafka: writes a model and a changed copy,
 * loads both, and compares answers with Millrace's engine. Loads the named model at the end.
 */
public final class EngineConformance {
    private static final String FINAL_NORM = "model.norm.weight";
    private static final int[] PROMPT = {1, 2, 3, 4};
    private static final long UNDER_WAY_MS = 50;

    public enum Outcome {
        PASSED,
        FAILED,
        /** Not checkable, or irrelevant for this engine. */
        LEFT_OUT
    }

    public record Check(String name, Outcome outcome, String sentence) {}

    private interface Look {
        String at();
    }

    private final EngineConfig config;
    private final Weights weights;
    private final Engine own;
    private final int longestTokens;
    private final String model;
    private final EngineHttp http;
    private final Consumer<Check> told;
    private boolean allPassed = true;

    /**
     * @param model Hugging Face directory that the engine runs
     * @param longestTokens of the mid-answer update check: long enough for an update in between
     * @param told receives each finished check
     * @throws IllegalArgumentException if the configuration names a missing key
     */
    public EngineConformance(
            EngineConfig config, String model, Weights weights, Engine own, int longestTokens, Consumer<Check> told) {
        this.config = config;
        this.model = model;
        this.weights = weights;
        this.own = own;
        this.longestTokens = longestTokens;
        this.told = told;
        this.http = new EngineHttp(config.url(), RemoteEngines.key(config, System.getenv()));
    }

    /** @return whether none failed */
    public boolean run() {
        EngineApi api = RemoteEngines.api(config, http, WeightChange.DRAINED);
        if (!check("reports its identity and the version of its weights", () -> identity(api))) {
            return false;
        }
        VersionDirectories directories = new VersionDirectories(config, "conformance-v", model);
        Weights changed = changed(weights);
        try (PolicyProbe probe = new PolicyProbe(own, weights.shape(), config, longestTokens)) {
            if (!check(
                    "loads a version under its number",
                    () -> load(api, directories, 1, weights, WeightChange.DRAINED))) {
                return false;
            }
            check(
                    "its log-probs are " + config.logProbs().name().toLowerCase(Locale.ROOT) + " ones of these weights",
                    () -> probed(probe, api, weights, 1));
            check("answers with the requested number of tokens", () -> length(api));
            check("ends with a stop token and returns it", () -> stop(api));
            check("samples by the seed", () -> seed(api));
            if (check("loads the next version", () -> load(api, directories, 2, changed, WeightChange.DRAINED))) {
                check("its log-probs are those of the next version", () -> probed(probe, api, changed, 2));
            }
            underWay(
                    directories,
                    WeightChange.RECOMPUTE,
                    "says which version sampled which token (weight_update in_flight, cache_on_swap recompute)",
                    3,
                    weights);
            underWay(
                    directories,
                    WeightChange.KEEP,
                    "says so where it keeps keys and values (cache_on_swap keep)",
                    4,
                    changed);
            check("goes back to the model", () -> load(api, directories, 5, weights, WeightChange.DRAINED));
            check("its log-probs are those of the model again", () -> probed(probe, api, weights, 5));
        }
        return allPassed;
    }

    private boolean check(String name, Look look) {
        Check done;
        try {
            done = new Check(name, Outcome.PASSED, look.at());
        } catch (LeftOutException e) {
            done = new Check(name, Outcome.LEFT_OUT, String.valueOf(e.getMessage()));
        } catch (EngineException e) {
            done = new Check(name, Outcome.FAILED, String.valueOf(e.getMessage()));
        }
        allPassed &= done.outcome() != Outcome.FAILED;
        told.accept(done);
        return done.outcome() != Outcome.FAILED;
    }

    private static final class LeftOutException extends RuntimeException {
        private static final long serialVersionUID = 1;

        LeftOutException(String message) {
            super(message, null, false, false);
        }
    }

    private static String identity(EngineApi api) {
        EngineIdentity identity = api.identity();
        return identity.getName() + " " + identity.getVersion() + ", weights of version '" + api.label() + "'";
    }

    private String load(EngineApi api, VersionDirectories directories, long version, Weights of, WeightChange change) {
        long begun = System.nanoTime();
        Path directory = directories.write(version, of);
        long written = System.nanoTime();
        api.pause(change);
        api.load(directories.seen(directory), Long.toString(version), change);
        api.resume();
        String label = api.label();
        directories.removeOld();
        if (!label.equals(Long.toString(version))) {
            throw EngineException.failed("it was given version " + version + " and says it has '" + label + "'");
        }
        return String.format(
                Locale.ROOT,
                "written in %.1f s, loaded in %.1f s",
                (written - begun) / 1e9,
                (System.nanoTime() - written) / 1e9);
    }

    private String probed(PolicyProbe probe, EngineApi api, Weights of, long version) {
        PolicyProbe.Finding found = probe.require(of, version, order -> ask(api, order, version));
        return String.format(
                Locale.ROOT,
                "they differ by %.4f nats a token, from %s ones by %.4f",
                found.declared(),
                config.logProbs().other().name().toLowerCase(Locale.ROOT),
                found.other());
    }

    private EngineAnswer ask(EngineApi api, TurnOrder order, long version) {
        EngineCall call = api.call(order, Long.toString(version));
        return api.read(http.post(call.path(), call.body(), Duration.ofMillis(config.answerMs())), order);
    }

    private static TurnOrder order(double temperature, int maxTokens, long seed, List<Integer> stops) {
        return new TurnOrder(
                PROMPT,
                new SamplingParameters(temperature, 0, 1.0, maxTokens, seed, false, 0, 0.0, false),
                stops,
                List.of(),
                0);
    }

    private String length(EngineApi api) {
        EngineAnswer answer = ask(api, order(1, 5, 3, List.of()), 1);
        if (answer.tokens().length != 5 || !answer.isCutOff()) {
            throw EngineException.untrue("it was asked for any 5 tokens, and gave " + answer.tokens().length
                    + (answer.isCutOff() ? "" : ", as if something had ended them"));
        }
        return "5 of 5, with finish reason length";
    }

    private String stop(EngineApi api) {
        int first = ask(api, order(0.01, 4, 3, List.of()), 1).tokens()[0];
        EngineAnswer stopped = ask(api, order(0.01, 4, 3, List.of(first)), 1);
        if (stopped.tokens()[0] != first) {
            throw new LeftOutException(
                    "at temperature 0.01 it drew " + first + " once and " + stopped.tokens()[0] + " then");
        }
        if (stopped.tokens().length != 1 || stopped.isCutOff()) {
            throw EngineException.untrue(
                    "token " + first + " was to end the answer, which has " + stopped.tokens().length + " tokens and "
                            + (stopped.isCutOff() ? "was cut off" : "ended by itself"));
        }
        return "token " + first + " ended it and is in it";
    }

    private String seed(EngineApi api) {
        if (!api.isSeeded()) {
            throw new LeftOutException("not required: calls with a seed are refused");
        }
        TurnOrder order = order(1, 8, 12345, List.of());
        int[] one = ask(api, order, 1).tokens();
        int[] again = ask(api, order, 1).tokens();
        if (!Arrays.equals(one, again)) {
            throw EngineException.failed(
                    "the same seed gave " + Arrays.toString(one) + " and " + Arrays.toString(again));
        }
        return "twice the same 8 tokens";
    }

    private void underWay(VersionDirectories directories, WeightChange change, String name, long version, Weights of) {
        EngineApi api = RemoteEngines.api(config, http, change);
        check(name, () -> {
            api.identity();
            TurnOrder order = order(1, longestTokens - PROMPT.length, 5, List.of());
            String before = Long.toString(version - 1);
            EngineCall call = api.call(order, before);
            CompletableFuture<JsonNode> asked =
                    http.ask(call.path(), call.body(), Duration.ofMillis(config.answerMs()));
            await(asked);
            load(api, directories, version, of, change);
            EngineAnswer answer;
            try {
                answer = api.read(asked.join(), order);
            } catch (CompletionException e) {
                throw e.getCause() instanceof EngineException problem ? problem : e;
            }
            return spans(answer, before, Long.toString(version));
        });
    }

    private static void await(CompletableFuture<JsonNode> asked) {
        try {
            asked.get(UNDER_WAY_MS, TimeUnit.MILLISECONDS);
        } catch (TimeoutException | ExecutionException e) {
            // it continues, or has failed, which is seen when it is read
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw EngineException.failed("interrupted");
        }
    }

    private static String spans(EngineAnswer answer, String before, String after) {
        if (answer.spans().isEmpty()) {
            throw EngineException.unfit(
                    "it does not (no weight_versions in its answers); generator.weight_update=drain does without");
        }
        List<String> versions = answer.spans().stream().map(LabelSpan::label).toList();
        if (versions.size() == 1 && versions.get(0).equals(before)) {
            throw new LeftOutException("the answer of " + answer.tokens().length
                    + " tokens was there before the update; ask for a longer one with --longest");
        }
        if (!versions.equals(List.of(before, after)) && !versions.equals(List.of(after))) {
            throw EngineException.untrue(
                    "it says " + answer.spans() + ", of an answer that went from version " + before + " to " + after);
        }
        return "it says " + answer.spans();
    }

    /** Halves the logits. */
    private static Weights changed(Weights weights) {
        Weights copy = weights.copy();
        FloatBuffer norm = copy.tensor(FINAL_NORM);
        for (int i = 0; i < norm.limit(); i++) {
            norm.put(i, norm.get(i) / 2);
        }
        return copy;
    }
}
