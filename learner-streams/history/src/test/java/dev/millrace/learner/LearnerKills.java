package dev.millrace.learner;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.audit.ledger.Account;
import dev.millrace.audit.ledger.LedgerReader;
import dev.millrace.audit.ledger.Tally;
import dev.millrace.infra.broker.BrokerConfig;
import dev.millrace.infra.broker.BrokerProcess;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.weights.PolicyFeed;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Kills a learner with SIGKILL repeatedly while it trains on a fixed topic of batches; learner and broker are separate
 * processes. The result must equal that of an undisturbed learner: the same weights in every version, each version and
 * each batch once, and a ledger that accounts for every rollout.
 *
 * <p>A seed determines the kill times: a quarter of the kills during the start, the others within the two steps after
 * some version. The seed does not determine the exact moment within a step; the test counts and prints these moments.
 *
 * <p>A kill takes about three seconds, so builds do not run this test: run it by its name.
 *
 * <pre>{@code
 * JAVA_TOOL_OPTIONS="-Dmillrace.kills=50 -Dmillrace.kills.seed=1" ./mvnw -pl learner-streams -am test \
 *     -Dtest=LearnerKills -Dsurefire.failIfNoSpecifiedTests=false
 * }</pre>
 */
class LearnerKills {
    private static final Logger LOG = LoggerFactory.getLogger(LearnerKills.class);
    private static final int KILLS = Integer.getInteger("millrace.kills", 50);
    private static final long SEED = Long.getLong("millrace.kills.seed", 1);
    private static final int MOST_VERSIONS_OF_ONE_LIFE = 5;
    private static final int BATCHES = KILLS * (MOST_VERSIONS_OF_ONE_LIFE + 3) + 1;
    private static final int BATCH_SIZE = 6;
    private static final long LIMIT_MS = 120_000;

    @TempDir
    static Path directory;

    /** Where a kill came, by what the learner said last. */
    private enum Moment {
        BEFORE_MAIN,
        STARTING,
        BETWEEN_TRANSACTIONS,
        WITHIN_A_TRANSACTION,
        WHILE_COMMITTING;

        static Moment after(String said) {
            return switch (said) {
                case "" -> BEFORE_MAIN;
                case LearnerProcess.MAIN, "initTransactions", "partitionsFor" -> STARTING;
                case LearnerProcess.COMMITTED, "close" -> BETWEEN_TRANSACTIONS;
                case "commitTransaction" -> WHILE_COMMITTING;
                default -> WITHIN_A_TRANSACTION;
            };
        }
    }

    @Test
    void shouldLeaveWhatAnUndisturbedLearnerLeaves() throws Exception {
        try (BrokerProcess broker = BrokerProcess.start(directory.resolve("broker"), BrokerConfig.defaults());
                SyntheticLog quiet = new SyntheticLog(broker.bootstrapServers(), "undisturbed.");
                SyntheticLog log = new SyntheticLog(broker.bootstrapServers(), "killed.")) {
            quiet.produceGenerated(BATCHES, BATCH_SIZE);
            log.produceGenerated(BATCHES, BATCH_SIZE);

            long begun = System.nanoTime();
            LearnerProcess undisturbed = start(broker, "undisturbed.");
            undisturbed.await("beginTransaction", 1, LIMIT_MS);
            long startMs = (System.nanoTime() - begun) / 1_000_000;
            assertThat(undisturbed.awaitEnd(LIMIT_MS)).as(LearnerKills::seen).isZero();
            long stepMs = Math.max(1, ((System.nanoTime() - begun) / 1_000_000 - startMs) / BATCHES);

            Map<Moment, Integer> moments = killAgainAndAgain(broker, startMs, stepMs);
            LearnerProcess last = start(broker, "killed.");
            assertThat(last.awaitEnd(LIMIT_MS)).as(LearnerKills::seen).isZero();

            requireSame(quiet, log);
            Tally tally = requireLedger(quiet, log);
            LOG.warn(
                    "{} kills with seed {}, {} versions: {}; a start took {} ms, a step {} ms undisturbed; {}",
                    KILLS,
                    SEED,
                    BATCHES + 1,
                    moments,
                    startMs,
                    stepMs,
                    tally);
        }
    }

    private static Map<Moment, Integer> killAgainAndAgain(BrokerProcess broker, long startMs, long stepMs)
            throws InterruptedException {
        SplittableRandom random = new SplittableRandom(SEED);
        Map<Moment, Integer> moments = new TreeMap<>();
        for (int kill = 0; kill < KILLS; kill++) {
            LearnerProcess learner = start(broker, "killed.");
            boolean atStart = random.nextInt(4) == 0;
            int versions = random.nextInt(1, MOST_VERSIONS_OF_ONE_LIFE + 1);
            long delayNanos = (long) (1e6 * random.nextDouble() * (atStart ? startMs : 2 * stepMs));
            if (!atStart) {
                learner.await(LearnerProcess.COMMITTED, versions, LIMIT_MS);
            }
            LockSupport.parkNanos(delayNanos);
            assertThat(learner.isAlive())
                    .as("kill %d came while it trained", kill)
                    .isTrue();
            moments.merge(Moment.after(learner.kill()), 1, Integer::sum);
        }
        return moments;
    }

    private static void requireSame(SyntheticLog quiet, SyntheticLog log) {
        assertThat(log.hashes())
                .as("weights of every version, each once")
                .hasSize(BATCHES + 1)
                .isEqualTo(quiet.hashes());
        assertThat(log.optimizerHashes()).isEqualTo(quiet.optimizerHashes());
        assertThat(log.versions())
                .extracting(PolicyVersion::getVersion)
                .containsExactlyElementsOf(
                        LongStream.rangeClosed(0, BATCHES).boxed().toList());
        assertThat(log.steps())
                .extracting(TrainingStep::getBatchId)
                .as("every batch once")
                .containsExactlyElementsOf(LongStream.range(0, BATCHES).boxed().toList());
        assertThat(log.steps())
                .extracting(TrainingStep::getWeightsSha256)
                .isEqualTo(log.hashes().subList(1, BATCHES + 1));
        assertThat(log.committedOffset()).isEqualTo(quiet.committedOffset());
        assertThat(log.deadLetters()).isEmpty();
        try (PolicyFeed feed = new PolicyFeed(log.connection(), LearnerIT.weights())) {
            feed.awaitAtLeast(BATCHES, Duration.ofMillis(LIMIT_MS));
            feed.load(BATCHES); // throws unless the content matches the hashes
            feed.loadOptimizer(BATCHES);
        }
    }

    private static Tally requireLedger(SyntheticLog quiet, SyntheticLog log) {
        Account account = new LedgerReader(log.connection()).read(Duration.ofSeconds(90));
        assertThat(account.balance().contradictions()).isEmpty();
        assertThat(account.balance().addsUp()).isTrue();
        Tally tally = account.balance().all();
        assertThat(tally)
                .isEqualTo(new LedgerReader(quiet.connection())
                        .read(Duration.ofSeconds(90))
                        .balance()
                        .all());
        assertThat(tally.generated())
                .as("one more per batch that no batch takes")
                .isEqualTo(BATCHES * (BATCH_SIZE + 1L));
        assertThat(tally.trained()).isEqualTo(BATCHES * 4L);
        assertThat(tally.masked()).isEqualTo(Map.of("m2po", BATCHES * 2L));
        return tally;
    }

    private static LearnerProcess start(BrokerProcess broker, String prefix) {
        return LearnerProcess.start(broker.bootstrapServers(), prefix, BATCHES, log());
    }

    private static File log() {
        return directory.resolve("learners.log").toFile();
    }

    /** The end of what the learners logged. */
    private static String seen() {
        try {
            List<String> lines = Files.readAllLines(log().toPath());
            return "the learners logged: "
                    + String.join("\n", lines.subList(Math.max(0, lines.size() - 40), lines.size()));
        } catch (IOException e) {
            return e.toString();
        }
    }
}
