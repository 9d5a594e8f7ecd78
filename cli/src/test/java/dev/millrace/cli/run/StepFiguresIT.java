package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.runtime.Millrace;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.runtime.train.RunStatus;
import dev.millrace.runtime.train.RunView;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.StepEntry;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.packed.PackedFloats;
import dev.millrace.schemas.packed.PackedMask;
import dev.millrace.schemas.serde.AvroSerde;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Figures that a person steers a run by, against the same ones recomputed by an outsider from what is on the topics.
 */
@Timeout(900)
class StepFiguresIT {
    private static final int SEQUENCES = 32;

    @TempDir
    private Path folder;

    private static ConfigLayers small() {
        return new ConfigLayers()
                .yaml("task: {kind: sort, digits: 2}", "the test")
                .set("admission.batch_sequences=" + SEQUENCES)
                .set("topology.batch.sequences=" + SEQUENCES)
                .set("generator.weight_update=group_end"); // so that one version sampled all of a rollout
    }

    /** What is on the log of a run that has ended. */
    private record Log(List<TrainingStep> steps, Map<Long, LearnerBatch> batches, List<Trajectory> trajectories) {
        static Log read(Path run, String runId) {
            try (LoggedRun logged = LoggedRun.in(run, runId)) {
                Map<Long, LearnerBatch> batches = new HashMap<>();
                logged.records(logged.topics().batches(), LearnerBatch.class)
                        .forEach(batch -> batches.put(batch.getBatchId(), batch));
                List<Trajectory> trajectories = new ArrayList<>();
                var deserializer = AvroSerde.of(
                                Trajectory.class, logged.connection().registry())
                        .deserializer();
                for (ConsumerRecord<byte[], byte[]> record :
                        logged.records(logged.topics().trajectories())) {
                    while (trajectories.size() <= record.offset()) {
                        trajectories.add(null);
                    }
                    trajectories.set((int) record.offset(), deserializer.deserialize(record.topic(), record.value()));
                }
                Map<Long, Long> parents = new HashMap<>();
                logged.records(logged.topics().policyVersions(), PolicyVersion.class)
                        .forEach(version -> parents.put(version.getBatchId(), version.getParentVersion()));
                List<TrainingStep> steps = logged.records(logged.topics().trainingLog(), TrainingStep.class).stream()
                        .sorted(Comparator.comparingLong(TrainingStep::getBatchId))
                        .toList();
                assertThat(steps)
                        .allSatisfy(step -> assertThat(step.getVersion() - 1)
                                .as("the step on batch %d started from the parent of what it made", step.getBatchId())
                                .isEqualTo(parents.get(step.getBatchId())));
                return new Log(steps, batches, trajectories);
            }
        }

        Trajectory of(BatchEntry entry) {
            return trajectories.get(Math.toIntExact(entry.getOffset()));
        }
    }

    private static JsonNode summary(Path run) throws Exception {
        return new ObjectMapper().readTree(run.resolve("summary.json").toFile());
    }

    /** A column of steps.csv. */
    private static List<String> column(Path run, String name) throws Exception {
        List<String> lines = Files.readAllLines(run.resolve("steps.csv"));
        int place = List.of(lines.get(0).split(",", -1)).indexOf(name);
        assertThat(place).as("column %s", name).isNotNegative();
        return lines.stream().skip(1).map(line -> line.split(",", -1)[place]).toList();
    }

    private static double number(Path run, String column, int step) throws Exception {
        return Double.parseDouble(column(run, column).get(step));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 4})
    void shouldSayHowStaleWhatItTrainedOnWasAndKeepTheBound(int eta) throws Exception {
        Path run = folder.resolve("run");
        String runId = new Millrace(small().set("admission.eta=" + eta)
                        .set("learner.max_steps=10")
                        .resolve())
                .in(run)
                .run()
                .runId();
        Log log = Log.read(run, runId);
        long tokensOfAll = 0;
        long sumOfAll = 0;
        long queueOfAll = 0;
        long maxOfAll = 0;
        for (int i = 0; i < log.steps().size(); i++) {
            TrainingStep step = log.steps().get(i);
            long start = step.getVersion() - 1;
            LearnerBatch batch = log.batches().get(step.getBatchId());
            long tokens = 0;
            long sum = 0;
            long inQueue = 0;
            long max = 0;
            for (int e = 0; e < batch.getEntries().size(); e++) {
                StepEntry word =
                        step.getEntries() == null ? null : step.getEntries().get(e);
                long trained = word == null ? batch.getEntries().get(e).getTrainedTokens() : word.getTrainedTokens();
                Trajectory trajectory = log.of(batch.getEntries().get(e));
                assertThat(trajectory.getVersionSpans()).hasSize(1);
                long staleness = start - trajectory.getVersionSpans().get(0).getVersion();
                tokens += trained;
                sum += trained * staleness;
                inQueue += trained * (start - trajectory.getProximalVersion());
                max = trained > 0 ? Math.max(max, staleness) : max;
            }
            assertThat(step.getTokensTrained()).isEqualTo(tokens);
            assertThat(step.getStalenessMean()).isEqualTo((double) sum / tokens);
            assertThat(step.getStalenessMax()).isEqualTo(max).isLessThanOrEqualTo(eta);
            assertThat(step.getStalenessInQueueMean()).isEqualTo((double) inQueue / tokens);
            assertThat(step.getStalenessInFlightMean()).isEqualTo((double) (sum - inQueue) / tokens);
            assertThat(number(run, "staleness_mean", i)).isEqualTo((double) sum / tokens);
            assertThat(column(run, "staleness_max").get(i)).isEqualTo("" + max);
            assertThat(number(run, "staleness_in_queue_mean", i)).isEqualTo((double) inQueue / tokens);
            assertThat(number(run, "staleness_in_flight_mean", i)).isEqualTo((double) (sum - inQueue) / tokens);
            assertThat(batch.getExpectedVersion())
                    .as("the assembler counted the batches ahead")
                    .isEqualTo(start);
            tokensOfAll += tokens;
            sumOfAll += sum;
            queueOfAll += inQueue;
            maxOfAll = Math.max(maxOfAll, max);
        }
        JsonNode staleness = summary(run).path("staleness");
        assertThat(staleness.path("mean").asDouble()).isCloseTo((double) sumOfAll / tokensOfAll, within(1e-9));
        assertThat(staleness.path("in_queue").asDouble()).isCloseTo((double) queueOfAll / tokensOfAll, within(1e-9));
        assertThat(staleness.path("max").asLong()).isEqualTo(maxOfAll);
        assertThat(maxOfAll).isBetween(1L, (long) eta);
    }

    @Test
    void shouldSayHowFarOffPolicyAndHowMuchOfTheBatchItWas() throws Exception {
        Path run = folder.resolve("run");
        String runId = new Millrace(small().set("admission.eta=2")
                        .set("learner.max_steps=8")
                        .set("algorithm.mode=recorded")
                        .set("algorithm.masks=[]")
                        .resolve())
                .in(run)
                .run()
                .runId();
        Log log = Log.read(run, runId);
        List<Double> sizes = new ArrayList<>();
        long trainedOfAll = 0;
        long trainableOfAll = 0;
        for (int i = 0; i < log.steps().size(); i++) {
            TrainingStep step = log.steps().get(i);
            LearnerBatch batch = log.batches().get(step.getBatchId());
            double sum = 0;
            double squares = 0;
            double moment = 0;
            double reward = 0;
            int sequences = 0;
            long trained = 0;
            long trainable = 0;
            for (BatchEntry entry : batch.getEntries()) {
                Trajectory trajectory = log.of(entry);
                byte[] own = PackedMask.toArray(trajectory.getMask());
                ByteBuffer decided = entry.getMask();
                byte[] mask = decided == null ? own : PackedMask.toArray(decided);
                float[] behavior = PackedFloats.toArray(trajectory.getBehaviorLogProbs());
                float[] proximal = PackedFloats.toArray(trajectory.getProximalLogProbs());
                double logWeight = 0;
                int left = 0;
                for (int t = 0; t < mask.length; t++) {
                    trainable += own[t];
                    if (mask[t] == 1) {
                        double logRatio = (double) proximal[t] - behavior[t];
                        logWeight += logRatio;
                        moment += logRatio * logRatio;
                        left++;
                    }
                }
                if (left > 0) {
                    sum += Math.exp(logWeight);
                    squares += Math.exp(2 * logWeight);
                    sequences++;
                }
                trained += left;
                reward += entry.getReward() / batch.getEntries().size();
            }
            double ess = sum * sum / squares / sequences;
            sizes.add(ess);
            trainedOfAll += trained;
            trainableOfAll += trainable;
            assertThat(step.getStalenessMax()).isLessThanOrEqualTo(2);
            assertThat(step.getEssRatio()).isCloseTo(ess, within(1e-6));
            assertThat(step.getSecondMoment()).isCloseTo(moment / trained, within(1e-6));
            assertThat(step.getSecondMomentTrained()).isCloseTo(moment / trained, within(1e-6));
            assertThat(step.getTokensTrained()).isEqualTo(trained);
            assertThat(step.getTokensTrainable()).isEqualTo(trainable);
            assertThat(step.getRewardMean()).isCloseTo(reward, within(1e-9));
            assertThat(number(run, "ess_ratio", i)).isCloseTo(ess, within(1e-6));
            assertThat(number(run, "second_moment", i)).isCloseTo(moment / trained, within(1e-6));
            assertThat(number(run, "trained_share", i)).isCloseTo((double) trained / trainable, within(1e-9));
            assertThat(number(run, "reward", i)).isCloseTo(reward, within(1e-9));
            assertThat(number(run, "rollouts_consumed", i)).isEqualTo(SEQUENCES * (i + 1.0));
        }
        JsonNode summary = summary(run);
        assertThat(summary.at("/ess/min").asDouble())
                .isCloseTo(sizes.stream().min(Double::compare).orElseThrow(), within(1e-6));
        assertThat(summary.path("trained_share").asDouble())
                .isCloseTo((double) trainedOfAll / trainableOfAll, within(1e-9));
    }

    /** An age that no batch keeps: nothing is ever left to train on. */
    @Test
    void shouldGoOnWhileAHundredBatchesInARowAreStarved() throws Exception {
        int starved = 100;
        Path run = folder.resolve("run");
        AtomicReference<RunStatus> last = new AtomicReference<>();
        Millrace millrace = new Millrace(small().set("admission.batch_sequences=8")
                        .set("topology.batch.sequences=8")
                        .set("topology.batch.max_outstanding=2")
                        .set("algorithm.staleness.max_age_ms=1")
                        .set("goal.max_seconds=1800")
                        .resolve())
                .in(run);
        millrace.showing(() -> new RunView() {
            @Override
            public void show(RunStatus status) {
                last.set(status);
                if (status.learning().steps() > starved) {
                    millrace.stop();
                }
            }

            @Override
            public long periodMs() {
                return 200;
            }

            @Override
            public void close() {
                // shows nothing
            }
        });
        String runId = millrace.run().runId();

        assertThat(last.get().learning().steps()).isGreaterThan(starved);
        assertThat(last.get().learning().newest().starved()).isTrue();
        JsonNode summary = summary(run);
        assertThat(summary.path("policy_version").asLong())
                .as("nothing was learnt")
                .isLessThan(starved / 2);
        assertThat(summary.path("starved_steps").asLong()).isGreaterThan(starved / 2);
        assertThat(summary.at("/rollouts/adds_up").asBoolean())
                .as(summary.path("rollouts").toString())
                .isTrue();
        assertThat(column(run, "starved")).contains("true");
        assertThat(runId).isNotEmpty();
    }
}
