package dev.millrace.learner;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.infra.broker.EmbeddedBroker;
import dev.millrace.schemas.TrainingStep;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * {@code kill -9} at random moments, between any two calls that change something on the broker.
 * {@code -Dmillrace.learner.kills=50} for so many of them, {@code -Dmillrace.learner.seed} for other moments.
 */
@Timeout(1_800)
class KilledLearnerIT {
    private static final int KILLS = Integer.getInteger("millrace.learner.kills", 3);
    private static final long SEED = Long.getLong("millrace.learner.seed", 1L);
    /** About two thirds of what a step prints, so that a life is as likely to end in its first step as in its second. */
    private static final int CALLS = 100;

    @TempDir
    private static Path directory;

    @Test
    void shouldPublishTheUndisturbedVersionsWhateverIsKilled() throws Exception {
        int steps = Math.max(4, KILLS);
        try (EmbeddedBroker broker = EmbeddedBroker.start(directory);
             SyntheticLog undisturbed = new SyntheticLog(broker.bootstrapServers(), "undisturbed.");
             SyntheticLog log = new SyntheticLog(broker.bootstrapServers(), "killed.")) {
            undisturbed.produce(steps, 6);
            try (LearnerProcess learner = new LearnerProcess(broker.bootstrapServers(), "undisturbed.", steps)) {
                learner.end();
            }
            log.produce(steps, 6);
            SplittableRandom random = new SplittableRandom(SEED);
            List<String> lastCalls = new ArrayList<>();
            for (int kill = 0; kill < KILLS; kill++) {
                try (LearnerProcess learner = new LearnerProcess(broker.bootstrapServers(), "killed.", steps)) {
                    String last = learner.killAt(random.nextInt(CALLS));
                    assertThat(last).as("kill %d came before the end", kill).isNotEmpty();
                    lastCalls.add(last);
                }
            }
            int versionsAfterKills = log.versions().size();
            try (LearnerProcess learner = new LearnerProcess(broker.bootstrapServers(), "killed.", steps)) {
                learner.end();
            }

            assertThat(log.hashes()).isEqualTo(undisturbed.hashes()).hasSize(steps + 1);
            assertThat(log.optimizerHashes()).isEqualTo(undisturbed.optimizerHashes());
            assertThat(log.steps()).extracting(TrainingStep::getBatchId)
                .containsExactlyElementsOf(LongStream.range(0, steps).boxed().toList());
            assertThat(log.steps()).extracting(TrainingStep::getTokensTrained)
                .isEqualTo(undisturbed.steps().stream().map(TrainingStep::getTokensTrained).toList());
            assertThat(log.committedOffset()).isEqualTo(steps);
            Map<String, Integer> kills = new TreeMap<>();
            lastCalls.forEach(call -> kills.merge(call, 1, Integer::sum));
            System.out.printf("%d kills, %d versions while they lasted, then the rest of %d: %s%n", KILLS,
                versionsAfterKills, steps + 1, kills);
        }
    }
}
