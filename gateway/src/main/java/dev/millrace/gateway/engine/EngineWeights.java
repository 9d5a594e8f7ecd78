package dev.millrace.gateway.engine;

import dev.millrace.generator.sampling.TurnOrder;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.EngineIdentity;
import dev.millrace.schemas.VersionSpan;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Which of the run's versions another program's engine has: gives it each, looks into it, and knows by its label which one sampled a token.
 *
 * <p>Owned by one thread, but for what is said to be of any.
 */
final class EngineWeights implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(EngineWeights.class);

    /**
     * A version of the run.
     *
     * @param sha256 of its weights: a log that was cut off may have other ones under the same number
     */
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

    /** What it computes with; from any thread. */
    EngineIdentity identity() {
        return identity;
    }

    /** The version that was loaded last, -1 before the first; from any thread. */
    long version() {
        return version;
    }

    /** Whether it was given this version last. */
    boolean isServing(Version wanted) {
        return serving != null && wanted.isSame(serving);
    }

    /** Whether another version than this was loaded before. */
    boolean isOtherThan(Version wanted) {
        return serving != null && !wanted.isSame(serving);
    }

    /** Whether it may have other weights than those that it was given. */
    boolean isLost() {
        return isLost;
    }

    /** It may have begun anew, or has half an update. */
    void lose() {
        isLost = true;
    }

    /** How often it was given weights: what was begun before and is there after that may be of two versions. */
    long updates() {
        return updates;
    }

    /** Has it serve a version. */
    void update(Version wanted) {
        long begun = System.nanoTime();
        if (isLost) {
            identity = api.identity();
            loaded.clear(); // whatever it said before, it says it of other weights now
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
     * Which version sampled which of an answer's tokens.
     *
     * @param begun the version when it was begun
     * @param update {@link #updates} then
     * @param labelNow what the engine says now, where the answer says nothing
     * @throws EngineException if nobody can say
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
}
