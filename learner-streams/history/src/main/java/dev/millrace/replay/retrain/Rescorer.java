package dev.millrace.replay.retrain;

import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.RecordedVersions;
import dev.millrace.replay.retrain.Rescoring.Proximal;
import dev.millrace.replay.retrain.StretchScoring.Stretch;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.weights.CorruptVersionException;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.WeightCache;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * Recomputes a batch's log-probs with the engine of scorer and learner.
 *
 * <p>They depend only on tokens, temperature and weights, so under the recorded versions they are equal bit for bit on
 * the same kind of machine. One pass per version over the members that need it; masked tokens are 0.
 *
 * <p>Memory: cached versions, and one micro-batch per thread. Thread-safe. Close it before the versions.
 */
public final class Rescorer implements AutoCloseable {
    private final RecordedVersions versions;
    private final Rescoring what;
    private final WeightCache cache;
    private final StretchScoring scoring;

    /**
     * @param cachedVersions at least 1
     * @param tokenBudget padded tokens of a micro-batch
     * @throws VersionUnavailableException without a recorded version
     */
    public Rescorer(RecordedVersions versions, Rescoring what, Engine engine, int cachedVersions, int tokenBudget) {
        this.versions = versions;
        this.what = what;
        this.cache = new WeightCache(this::load, cachedVersions);
        this.scoring = new StretchScoring(engine, versions.shape(), tokenBudget);
    }

    private Weights load(long version) {
        return versions.load(version, cache::cached);
    }

    public Rescoring what() {
        return what;
    }

    /** False if log-probs at step start are wanted, and the batch has no recorded step. */
    public boolean knows(long batchId) {
        return !what.isAtStep() || versions.beginningOf(batchId).isPresent();
    }

    /**
     * @param facts the batch under new log-probs
     * @param proximalVersions version of the proximal log-probs per trajectory
     */
    public record Rescored(StageFacts facts, Agreement agreement, long[] proximalVersions) {}

    /**
     * @param recorded the batch under recorded log-probs
     * @throws ArchiveException if a version is deleted
     */
    public Rescored rescore(LearnerBatch batch, List<Trajectory> trajectories, StageFacts recorded) {
        float[] old = what.own() ? new float[recorded.tokens().tokenCount()] : recorded.vector(StageInput.OLD);
        boolean isProximal = !(what.proximal() instanceof Proximal.Kept);
        float[] proximal =
                isProximal ? new float[recorded.tokens().tokenCount()] : recorded.vector(StageInput.PROXIMAL);
        float[] values = isProximal && hasCritic(trajectories)
                ? new float[recorded.tokens().tokenCount()]
                : null;
        SortedMap<Long, List<Stretch>> wanted = new TreeMap<>();
        for (int s = 0; s < trajectories.size(); s++) {
            Trajectory trajectory = trajectories.get(s);
            if (what.own()) {
                for (VersionSpan span : trajectory.getVersionSpans()) {
                    wanted.computeIfAbsent(span.getVersion(), v -> new ArrayList<>())
                            .add(new Stretch(
                                    s,
                                    span.getStart(),
                                    span.getEnd(),
                                    old,
                                    recorded.tokens().start(s)));
                }
            }
            if (isProximal) {
                wanted.computeIfAbsent(proximalVersion(batch, trajectory), v -> new ArrayList<>())
                        .add(new Stretch(
                                s,
                                0,
                                recorded.tokens().end(s) - recorded.tokens().start(s),
                                proximal,
                                recorded.tokens().start(s),
                                values));
            }
        }
        wanted.forEach((version, stretches) -> scoring.score(weights(version), trajectories, stretches));
        if (what.own()) {
            zeroMasked(recorded, old);
        }
        if (isProximal) {
            zeroMasked(recorded, proximal);
        }
        Agreement agreement = Agreement.NONE;
        for (int s = 0; s < trajectories.size(); s++) {
            int from = recorded.tokens().start(s);
            int to = recorded.tokens().end(s);
            if (what.own()) {
                agreement = agreement.plus(
                        recorded.withoutOld()[s]
                                ? Agreement.incomparable()
                                : Agreement.of(recorded.vector(StageInput.OLD), old, from, to));
            }
            if (isProximal) {
                boolean isSame = proximalVersion(batch, trajectories.get(s))
                        == trajectories.get(s).getProximalVersion();
                agreement = agreement.plus(
                        isSame
                                ? Agreement.of(recorded.vector(StageInput.PROXIMAL), proximal, from, to)
                                : Agreement.incomparable());
            }
        }
        long current = what.isAtStep() ? atStep(batch) : recorded.version();
        StageFacts.Builder facts = recorded.toBuilder();
        if (values != null) {
            facts.vector(StageInput.VALUES, values);
        }
        return new Rescored(
                facts.vector(StageInput.OLD, old)
                        .vector(StageInput.PROXIMAL, proximal)
                        .withoutOld(what.own() ? new boolean[trajectories.size()] : recorded.withoutOld())
                        .versions(current, recorded.versions())
                        .build(),
                agreement,
                trajectories.stream()
                        .mapToLong(t -> isProximal ? proximalVersion(batch, t) : t.getProximalVersion())
                        .toArray());
    }

    /** Returns whether values are the policy's own, which change with its version. */
    private boolean hasCritic(List<Trajectory> trajectories) {
        return versions.shape().valueHead()
                && trajectories.stream().allMatch(trajectory -> trajectory.getProximalValues() != null);
    }

    private long proximalVersion(LearnerBatch batch, Trajectory trajectory) {
        if (what.proximal() instanceof Proximal.Fixed fixed) {
            return fixed.version();
        }
        return what.isAtStep() ? atStep(batch) : trajectory.getProximalVersion();
    }

    private long atStep(LearnerBatch batch) {
        OptionalLong version = versions.beginningOf(batch.getBatchId());
        return version.orElseThrow(() -> new ArchiveException("no version is recorded that batch " + batch.getBatchId()
                + " made, so the version its step started from is unknown"));
    }

    private Weights weights(long version) {
        try {
            return cache.get(version);
        } catch (VersionUnavailableException | CorruptVersionException e) {
            throw new ArchiveException(
                    "log-probs under version " + version + " cannot be computed: " + e.getMessage(), e);
        }
    }

    private static void zeroMasked(StageFacts facts, float[] vector) {
        for (int t = 0; t < vector.length; t++) {
            if (!facts.tokens().isTrained(t)) {
                vector[t] = 0f;
            }
        }
    }

    @Override
    public void close() {
        scoring.close();
    }
}
