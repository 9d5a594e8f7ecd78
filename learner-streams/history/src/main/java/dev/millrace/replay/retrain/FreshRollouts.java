package dev.millrace.replay.retrain;

import dev.millrace.learner.batch.TrainingBatch;
import dev.millrace.learner.batch.TrainingBatch.Member;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.weights.WeightRing;
import dev.millrace.policy.weights.Weights;
import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.replay.archive.RecordedRun;
import dev.millrace.replay.archive.RecordedVersions;
import dev.millrace.replay.retrain.FreshRollouts.RolloutSource.Sample;
import dev.millrace.replay.retrain.StretchScoring.Stretch;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.SamplingParameters;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.rollout.ComparedDistribution;
import dev.millrace.weights.CorruptVersionException;
import dev.millrace.weights.VersionUnavailableException;
import dev.millrace.weights.WeightCache;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.LongFunction;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * A variant's own rollouts in place of the recorded ones.
 *
 * <p>Each has the same prompt and place in group and batch; every token is sampled by the variant's version with the
 * recorded number, or the run's before the start of the re-train. So lags stay as recorded. With the recorded draws
 * and equal weights the rollouts are equal bit for bit. Batch composition and ages in seconds stay as recorded.
 *
 * <p>Memory: per variant its weights over the largest lag, the run's before the start, and a position per group. Used
 * by one thread.
 */
public final class FreshRollouts implements AutoCloseable {
    private final long firstVersion;
    private final int lag;
    private final RecordedPrompts prompts;
    private final RolloutSource source;
    private final StretchScoring scoring;
    private final WeightCache recorded;
    private final boolean areRewarded;
    private long requestsOf = -1;
    private Map<String, PromptRequest> requests = Map.of();

    /** Requirements of a range's batches. */
    private static final class Needs {
        private final Set<String> groups = new HashSet<>();
        private long oldest = Long.MAX_VALUE;
        private long lag;

        void see(long version, BatchEntry entry, long first) {
            groups.add(entry.getGroupId());
            oldest = Math.min(oldest, entry.getOldestVersion());
            lag = Math.max(lag, version - Math.max(first, entry.getOldestVersion()));
        }
    }

    /**
     * Reads the range's batches, the first one's trajectories and all prompts once.
     *
     * @param tokenBudget padded tokens of a scoring micro-batch
     * @param areRewarded every variant has other rewards, so partners' are not needed
     * @throws ArchiveException if partners took part, a prompt is missing or cannot be sampled here, or sampling
     *     weights are missing
     */
    public FreshRollouts(
            RecordedRun run,
            RecordedVersions versions,
            VersionInterval range,
            RolloutSource source,
            Engine engine,
            int tokenBudget,
            boolean areRewarded) {
        Needs needs = new Needs();
        RecordedSteps steps = new RecordedSteps(run, versions);
        steps.forEachBatch(
                range,
                (version, batch) -> batch.getEntries().forEach(entry -> needs.see(version, entry, range.from())));
        steps.forEach(
                new VersionInterval(range.from(), range.from() + 1),
                first -> true,
                first -> ExternalPartners.requireNone(
                        first.batch().members().stream().map(Member::trajectory).toList(),
                        areRewarded)); // a run has them from its beginning
        this.areRewarded = areRewarded;
        this.firstVersion = range.from();
        this.lag = Math.toIntExact(needs.lag);
        this.source = source;
        this.recorded = new WeightCache(
                version -> load(versions, version),
                Math.toIntExact(Math.max(1, range.from() - Math.min(needs.oldest, range.from()) + 1)));
        if (needs.oldest < range.from()) {
            requireAvailable(needs.oldest);
        }
        this.prompts = new RecordedPrompts(
                run,
                needs.groups,
                request -> source.refusal(request).ifPresent(why -> {
                    throw new ArchiveException("group " + request.getGroupId() + " cannot be sampled again: " + why);
                }));
        this.scoring = new StretchScoring(engine, versions.shape(), tokenBudget);
    }

    private Weights load(RecordedVersions versions, long version) {
        return versions.load(version, recorded::cached);
    }

    private void requireAvailable(long oldest) {
        try {
            recorded.get(oldest);
        } catch (VersionUnavailableException | CorruptVersionException e) {
            throw new ArchiveException(
                    "version " + oldest
                            + " sampled for a batch of the range and must sample again, and its weights are not"
                            + " available; choose a later --from-version, or leave out --live. "
                            + e.getMessage(),
                    e);
        }
    }

    /** Rollouts of one variant. */
    final class OfCourse {
        private final long draws;
        private final WeightRing made;

        private OfCourse(Weights first, long draws) {
            this.draws = draws;
            this.made = new WeightRing(lag, firstVersion);
            made.add(first);
        }

        List<Trajectory> trajectories(TrainingBatch batch) {
            return sample(batch, draws, version -> version < firstVersion ? recorded.get(version) : made.at(version));
        }

        /** Adds the variant's next version; copied. */
        void made(Weights weights) {
            made.add(weights);
        }
    }

    /**
     * @param first initial weights; copied
     * @param draws 0 for the recorded draws
     */
    OfCourse variant(Weights first, long draws) {
        return new OfCourse(first, draws);
    }

    private List<Trajectory> sample(TrainingBatch batch, long draws, LongFunction<Weights> weights) {
        List<Trajectory> like = batch.members().stream().map(Member::trajectory).toList();
        ExternalPartners.requireNone(like, areRewarded);
        if (batch.batch().getBatchId() != requestsOf) {
            requests = prompts.of(
                    like.stream().map(Trajectory::getGroupId).collect(Collectors.toCollection(TreeSet::new)));
            requestsOf = batch.batch().getBatchId();
        }
        List<Sample> samples = like.stream()
                .map(trajectory -> new Sample(
                        drawn(Objects.requireNonNull(requests.get(trajectory.getGroupId())), draws),
                        trajectory.getSampleIndex(),
                        trajectory.getVersionSpans()))
                .toList();
        List<Rollout> rollouts = source.sample(samples, weights);
        List<Trajectory> made = new ArrayList<>(like.size());
        for (int s = 0; s < like.size(); s++) {
            made.add(unscored(like.get(s), rollouts.get(s)));
        }
        return scored(made, weights);
    }

    private static PromptRequest drawn(PromptRequest request, long draws) {
        if (draws == 0) {
            return request;
        }
        SamplingParameters sampling = SamplingParameters.newBuilder(request.getSampling())
                .setSeed(request.getSampling().getSeed() + draws)
                .build();
        return PromptRequest.newBuilder(request).setSampling(sampling).build();
    }

    /** The recorded trajectory with another rollout's tokens. */
    private static Trajectory unscored(Trajectory recorded, Rollout rollout) {
        return Trajectory.newBuilder(recorded)
                .setResponseTokens(rollout.getResponseTokens())
                .setMask(rollout.getMask())
                .setVersionSpans(rollout.getVersionSpans())
                .setBehaviorLogProbs(ComparedDistribution.behaviorLogProbs(rollout))
                .setKeptTokens(ComparedDistribution.keptTokens(rollout))
                .setRouting(ComparedDistribution.routing(rollout))
                .setReward(rollout.getReward())
                .setFinishReason(rollout.getFinishReason().name())
                .setCredit(rollout.getCredit())
                .setTurns(rollout.getCredit() == null ? null : rollout.getTurns())
                .build();
    }

    /** Adds old log-probs, where recorded, and proximal ones. */
    private List<Trajectory> scored(List<Trajectory> made, LongFunction<Weights> weights) {
        List<float[]> old = new ArrayList<>();
        List<float[]> proximal = new ArrayList<>();
        List<float @Nullable []> values = new ArrayList<>();
        SortedMap<Long, List<Stretch>> wanted = new TreeMap<>();
        for (int s = 0; s < made.size(); s++) {
            Trajectory trajectory = made.get(s);
            int tokens = PackedMask.length(trajectory.getMask());
            old.add(new float[tokens]);
            proximal.add(new float[tokens]);
            values.add(trajectory.getProximalValues() == null ? null : new float[tokens]);
            for (VersionSpan span : trajectory.getVersionSpans()) {
                wanted.computeIfAbsent(span.getVersion(), v -> new ArrayList<>())
                        .add(new Stretch(s, span.getStart(), span.getEnd(), old.get(s), 0));
            }
            wanted.computeIfAbsent(trajectory.getProximalVersion(), v -> new ArrayList<>())
                    .add(new Stretch(s, 0, tokens, proximal.get(s), 0, values.get(s)));
        }
        wanted.forEach((version, stretches) -> scoring.score(weights.apply(version), made, stretches));
        List<Trajectory> scored = new ArrayList<>(made.size());
        for (int s = 0; s < made.size(); s++) {
            Trajectory trajectory = made.get(s);
            float[] ofCritic = values.get(s);
            scored.add(Trajectory.newBuilder(trajectory)
                    .setOldLogProbs(trajectory.getOldLogProbs() == null ? null : masked(old.get(s), trajectory))
                    .setProximalLogProbs(masked(proximal.get(s), trajectory))
                    .setProximalValues(ofCritic == null ? null : PackedFloats.of(ofCritic))
                    .build());
        }
        return scored;
    }

    /** Masked tokens are 0, as in a score. */
    private static ByteBuffer masked(float[] logProbs, Trajectory trajectory) {
        for (int t = 0; t < logProbs.length; t++) {
            if (PackedMask.get(trajectory.getMask(), t) == 0) {
                logProbs[t] = 0f;
            }
        }
        return PackedFloats.of(logProbs);
    }

    @Override
    public void close() {
        scoring.close();
        prompts.close();
    }

    /**
     * Variants learn from their own rollouts.
     *
     * @param sampling shared
     * @param draws 0 for the recorded draws
     */
    public record FreshRolloutOptions(FreshRollouts sampling, long draws) {}

    /** Samples a run's prompts with any weights. Used by one thread. */
    public interface RolloutSource {

        /** @param versions by response position; the last span extends to the end */
        record Sample(PromptRequest request, int index, List<VersionSpan> versions) {}

        /** Why a prompt cannot be sampled here; empty if it can be. */
        Optional<String> refusal(PromptRequest request);

        /**
         * One rollout per sample, rewarded by the prompt's environment.
         *
         * @param weights of a version; not written
         * @throws dev.millrace.policy.session.NonFiniteScoreException for non-finite weights
         */
        List<Rollout> sample(List<Sample> samples, LongFunction<Weights> weights);
    }
}
