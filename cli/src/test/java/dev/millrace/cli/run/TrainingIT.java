package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.cli.deployment.ListedMeter;
import dev.millrace.cli.deployment.QueriedMeters;
import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.metrics.StepMeter;
import dev.millrace.runtime.report.KnownFigures;
import dev.millrace.schemas.BatchEntry;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.serde.AvroSerde;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.imageio.ImageIO;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/**
 * One run of {@code millrace train} from random weights to a mean reward of 0.3, on the default task, into whose topics
 * somebody writes what does not belong there; and what it leaves.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class TrainingIT {
    private static final double GOAL = 0.3;
    /** In the default task each digit is right by chance at most once in ten. */
    private static final double CHANCE = 0.1;

    private static final byte[] GARBAGE =
            "\u0000\u0000\u0000\u0000\u0001 but no record".getBytes(StandardCharsets.UTF_8);

    @TempDir
    private static Path folder;

    private Path directory;
    private String runId;
    private String metrics;
    private String subjects;
    private String probes;
    private int status;
    private List<String> out;
    private List<String> err;
    private JsonNode summary;
    /** The hostile records on the rollouts topic, by the name of what is wrong with them. */
    private final Map<String, ProducerRecord<byte[], byte[]>> hostile = new HashMap<>();

    @BeforeAll
    void train() throws Exception {
        directory = folder.resolve("a run");
        try (TrainProcess process = TrainProcess.train(
                directory,
                "--metrics-port",
                "0",
                "--seed",
                "3",
                "--summary",
                "copies/s.json",
                "--set",
                "goal.mean_reward=" + GOAL,
                "--set",
                "goal.max_seconds=1800")) {
            runId = process.awaitLine("^run (\\S+) in a run$").group(1);
            URI http = URI.create(process.awaitLine("^metrics at (http://127\\.0\\.0\\.1:\\d+)/metrics$")
                    .group(1));
            Matcher broker = process.awaitLine("^broker at (\\S+), topics (\\S+)\\*$");
            process.awaitStep(1);
            try (LoggedRun run = LoggedRun.on(broker.group(1), runId, broker.group(2))) {
                disturb(run);
            }
            metrics = awaitMetrics(http);
            subjects = get(http.resolve("/subjects"));
            probes = get(http.resolve("/livez")) + get(http.resolve("/readyz"));
            status = process.awaitExit(TrainProcess.PATIENCE);
            out = process.out();
            err = process.err();
        }
        assertThat(directory.resolve("summary.json")).exists();
        summary = new ObjectMapper().readTree(directory.resolve("summary.json").toFile());
    }

    private void disturb(LoggedRun run) throws Exception {
        String topic = run.topics().rollouts();
        ConsumerRecord<byte[], byte[]> own = run.records(topic).get(0);
        Rollout foreign = Rollout.newBuilder(run.records(topic, Rollout.class).get(0))
                .setRunId("another-run")
                .build();
        hostile.put("unreadable", new ProducerRecord<>(topic, "k".getBytes(StandardCharsets.UTF_8), GARBAGE));
        hostile.get("unreadable").headers().add("trace", "t-1".getBytes(StandardCharsets.UTF_8));
        hostile.put("cut", new ProducerRecord<>(topic, own.key(), Arrays.copyOf(own.value(), own.value().length / 2)));
        hostile.put(
                "wrong-run",
                new ProducerRecord<>(topic, own.partition(), own.key(), run.encode(topic, Rollout.class, foreign)));
        hostile.put("repeated", new ProducerRecord<>(topic, own.partition(), own.key(), own.value()));
        run.send(List.copyOf(hostile.values()));
        run.send(run.topics().required().stream()
                .filter(other ->
                        !other.equals(topic) && !other.equals(run.topics().run()))
                .map(other -> new ProducerRecord<>(other, "k".getBytes(StandardCharsets.UTF_8), GARBAGE))
                .toList());
    }

    private static String get(URI uri) throws Exception {
        HttpResponse<String> response = HttpClient.newHttpClient()
                .send(
                        HttpRequest.newBuilder(uri)
                                .timeout(Duration.ofSeconds(90))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        assertThat(response.statusCode()).as(uri.toString()).isEqualTo(200);
        return response.body();
    }

    /** The meters once the dead letters have reached them. */
    private static String awaitMetrics(URI http) throws Exception {
        long deadline = System.nanoTime() + TrainProcess.PATIENCE.toNanos();
        while (true) {
            String body = get(http.resolve("/metrics"));
            boolean isOfOneStep = steps(body).equals(steps(get(http.resolve("/metrics")))); // and not between two
            if (isOfOneStep
                    && !steps(body).isEmpty()
                    && meter(body, "millrace_topology_dead_letters_total\\{[^}]*reason=\"wrong-run\"[^}]*}") >= 1) {
                return body;
            }
            assertThat(System.nanoTime())
                    .as("dead letters in the meters:\n%s", body)
                    .isLessThan(deadline);
            LockSupport.parkNanos(200_000_000);
        }
    }

    /** Line of the newest step. */
    private static List<String> steps(String body) {
        return body.lines()
                .filter(line -> line.contains("role=\"learner\"") && !line.startsWith("millrace_policy_version"))
                .toList();
    }

    private static double meter(String body, String pattern) {
        Matcher line = Pattern.compile("(?m)^" + pattern + " (\\S+)$").matcher(body);
        double sum = Double.NaN;
        while (line.find()) {
            sum = (Double.isNaN(sum) ? 0 : sum) + Double.parseDouble(line.group(1));
        }
        return sum;
    }

    @AfterAll
    void showWhatItSaid() {
        if (status != 0) {
            System.out.println(String.join("\n", out) + "\n" + String.join("\n", err));
        }
    }

    @Test
    void shouldLiveAndBeReadyWhileItTrains() {
        assertThat(probes).isEqualTo("ok\nok\n");
    }

    @Test
    void shouldLogItsRolesAndVersionsIntoItsFolder() throws Exception {
        assertThat(Files.readAllLines(directory.resolve("millrace.log")))
                .anyMatch(line -> line.contains(" INFO  run=" + runId + " role=admission "))
                .anyMatch(line -> line.contains(" run=" + runId + " role=learner version="));
    }

    @Test
    void shouldReachItsGoalFromChance() {
        assertThat(status).isZero();
        assertThat(err).isEmpty();
        assertThat(summary.path("goal_reached").asBoolean()).isTrue();
        assertThat(summary.at("/reward/first").asDouble()).isLessThan(2 * CHANCE);
        assertThat(summary.at("/reward/last").asDouble()).isGreaterThanOrEqualTo(GOAL - 1e-9);
        assertThat(summary.at("/reward/best").asDouble())
                .isGreaterThanOrEqualTo(summary.at("/reward/last").asDouble());
    }

    @Test
    void shouldCarryInItsSummaryEveryNameThatIsReliedUpon() throws Exception {
        assertThat(summary.path("run_id").asText()).isEqualTo(runId);
        for (String pointer : List.of(
                "/steps",
                "/policy_version",
                "/seconds/to_first_step",
                "/seconds/total",
                "/reward/first",
                "/reward/best",
                "/reward/last",
                "/tokens/generated",
                "/tokens/scored",
                "/tokens/trained",
                "/rollouts/generated",
                "/rollouts/trained",
                "/rollouts/masked",
                "/rollouts/dead_lettered",
                "/rollouts/in_flight",
                "/staleness/mean",
                "/staleness/max",
                "/ess/min",
                "/ess/median",
                "/idle/generator",
                "/idle/learner")) {
            assertThat(summary.at(pointer).isNumber()).as(pointer).isTrue();
        }
        assertThat(summary.at("/rollouts/dropped").isObject()).isTrue();
        assertThat(summary.path("policy_version")).isEqualTo(summary.path("steps"));
        assertThat(summary.at("/seconds/to_first_step").asDouble())
                .isBetween(0.1, summary.at("/seconds/total").asDouble());
        assertThat(summary.at("/ess/min").asDouble())
                .isBetween(0.0, summary.at("/ess/median").asDouble());
        assertThat(folder.resolve("copies/s.json")).hasSameTextualContentAs(directory.resolve("summary.json"));
    }

    @Test
    void shouldOverlapGenerationAndLearning() {
        assertThat(summary.at("/idle/generator").asDouble()).isBetween(0.0, 0.99);
        assertThat(summary.at("/idle/learner").asDouble()).isBetween(0.0, 0.99);
        assertThat(summary.at("/staleness/max").asLong())
                .as("somebody sampled while somebody else learnt")
                .isPositive();
    }

    @Test
    void shouldAccountForEveryRollout() {
        JsonNode rollouts = summary.path("rollouts");
        long dropped = 0;
        for (JsonNode count : rollouts.path("dropped")) {
            dropped += count.asLong();
        }
        assertThat(rollouts.path("generated").asLong())
                .isEqualTo(rollouts.path("trained").asLong()
                        + rollouts.path("masked").asLong()
                        + dropped
                        + rollouts.path("dead_lettered").asLong()
                        + rollouts.path("in_flight").asLong());
        assertThat(rollouts.path("adds_up").asBoolean()).as(rollouts.toString()).isTrue();
        assertThat(rollouts.path("dead_lettered").asLong())
                .as("garbage, half a rollout, another run's")
                .isEqualTo(3);
        assertThat(rollouts.at("/dropped/duplicate").asLong())
                .as("the rollout that came twice")
                .isEqualTo(1);
        assertThat(rollouts.path("trained").asLong())
                .isEqualTo(256 * summary.path("steps").asLong()
                        - rollouts.path("masked").asLong());
    }

    @Test
    void shouldKeepWhatItRefusedAsItCameWithTheReason() {
        try (LoggedRun run = LoggedRun.in(directory, runId)) {
            List<ConsumerRecord<byte[], byte[]>> letters =
                    run.records(run.topics().deadLetters());
            for (String reason : List.of("unreadable", "wrong-run")) {
                ProducerRecord<byte[], byte[]> sent = hostile.get(reason);
                assertThat(letters)
                        .filteredOn(letter -> Arrays.equals(letter.value(), sent.value())
                                && run.topics().rollouts().equals(header(letter, DeadLetterHeaders.SOURCE_TOPIC)))
                        .singleElement()
                        .satisfies(letter -> {
                            assertThat(letter.key()).isEqualTo(sent.key());
                            assertThat(header(letter, DeadLetterHeaders.REASON)).isEqualTo(reason);
                            assertThat(header(letter, DeadLetterHeaders.MESSAGE))
                                    .isNotBlank();
                            assertThat(Long.parseLong(header(letter, DeadLetterHeaders.SOURCE_OFFSET)))
                                    .isNotNegative();
                            sent.headers()
                                    .forEach(kept -> assertThat(letter.headers()
                                                    .lastHeader(kept.key())
                                                    .value())
                                            .isEqualTo(kept.value()));
                        });
            }
            for (String topic : List.of(
                    run.topics().prompts(),
                    run.topics().scores(),
                    run.topics().trajectories(),
                    run.topics().batches(),
                    run.topics().policyVersions())) {
                assertThat(letters)
                        .as("garbage on " + topic)
                        .filteredOn(letter -> topic.equals(header(letter, DeadLetterHeaders.SOURCE_TOPIC)))
                        .singleElement()
                        .satisfies(letter -> assertThat(letter.value()).isEqualTo(GARBAGE));
            }
        }
    }

    private static String header(ConsumerRecord<byte[], byte[]> record, String name) {
        Header header = record.headers().lastHeader(name);
        return header == null ? null : new String(header.value(), StandardCharsets.UTF_8);
    }

    @Test
    void shouldWriteOneRowPerStep() throws Exception {
        List<String> rows = Files.readAllLines(directory.resolve("steps.csv"));
        assertThat(rows.get(0)).startsWith("step,version,reward,");
        assertThat(rows).hasSize(1 + summary.path("steps").asInt());
        for (int i = 1; i < rows.size(); i++) {
            assertThat(rows.get(i)).startsWith(i + "," + i + ",").doesNotContain("NaN");
        }
        double lastTen = rows.subList(rows.size() - 10, rows.size()).stream()
                .mapToDouble(row -> Double.parseDouble(row.split(",")[2]))
                .average()
                .orElseThrow();
        assertThat(lastTen).isCloseTo(summary.at("/reward/last").asDouble(), within(1e-5));
    }

    /** Meters that say of something which does not happen in this run. */
    private static final Set<String> ABSENT_HERE = Set.of(
            "millrace_alarms", // while something keeps the run from getting on
            "millrace_serving_unserved_seconds", // while a server keeps old weights
            "millrace_evaluator_evaluations_total", // where versions are evaluated, as are the others below
            "millrace_evaluator_passed_over_versions_total",
            "millrace_evaluator_failed_responses_total",
            "millrace_evaluator_idle_seconds_total",
            "millrace_evaluator_evaluated_version",
            "millrace_evaluator_best_version",
            "millrace_evaluator_best_reward_low",
            "millrace_evaluator_evaluations_since_best",
            "millrace_evaluator_first_start_log_prob",
            "millrace_evaluator_truncated_ratio",
            "millrace_evaluator_reward",
            "millrace_evaluator_reward_low",
            "millrace_evaluator_reward_high",
            "millrace_evaluator_pass_at_k",
            "millrace_evaluator_start_log_prob");

    @Test
    void shouldHaveEveryMeterThatADashboardOrAnAlertAsksFor() throws Exception {
        Set<String> asked = new TreeSet<>(QueriedMeters.all());
        assertThat(asked).hasSizeGreaterThan(50).containsAll(ABSENT_HERE);
        asked.removeAll(ABSENT_HERE);

        assertThat(named(metrics)).containsAll(asked);
    }

    @Test
    void shouldListEveryMeterThatItServes() throws Exception {
        Set<String> listed = new TreeSet<>();
        ListedMeter.all().forEach(meter -> listed.add(meter.name()));
        KnownFigures.all().stream()
                .flatMap(figure -> StepMeter.of(figure.key()).stream())
                .forEach(meter -> listed.add(meter.scraped()));

        Set<String> strangers = new TreeSet<>(named(metrics));
        strangers.removeAll(listed);
        strangers.removeIf(name -> !name.startsWith("millrace_") && !name.startsWith("kafka_"));
        strangers.removeIf(name -> name.startsWith("millrace_rollout_corr_")); // by verl's own names
        assertThat(strangers).isEmpty();
    }

    @Test
    void shouldKeepWhatAStepCosts() throws Exception {
        JsonNode work =
                new ObjectMapper().readTree(directory.resolve("work.json").toFile());
        assertThat(work.path("steps").asLong()).isPositive();
        for (String pointer : List.of(
                "/processor_ms/learner",
                "/processor_ms/generator",
                "/processor_ms/scorer",
                "/processor_ms/topology",
                "/processor_ms/admission",
                "/processor_ms/broker",
                "/requests/generator",
                "/requests/topology",
                "/commit_ms/learner",
                "/broker/EndTxn",
                "/broker/flushes")) {
            assertThat(work.at(pointer).asDouble()).as(pointer + " of " + work).isPositive();
        }
    }

    private static Set<String> named(String scrape) {
        Set<String> names = new TreeSet<>();
        for (Matcher line = Pattern.compile("(?m)^([a-z][a-z0-9_]*)[ {]").matcher(scrape); line.find(); ) {
            names.add(line.group(1));
        }
        return names;
    }

    /** The gauges are of one step, and that one's record says the same; what it should say is told by the batch it was made of. */
    @Test
    void shouldShowTheRecordOfTheNewestStep() throws Exception {
        long number = (long) meter(metrics, "millrace_training_global_step\\{[^}]*}");
        try (LoggedRun run = LoggedRun.in(directory, runId)) {
            TrainingStep step = readable(run, run.topics().trainingLog(), TrainingStep.class)
                    .filter(record -> record.getBatchId() == number - 1)
                    .findFirst()
                    .orElseThrow();
            LearnerBatch batch = readable(run, run.topics().batches(), LearnerBatch.class)
                    .filter(record -> record.getBatchId() == number - 1)
                    .findFirst()
                    .orElseThrow();
            double reward = batch.getEntries().stream()
                    .mapToDouble(BatchEntry::getReward)
                    .average()
                    .orElseThrow();
            long trained = batch.getEntries().stream()
                    .mapToLong(BatchEntry::getTrainedTokens)
                    .sum();

            assertThat(learner("critic_score_mean")).isCloseTo(reward, within(1e-9));
            assertThat(meter(metrics, "millrace_step_tokens_trained\\{role=\"topology\"}"))
                    .isEqualTo(trained);
            Map<String, Double> figures = step.getMetrics();
            assertThat(learner("step_ess_ratio")).isEqualTo(step.getEssRatio());
            assertThat(learner("step_staleness_mean")).isEqualTo(step.getStalenessMean());
            assertThat(learner("step_staleness_p90")).isEqualTo(figures.get("staleness_p90"));
            assertThat(learner("step_second_moment")).isEqualTo(step.getSecondMoment());
            assertThat(learner("step_tokens_trained")).isEqualTo(step.getTokensTrained());
            assertThat(learner("actor_entropy")).isEqualTo(figures.get("entropy"));
            assertThat(learner("actor_lr")).isEqualTo(step.getLearningRate());
            assertThat(learner("response_length_mean")).isEqualTo(figures.get("response_tokens_mean"));
            assertThat(learner("step_finished_timestamp_seconds"))
                    .isCloseTo(step.getFinishedAtMs() / 1e3, within(1e-3));
            assertThat(meter(metrics, "millrace_stage_tokens_seen\\{role=\"learner\",stage=\"m2po\"}"))
                    .isEqualTo(figures.get("stage.m2po.tokens_seen"));
            assertThat(meter(
                            metrics,
                            "millrace_rollout_corr_chi2_token\\{role=\"learner\",stage=\"rollout_correction\"}"))
                    .isEqualTo(figures.get("stage.rollout_correction.rollout_corr/chi2_token"));
        }
    }

    /** Without the garbage that the test has put there. */
    private static <R extends SpecificRecord> Stream<R> readable(LoggedRun run, String topic, Class<R> type) {
        var deserializer = AvroSerde.of(type, run.connection().registry()).deserializer();
        return run.records(topic).stream()
                .filter(record -> !Arrays.equals(record.value(), GARBAGE))
                .map(record -> deserializer.deserialize(topic, record.value()));
    }

    private double learner(String name) {
        return meter(metrics, "millrace_" + name + "\\{role=\"learner\"}");
    }

    @Test
    void shouldDrawAPicture() throws Exception {
        assertThat(Files.readAllBytes(directory.resolve("run.png"))).startsWith(0x89, 'P', 'N', 'G');
        assertThat(ImageIO.read(directory.resolve("run.png").toFile()).getWidth())
                .isGreaterThan(300);
    }

    @Test
    void shouldKeepTheConfigurationAsItWasUsed() {
        MillraceConfig used =
                ConfigBinder.bind(MillraceConfig.defaults(), ConfigTree.read(directory.resolve("config.yaml")));
        assertThat(used.run().id()).isEqualTo(runId);
        assertThat(used.goal().meanReward()).isEqualTo(GOAL);
        assertThat(used.run().seed()).isEqualTo(3);
        assertThat(used.admission().sampling().seed()).isEqualTo(3);
        assertThat(used.topology()).isEqualTo(MillraceConfig.defaults().topology());
    }

    @Test
    void shouldServeTheMeters() {
        for (String name : List.of(
                "millrace_generator_tokens_total",
                "millrace_generator_rollouts_total",
                "millrace_generator_idle_seconds_total",
                "millrace_scorer_tokens_total",
                "millrace_scorer_idle_seconds_total",
                "millrace_learner_tokens_total",
                "millrace_learner_steps_total",
                "millrace_learner_idle_seconds_total",
                "millrace_topology_joined_total",
                "millrace_topology_batches_total",
                "millrace_topology_dead_letters_total",
                "millrace_policy_version",
                "millrace_pending_rollouts")) {
            assertThat(meter(metrics, name + "(?:\\{[^}]*})?")).as(name).isNotNaN();
        }
        assertThat(meter(metrics, "millrace_learner_steps_total(?:\\{[^}]*})?")).isPositive();
        for (String role : List.of("generator", "scorer", "learner")) {
            assertThat(meter(metrics, "millrace_policy_version\\{[^}]*role=\"" + role + "\"[^}]*}"))
                    .as(role)
                    .isNotNegative();
        }
        assertThat(metrics)
                .contains(
                        "jvm_memory_used_bytes",
                        "kafka_consumer_fetch_manager_records_lag_max{client_id=",
                        "kafka_producer_txn_commit_time_ns_total",
                        "kafka_consumergroup_lag_sum{consumergroup=\"millrace.generator\"}",
                        "kafka_stream_thread_process_rate")
                .containsPattern(
                        "kafka_consumer_fetch_manager_records_lag\\{client_id=\"[^\"]+\",partition=\"\\d+\",topic=\"")
                .contains(
                        "client_id=\"learner-batches\"",
                        "client_id=\"learner-commits\"",
                        "client_id=\"admission-manifests\"")
                .doesNotContain("client_id=\"consumer-", "client_id=\"producer-", "client_id=\"adminclient-")
                .doesNotContain("topic=\"millrace_");
    }

    @Test
    void shouldServeTheSchemasToAStockClient() {
        assertThat(subjects).startsWith("[").contains("\"millrace.rollouts-value\"", "\"millrace.training-log-value\"");
    }

    @Test
    void shouldSayHowItGoesInLines() {
        assertThat(out)
                .anyMatch(line -> line.startsWith("00:") && line.contains("  step ") && line.contains("  reward "))
                .contains(
                        "the run stopped because the goal was reached",
                        "  results are in a run: config.yaml, summary.json, steps.csv, run.png");
    }
}
