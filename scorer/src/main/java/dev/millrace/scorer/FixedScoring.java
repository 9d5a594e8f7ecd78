package dev.millrace.scorer;

import dev.millrace.log.LogConnection;
import dev.millrace.policy.decoder.DecoderShape;
import dev.millrace.policy.huggingface.CheckpointDirectory;
import dev.millrace.policy.session.Engine;
import dev.millrace.policy.session.ScoringSession;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.policy.session.TokenScores;
import dev.millrace.policy.weights.Weights;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.LogProbVector;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.VersionSpan;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.scorer.RolloutReading.Scorable;
import dev.millrace.weights.PolicyFeed;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Scores rollouts under one policy that stays as it is: a reference, or a teacher.
 *
 * <p>Log-probs are under the rollout's temperature, over its kept tokens where policies are compared over these, and 0 at
 * masked tokens. A rollout that is longer than the policy's
 * positions gets a score that says so.
 */
final class FixedScoring implements Scoring {
    private final LogConnection connection;
    private final ScorerPurpose purpose;
    private final ScorerConfig config;
    private final long version;
    private final Weights weights;
    private final ScoringSession session;

    private FixedScoring(
            LogConnection connection,
            ScorerPurpose purpose,
            ScorerConfig config,
            long version,
            Weights weights,
            ScoringSession session) {
        this.connection = connection;
        this.purpose = purpose;
        this.config = config;
        this.version = version;
        this.weights = weights;
        this.session = session;
    }

    /**
     * Loads the policy that the purpose names.
     *
     * @param trained what the run trains, whose vocabulary the policy must have
     * @throws dev.millrace.weights.VersionUnavailableException if the log does not hold the version
     * @throws IllegalStateException if there is no such checkpoint, or it has another vocabulary
     */
    static FixedScoring open(
            LogConnection connection,
            PolicyFeed feed,
            Engine engine,
            ScorerPurpose purpose,
            ScorerConfig config,
            DecoderShape trained) {
        FixedPolicyConfig policy = config.fixed(purpose);
        Weights weights = policy.version() >= 0
                ? ofTheRun(feed, policy.version(), connection.limit(config.firstVersionTimeoutMs()))
                : onDisk(policy.directory());
        if (weights.shape().vocabSize() != trained.vocabSize()) {
            throw new IllegalStateException(
                    "the " + purpose.role() + " policy in " + policy.directory() + " has a vocabulary of "
                            + weights.shape().vocabSize() + " tokens, the policy that is trained " + trained.vocabSize()
                            + "; log-probs of the same tokens need the same vocabulary");
        }
        return new FixedScoring(
                connection,
                purpose,
                config,
                policy.version(),
                weights,
                new ScoringSession(engine, weights.shape(), config.tokenBudget()));
    }

    private static Weights ofTheRun(PolicyFeed feed, long version, Duration limit) {
        feed.awaitAtLeast(version, limit);
        return feed.load(version);
    }

    private static Weights onDisk(String directory) {
        try {
            return new CheckpointDirectory(Path.of(directory)).load();
        } catch (IOException e) {
            throw new IllegalStateException("the checkpoint in " + directory + " cannot be read: " + e.getMessage(), e);
        }
    }

    @Override
    public List<Score> score(List<Scorable> rollouts, long nowMs) {
        List<Scorable> fitting = rollouts.stream().filter(this::fits).toList();
        float[] logProbs = new float[0];
        SequenceBatch batch = new SequenceBatch(new int[0][], new int[0]);
        if (!fitting.isEmpty()) {
            batch = Scorable.batch(fitting);
            TokenScores scores = session.score(weights, batch, Scorable.temperatures(fitting));
            logProbs = scores.logProbs();
        }
        List<Score> records = new ArrayList<>(rollouts.size());
        int place = 0;
        for (Scorable rollout : rollouts) {
            if (fits(rollout)) {
                int from = batch.offset(place++);
                records.add(
                        record(rollout, Arrays.copyOfRange(logProbs, from, from + rollout.responseLength()), nowMs));
            } else {
                records.add(tooLong(rollout, nowMs));
            }
        }
        return records;
    }

    private boolean fits(Scorable rollout) {
        return rollout.tokens().length <= weights.shape().maxPositions();
    }

    private Score record(Scorable rollout, float[] logProbs, long nowMs) {
        for (int i = 0; i < logProbs.length; i++) {
            if (rollout.mask()[i] == 0) {
                logProbs[i] = 0f;
            }
        }
        return about(rollout, nowMs)
                .setVectors(List.of(new LogProbVector(
                        purpose.policy(),
                        List.of(new VersionSpan(version, 0, logProbs.length)),
                        PackedFloats.of(logProbs),
                        null,
                        null,
                        null)))
                .setUnavailable(null)
                .build();
    }

    private Score tooLong(Scorable rollout, long nowMs) {
        return about(rollout, nowMs)
                .setVectors(List.of())
                .setUnavailable("its " + rollout.tokens().length + " tokens are more than the " + purpose.role()
                        + " policy's " + weights.shape().maxPositions() + " positions")
                .build();
    }

    private Score.Builder about(Scorable rollout, long nowMs) {
        return Score.newBuilder()
                .setRunId(connection.run().runId())
                .setEpoch(connection.run().epoch())
                .setRolloutId(rollout.rollout().getRolloutId())
                .setGroupId(rollout.rollout().getGroupId())
                .setScorerId(config.id())
                .setRolloutSource(
                        new LogCoordinates(connection.topics().rollouts(), rollout.partition(), rollout.offset()))
                .setScoredAtMs(nowMs);
    }

    @Override
    public long newest() {
        return NOT_SERVING;
    }

    @Override
    public void close() {
        session.close();
    }
}
