package dev.millrace.gateway.engine;

import dev.millrace.gateway.engine.EngineApi.EngineAnswer;
import dev.millrace.gateway.engine.EngineApi.EngineCall;
import dev.millrace.gateway.engine.EngineApi.LabelSpan;
import dev.millrace.gateway.engine.EngineApi.WeightChange;
import dev.millrace.generator.sampling.TurnOrder;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.VersionSpan;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps an external engine on the run's versions, and maps its labels to versions of tokens. Owned by one thread,
 * unless noted.
 */
final class EngineWeights implements AutoCloseable {
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

    /** The engine may have restarted, or have half an update. */
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
            throw EngineException.failed("the engine was given version " + label + " and says it has '" + said + "'");
        }
        look(wanted, label);
        directories.removeOld();
        isLost = false;
        serving = wanted;
        version = wanted.number();
        meters.updated(version, System.nanoTime() - begun);
        LOG.info(
                "{} {} at {} has taken up version {}",
                identity.getName(),
                identity.getVersion(),
                config.url(),
                wanted.number());
    }

    private void look(Version wanted, String label) {
        if (!probe.isWanted()) {
            return;
        }
        PolicyProbe.Finding found = probe.require(wanted.weights(), wanted.number(), order -> askedNow(order, label));
        if (change != WeightChange.DRAINED
                && found.answers().stream().anyMatch(answer -> answer.spans().isEmpty())) {
            throw EngineException.unfit(
                    "generator.weight_update is in_flight, and the engine's answers do not say which version"
                            + " sampled which token (weight_versions); set generator.weight_update=drain, or take a version of it that says"
                            + " so");
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
            throw EngineException.failed(
                    "version " + begun + " was loaded when an answer was begun and " + said
                            + " when it was there, and the engine does not say which of its tokens are whose; it is not trained on");
        }
        return List.of(new VersionSpan(said, 0, answer.tokens().length));
    }

    private long versionOf(String label) {
        Long known = loaded.get(label);
        if (known == null) {
            isLost = true;
            throw EngineException.failed("the engine says that its weights are of version '" + label
                    + "', and loaded were " + loaded.keySet() + "; it was started anew, or somebody else updates it");
        }
        return known;
    }

    @Override
    public void close() {
        probe.close();
    }

    /** Meters of an external engine. */
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
                    .description("answers of another program's engine that were taken")
                    .register(registry);
            this.updates = Counter.builder("millrace.engine.updates")
                    .description("versions that another program's engine has taken up")
                    .register(registry);
            this.updateSeconds = Counter.builder("millrace.engine.update.seconds")
                    .description("from writing a version to the end of what is looked into")
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
