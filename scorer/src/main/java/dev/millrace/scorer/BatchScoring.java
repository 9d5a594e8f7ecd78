package dev.millrace.scorer;

import dev.millrace.log.LogConnection;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.EntryScores;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.session.TokenScores;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.PolicyRole;
import dev.millrace.schemas.SamplingTrace;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.TopLogProbs;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedInts;
import dev.millrace.scorer.RolloutReading.Scorable;
import dev.millrace.weights.CorruptVersionException;
import dev.millrace.weights.NewestWeights;
import dev.millrace.weights.PolicyFeed;
import dev.millrace.weights.VersionUnavailableException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Scores a batch of rollouts: one pass of the engine per version that is needed, over the rollouts that need it.
 *
 * <p>OLD is stitched together from the versions of a rollout's spans, PROXIMAL is the newest version throughout; where
 * they are the same version they are the same vector. PROXIMAL has the values of a policy with a value head. Log-probs are under the rollout's temperature, over its kept tokens
 * where policies are compared over these, and 0 at masked tokens.
 */
final class BatchScoring implements Scoring {
    private final LogConnection connection;
    private final ScorerConfig config;
    private final ScoringSession session;
    private final NewestWeights loading;
    private final KnownVersions versions;

    private BatchScoring(
            LogConnection connection,
            ScorerConfig config,
            ScoringSession session,
            NewestWeights loading,
            KnownVersions versions) {
        this.connection = connection;
        this.config = config;
        this.session = session;
        this.loading = loading;
        this.versions = versions;
    }

    /** @throws dev.millrace.weights.VersionUnavailableException if no version can be loaded in time */
    static BatchScoring open(
            LogConnection connection, PolicyFeed feed, Engine engine, ScorerConfig config, DecoderShape shape) {
        NewestWeights loading = new NewestWeights(feed, connection.limit(config.firstVersionTimeoutMs()));
        return new BatchScoring(
                connection,
                config,
                new ScoringSession(engine, shape, config.tokenBudget()),
                loading,
                new KnownVersions(feed, loading, config));
    }

    @Override
    public long newest() {
        return versions.newest();
    }

    @Override
    public void close() {
        session.close();
        loading.close();
    }

    @Override
    public List<Score> score(List<Scorable> rollouts, long nowMs) {
        TreeSet<Long> needed = new TreeSet<>();
        for (Scorable rollout : rollouts) {
            for (VersionSpan span : rollout.rollout().getVersionSpans()) {
                needed.add(span.getVersion());
            }
        }
        versions.get(needed.last()); // may be newer than the newest we have seen, which then is the newest
        long newest = versions.newest();
        needed.add(newest);

        Map<Long, VersionScores> scores = new HashMap<>();
        Map<Long, String> unavailable = new HashMap<>();
        for (long version : needed) { // one version's weights at a time
            KnownVersions.Answer answer = versions.get(version);
            if (answer.weights() == null) {
                unavailable.put(version, answer.unavailable());
            } else {
                scores.put(version, scoreUnder(version, answer.weights(), version == newest, rollouts));
            }
        }
        List<Score> records = new ArrayList<>(rollouts.size());
        for (int i = 0; i < rollouts.size(); i++) {
            records.add(record(i, rollouts.get(i), newest, scores, unavailable, nowMs));
        }
        return records;
    }

    /**
     * What one version thinks of the rollouts that asked for it.
     *
     * @param scores packed over these
     * @param places where in the batch a rollout is; -1 where it is not
     * @param top of each in the batch what it thinks of the rollout's likeliest tokens; null where that is not asked for
     */
    private record VersionScores(
            TokenScores scores,
            SequenceBatch batch,
            int[] places,
            @Nullable TopLogProbs[] top) {

        void copy(float[] from, int rollout, int start, int end, float[] into) {
            System.arraycopy(from, batch.offset(places[rollout]) + start, into, start, end - start);
        }
    }

    private VersionScores scoreUnder(long version, Weights weights, boolean all, List<Scorable> rollouts) {
        int[] places = new int[rollouts.size()];
        List<Scorable> asking = new ArrayList<>();
        for (int i = 0; i < places.length; i++) {
            boolean asks = all || sampled(rollouts.get(i), version);
            places[i] = asks ? asking.size() : -1;
            if (asks) {
                asking.add(rollouts.get(i));
            }
        }
        SequenceBatch batch = Scorable.routed(asking);
        @Nullable TopLogProbs[] top = new TopLogProbs[asking.size()];
        TokenScores scores = all && config.topLogProbs()
                ? new LikeliestScoring(session, weights).score(asking, batch, top)
                : session.score(weights, batch, Scorable.temperatures(asking));
        return new VersionScores(scores, batch, places, top);
    }

    private static boolean sampled(Scorable rollout, long version) {
        for (VersionSpan span : rollout.rollout().getVersionSpans()) {
            if (span.getVersion() == version) {
                return true;
            }
        }
        return false;
    }

    private Score record(
            int index,
            Scorable rollout,
            long newest,
            Map<Long, VersionScores> scores,
            Map<Long, String> unavailable,
            long nowMs) {
        List<VersionSpan> old = rollout.rollout().getVersionSpans();
        List<VersionSpan> proximal = List.of(new VersionSpan(newest, 0, rollout.responseLength()));
        List<LogProbVector> vectors = new ArrayList<>(2);
        String missing = missing(old, unavailable);
        if (missing == null) {
            vectors.add(vector(PolicyRole.OLD, index, rollout, old, scores));
        }
        if (missing == null && proximal.equals(old)) {
            LogProbVector same = vectors.get(0);
            vectors.add(new LogProbVector(
                    PolicyRole.PROXIMAL,
                    proximal,
                    same.getLogProbs(),
                    same.getEntropies(),
                    same.getSumSquaredProbs(),
                    topOf(index, Objects.requireNonNull(scores.get(newest), "none is missing")),
                    valuesOf(index, Objects.requireNonNull(scores.get(newest), "none is missing"))));
        } else {
            vectors.add(vector(PolicyRole.PROXIMAL, index, rollout, proximal, scores));
        }
        return Score.newBuilder()
                .setRunId(connection.run().runId())
                .setEpoch(connection.run().epoch())
                .setRolloutId(rollout.rollout().getRolloutId())
                .setGroupId(rollout.rollout().getGroupId())
                .setScorerId(config.id())
                .setRolloutSource(
                        new LogCoordinates(connection.topics().rollouts(), rollout.partition(), rollout.offset()))
                .setVectors(vectors)
                .setUnavailable(missing)
                .setScoredAtMs(nowMs)
                .build();
    }

    private static @Nullable String missing(List<VersionSpan> spans, Map<Long, String> unavailable) {
        for (VersionSpan span : spans) {
            String why = unavailable.get(span.getVersion());
            if (why != null) {
                return why;
            }
        }
        return null;
    }

    private LogProbVector vector(
            PolicyRole policy, int index, Scorable rollout, List<VersionSpan> spans, Map<Long, VersionScores> scores) {
        int length = rollout.responseLength();
        float[] logProbs = new float[length];
        float[] entropies = config.entropies() ? new float[length] : null;
        float[] sumSquaredProbs = config.sumSquaredProbs() ? new float[length] : null;
        for (VersionSpan span : spans) {
            VersionScores under = Objects.requireNonNull(scores.get(span.getVersion()), "none is missing");
            under.copy(under.scores().logProbs(), index, span.getStart(), span.getEnd(), logProbs);
            if (entropies != null) {
                under.copy(under.scores().entropies(), index, span.getStart(), span.getEnd(), entropies);
            }
            if (sumSquaredProbs != null) {
                under.copy(under.scores().sumSquaredProbs(), index, span.getStart(), span.getEnd(), sumSquaredProbs);
            }
        }
        for (int i = 0; i < length; i++) {
            if (rollout.mask()[i] == 0) {
                logProbs[i] = 0f;
            }
        }
        VersionScores proximal = policy == PolicyRole.PROXIMAL
                ? Objects.requireNonNull(scores.get(spans.get(0).getVersion()), "none is missing")
                : null;
        return new LogProbVector(
                policy,
                spans,
                PackedFloats.of(logProbs),
                packed(entropies),
                packed(sumSquaredProbs),
                proximal == null ? null : topOf(index, proximal),
                proximal == null ? null : valuesOf(index, proximal));
    }

    private static @Nullable ByteBuffer valuesOf(int rollout, VersionScores scores) {
        float[] values = scores.scores().values();
        int place = scores.places()[rollout];
        SequenceBatch batch = scores.batch();
        return values.length == 0
                ? null
                : PackedFloats.of(Arrays.copyOfRange(values, batch.offset(place), batch.offset(place + 1)));
    }

    private static @Nullable TopLogProbs topOf(int rollout, VersionScores scores) {
        return scores.top()[scores.places()[rollout]];
    }

    private static @Nullable ByteBuffer packed(float @Nullable [] values) {
        return values == null ? null : PackedFloats.of(values);
    }

    /**
     * The versions at hand: the newest, loaded in the background, and those used last.
     *
     * <p>What was the newest stays for the rollouts that are behind, so that in the ordinary course no version is read from
     * the log twice. Owned by the scoring thread.
     */
    static final class KnownVersions {

        /**
         * A version's weights or why there are none; exactly one of them.
         *
         * @param weights not to be written; null if they cannot be had
         * @param unavailable null if they can
         */
        record Answer(@Nullable Weights weights, @Nullable String unavailable) {}

        private final PolicyFeed feed;
        private final NewestWeights newest;
        private final Duration wait;
        private final Map<Long, Weights> kept;
        private long newestVersion = -1;
        private @Nullable Weights newestWeights;

        KnownVersions(PolicyFeed feed, NewestWeights newest, ScorerConfig config) {
            this.feed = feed;
            this.newest = newest;
            this.wait = Duration.ofMillis(config.versionWaitMs());
            this.kept = new LinkedHashMap<>(16, 0.75f, true) {
                private static final long serialVersionUID = 1L;

                @Override
                protected boolean removeEldestEntry(Map.Entry<Long, Weights> eldest) {
                    return size() // the newest is one of them
                            >= config.cachedVersions(eldest.getValue().shape().parameterCount());
                }
            };
        }

        /** The newest version known, at least as new as what {@link #get} has given. */
        long newest() {
            NewestWeights.Loaded loaded = newest.current();
            if (loaded.version() > newestVersion) {
                take(loaded.version(), loaded.weights());
            }
            return newestVersion;
        }

        /** A version's weights, from the log if need be; those of {@link #newest} are always there. */
        Answer get(long version) {
            if (version == newest()) {
                return new Answer(newestWeights, null);
            }
            Weights weights = kept.get(version);
            if (weights != null) {
                return new Answer(weights, null);
            }
            try {
                if (version > newestVersion) {
                    feed.awaitAtLeast(version, wait); // a generator may have heard of it a moment before us
                }
                weights = feed.shared(version, this::cached);
            } catch (VersionUnavailableException | CorruptVersionException e) {
                return new Answer(null, e.getMessage());
            }
            if (version > newestVersion) {
                take(version, weights);
            } else {
                kept.put(version, weights);
            }
            return new Answer(weights, null);
        }

        private @Nullable Weights cached(long version) {
            return version == newestVersion ? newestWeights : kept.get(version);
        }

        private void take(long version, Weights weights) {
            if (newestWeights != null) {
                kept.put(newestVersion, newestWeights);
            }
            newestVersion = version;
            newestWeights = weights;
        }
    }

    /** Scores rollouts together with the likeliest tokens that they name, those that name as many of them at once. */
    static final class LikeliestScoring {
        private final ScoringSession session;
        private final Weights weights;

        LikeliestScoring(ScoringSession session, Weights weights) {
            this.session = session;
            this.weights = weights;
        }

        /**
         * Scores of all of them.
         *
         * @param top overwritten where a rollout names likeliest tokens: the same ids, with the log-probs of these weights
         */
        TokenScores score(List<Scorable> rollouts, SequenceBatch batch, @Nullable TopLogProbs[] top) {
            TreeMap<Integer, List<Integer>> byCount = new TreeMap<>();
            for (int i = 0; i < top.length; i++) {
                TopLogProbs named = named(rollouts.get(i));
                byCount.computeIfAbsent(named == null ? 0 : named.getK(), absent -> new ArrayList<>())
                        .add(i);
            }
            int tokens = batch.scoredCount();
            TokenScores all = TokenScores.allocate(tokens, weights.shape());
            byCount.forEach((k, places) -> {
                List<Scorable> some = places.stream().map(rollouts::get).toList();
                SequenceBatch part = Scorable.batch(some);
                float[] temperatures = Scorable.temperatures(some);
                TokenScores found;
                if (k == 0) {
                    found = session.score(weights, part, temperatures);
                } else {
                    EntryScores entries = session.scoreEntries(
                            weights,
                            part,
                            temperatures,
                            some.stream().map(LikeliestScoring::entries).toArray(int[][]::new),
                            k);
                    for (int i = 0; i < some.size(); i++) {
                        top[places.get(i)] = top(some.get(i), part.offset(i), entries);
                    }
                    found = entries.scores();
                }
                for (int i = 0; i < some.size(); i++) {
                    copy(found, part, i, all, batch, places.get(i));
                }
            });
            return all;
        }

        private static @Nullable TopLogProbs named(Scorable rollout) {
            SamplingTrace trace = rollout.rollout().getSamplingTrace();
            return trace == null ? null : trace.getTopLogProbs();
        }

        private static TopLogProbs required(Scorable rollout) {
            return Objects.requireNonNull(named(rollout), "it is among those that name some");
        }

        /** Rows of trained tokens spread over all of them; those between have nothing that is looked at. */
        private static int[] entries(Scorable rollout) {
            int k = required(rollout).getK();
            int[] named = PackedInts.toArray(required(rollout).getTokenIds());
            int[] entries = new int[rollout.responseLength() * k];
            int row = 0;
            for (int t = 0; t < rollout.responseLength(); t++) {
                if (rollout.mask()[t] == 1) {
                    System.arraycopy(named, k * row++, entries, k * t, k);
                }
            }
            return entries;
        }

        private static TopLogProbs top(Scorable rollout, int offset, EntryScores scores) {
            int k = scores.k();
            float[] logProbs = new float[rollout.responseLength() * k];
            float[] remainders = new float[rollout.responseLength()];
            int row = 0;
            for (int t = 0; t < rollout.responseLength(); t++) {
                if (rollout.mask()[t] == 1) {
                    System.arraycopy(scores.logProbs(), (offset + t) * k, logProbs, row * k, k);
                    remainders[row++] = scores.remainders()[offset + t];
                }
            }
            return new TopLogProbs(
                    k,
                    required(rollout).getTokenIds(),
                    PackedFloats.of(Arrays.copyOf(logProbs, row * k)),
                    PackedFloats.of(Arrays.copyOf(remainders, row)));
        }

        private static void copy(
                TokenScores from, SequenceBatch part, int i, TokenScores to, SequenceBatch batch, int place) {
            int length = part.offset(i + 1) - part.offset(i);
            System.arraycopy(from.logProbs(), part.offset(i), to.logProbs(), batch.offset(place), length);
            System.arraycopy(from.entropies(), part.offset(i), to.entropies(), batch.offset(place), length);
            System.arraycopy(from.sumSquaredProbs(), part.offset(i), to.sumSquaredProbs(), batch.offset(place), length);
            if (from.values().length > 0) {
                System.arraycopy(from.values(), part.offset(i), to.values(), batch.offset(place), length);
            }
        }
    }
}
