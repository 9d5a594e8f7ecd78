package dev.millrace.view.http;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.audit.doctor.Doctor;
import dev.millrace.audit.doctor.Examination;
import dev.millrace.audit.doctor.ExaminationReader;
import dev.millrace.audit.doctor.Finding;
import dev.millrace.audit.trace.Laps;
import dev.millrace.corrections.diagnostics.Diagnosis;
import dev.millrace.log.Alarm;
import dev.millrace.log.LogConnection;
import dev.millrace.log.deadletter.DeadLetterHeaders;
import dev.millrace.log.scan.RunRecords;
import dev.millrace.log.scan.ScanException;
import dev.millrace.replay.Alternative;
import dev.millrace.replay.StepRange;
import dev.millrace.replay.WhatIf;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.retrain.TrialLimit;
import dev.millrace.report.Report;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.pipeline.RunTokenizer;
import dev.millrace.runtime.report.LapReport;
import dev.millrace.runtime.report.RecordJson;
import dev.millrace.runtime.report.Treatment;
import dev.millrace.runtime.report.TreatmentReport;
import dev.millrace.runtime.train.ConsumerLag;
import dev.millrace.runtime.train.RunStatus;
import dev.millrace.runtime.train.WorkFile;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Outcome;
import dev.millrace.schemas.PolicyVersion;
import dev.millrace.schemas.PromptRequest;
import dev.millrace.schemas.Reward;
import dev.millrace.schemas.Rollout;
import dev.millrace.schemas.Score;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.TrainingStep;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.VersionEvaluation;
import dev.millrace.schemas.run.RunTopics;
import dev.millrace.schemas.serde.AvroSerde;
import dev.millrace.schemas.serde.MalformedRecordException;
import dev.millrace.view.follow.OpenRun;
import dev.millrace.view.follow.RunSource;
import dev.millrace.view.follow.ViewedRun;
import dev.millrace.view.follow.ViewedRun.Known;
import dev.millrace.view.follow.ViewedRuns;
import dev.millrace.view.http.CourseAnswer.StepsAnswer;
import dev.millrace.view.http.Query.BadRequestException;
import dev.millrace.view.index.EvaluationIndex;
import dev.millrace.view.index.RunIndex;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.LongSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupAuthorizationException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Routes an address to its answer. */
public final class Answers {
    private static final Logger LOG = LoggerFactory.getLogger(Answers.class);

    /** Age limit of values such as rates. */
    private static final long FRESH_MS = 1000;
    /** Reading group lags and laps costs the cluster work. */
    private static final long LAGS_MS = 5000;

    private static final int LAPS = 50;

    private static final Duration DIAGNOSIS_PATIENCE = Duration.ofSeconds(30);
    /** On one thread, next to a run that may be training. */
    private static final TrialLimit TRIED = new TrialLimit(128, Duration.ofSeconds(10));

    private static final Pattern PLACE = Pattern.compile("([a-z-]{1,60})-(\\d{1,6})@(\\d{1,18})");
    private static final int MOST_BYTES = 4096;
    private static final int STALENESS_STEPS = 8;
    private static final int MOST_VERSIONS = 500;

    private final ViewedRuns runs;
    private final SharedAnswers shared = new SharedAnswers(System::nanoTime);

    private final ReportShelf reports;

    Answers(ViewedRuns runs, ReportShelf reports) {
        this.runs = runs;
        this.reports = reports;
    }

    String reports() {
        return reports.list(runs.sources()).toString();
    }

    String report(String id) throws BadRequestException {
        return JsonNodeFactory.instance
                .objectNode()
                .set(
                        "report",
                        reports.report(runs.sources(), id)
                                .orElseThrow(() -> new BadRequestException(
                                        "there is no report " + id + "; the list of reports has those that there are")))
                .toString();
    }

    String runs() {
        ArrayNode array = JsonNodeFactory.instance.arrayNode();
        for (RunSource source : runs.sources()) {
            Optional<ViewedRun> open = runs.opened(source.name());
            if (open.isPresent()) {
                array.add(RunFacts.of(open.get()).put("open", true));
            } else {
                array.add(RunFacts.of(source));
            }
        }
        return JsonNodeFactory.instance.objectNode().set("runs", array).toString();
    }

    String of(ViewedRun run, String question, Query query) throws BadRequestException, InterruptedException {
        if (question.equals("facts")) {
            return RunFacts.of(run).toString();
        }
        if (question.equals("algorithms")) {
            ArrayNode names = JsonNodeFactory.instance.arrayNode();
            RedecidedBatch.names().forEach(names::add);
            return JsonNodeFactory.instance.objectNode().set("names", names).toString();
        }
        RunIndex index = run.index().orElse(null);
        Known known = run.known().orElse(null);
        if (index == null || known == null) {
            return RunFacts.of(run).put("opening", true).toString();
        }
        // a replaced index counts from the beginning
        String key = run.source().name() + "/" + System.identityHashCode(index) + "/" + epochOf(known) + "/" + question
                + query.values();
        return switch (question) {
            case "steps" -> shared.get(key, index.stepChanges(), 0, () -> made(run, index, known, question, query));
            case "now" ->
                shared.get(key, SharedAnswers.NO_VERSION, FRESH_MS, () -> made(run, index, known, question, query));
            case "lags", "lap" ->
                shared.get(key, SharedAnswers.NO_VERSION, LAGS_MS, () -> made(run, index, known, question, query));
            case "evaluations", "staleness", "weights", "ledger", "letters", "choices" ->
                shared.get(key, index.changes(), FRESH_MS, () -> made(run, index, known, question, query));
            default -> made(run, index, known, question, query);
        };
    }

    private static int epochOf(Known known) {
        return known.run().epoch();
    }

    private static String made(ViewedRun run, RunIndex index, Known known, String question, Query query)
            throws BadRequestException, InterruptedException {
        int epoch = epochOf(known);
        return switch (question) {
            case "now" -> now(run, index, epoch, System.currentTimeMillis()).toString();
            case "steps" ->
                query.text("newest").isPresent()
                        ? StepsAnswer.newest(index, epoch)
                        : StepsAnswer.of(index, epoch, query.number("after", -1));
            case "evaluations" -> evaluations(index, epoch);
            case "staleness" -> staleness(index, epoch).toString();
            case "lags" -> run.ask(Answers::lags).toString();
            case "lap" -> run.ask(open -> lap(open, run.source())).toString();
            case "diagnosis" -> run.ask(open -> diagnosis(run, open)).toString();
            case "choices" -> RolloutRows.choices(index).toString();
            case "rollouts" -> RolloutRows.list(index, query.values()).toString();
            case "points" ->
                RolloutRows.points(index, query.values())
                        .orElseThrow(() -> new BadRequestException("points are of numbers that rollouts have"))
                        .toString();
            case "rollout" -> rollout(run, index, query.required("id"));
            case "record" -> {
                String place = query.required("place");
                yield run.ask(open -> record(open, place)).toString();
            }
            case "batch" ->
                batch(index, epoch, query.number("batch", -1))
                        .orElseGet(() -> JsonNodeFactory.instance.objectNode())
                        .toString();
            case "redecide" -> redecided(run, index, epoch, query);
            case "ledger" -> LedgerRows.of(index).toString();
            case "letters" -> LedgerRows.letters(index, run.source().options()).toString();
            case "account" -> account(run).toString();
            case "weights" -> weights(index, epoch).toString();
            default -> throw new BadRequestException("there is nothing called " + question + " of a run");
        };
    }

    private static String rollout(ViewedRun run, RunIndex index, String id) throws BadRequestException {
        Optional<ObjectNode> found = run.ask(open -> RolloutAnswer.of(
                open,
                index,
                id,
                RunTokenizer.of(open.config(), open.connection(), why -> LOG.info("without its text: {}", why))));
        return found.orElseThrow(() -> new BadRequestException("there is no rollout " + id + " in the index"
                        + (run.progress().isWhole() ? "" : ", which is still being filled")))
                .toString();
    }

    private static String redecided(ViewedRun run, RunIndex index, int epoch, Query query)
            throws BadRequestException, InterruptedException {
        long batch = query.number("batch", -1);
        String named = query.required("as");
        ObjectNode found = batch(index, epoch, batch)
                .orElseThrow(() -> new BadRequestException("there is no batch " + batch + " in the index"));
        try {
            return run.ask(open -> redecided(open, found.path("offset").asLong(), named))
                    .toString();
        } catch (ConfigException e) {
            throw new BadRequestException(String.valueOf(e.getMessage()));
        }
    }

    private static ObjectNode redecided(OpenRun open, long offset, String named) {
        try {
            return RedecidedBatch.of(open, offset, named);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return JsonNodeFactory.instance.objectNode().put("problem", "the page was closed");
        }
    }

    private static ObjectNode account(ViewedRun run) {
        return run.ask(open -> open.records()
                .map(LedgerRows::check)
                .orElseGet(() -> JsonNodeFactory.instance
                        .objectNode()
                        .put("problem", "an archive has no log to add up; import it first")));
    }

    /** Course of a run for comparison: from its folder, else from its index. */
    String course(String name) throws BadRequestException {
        RunSource source = runs.sources().stream()
                .filter(it -> it.name().equals(name))
                .findFirst()
                .orElseThrow(() -> new BadRequestException("there is no run " + name));
        Optional<ObjectNode> table = source.folder().flatMap(CourseAnswer::of);
        if (table.isPresent()) {
            return table.get().toString();
        }
        ViewedRun run = runs.run(name).orElseThrow();
        RunIndex index = run.index().orElse(null);
        Known known = run.known().orElse(null);
        return index == null || known == null
                ? JsonNodeFactory.instance
                        .objectNode()
                        .put("problem", "it is being opened; look again in a few seconds")
                        .toString()
                : CourseAnswer.of(index, known.run().epoch(), known.config()).toString();
    }

    /** Empty for an archive or an ended run. */
    private static ObjectNode lags(OpenRun open) {
        if (open.connection().isEmpty()) {
            return JsonNodeFactory.instance.objectNode();
        }
        try {
            return lags(open.connection().get(), open.admin());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return JsonNodeFactory.instance.objectNode().put("why", "the page was closed");
        }
    }

    /** As {@code millrace lap}, over the last {@value #LAPS} steps. */
    private static ObjectNode lap(OpenRun open, RunSource source) {
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        RunRecords records = open.records().orElseGet(() -> (ArchivedRun) open.recorded());
        try {
            Laps laps = Laps.read(records, LAPS, DIAGNOSIS_PATIENCE);
            return laps.laps().isEmpty()
                    ? json.put("why", "no step has all its records, from its prompt to a generator with its version")
                    : json.set(
                            "report",
                            LapReport.of(laps, source.folder().flatMap(WorkFile::read))
                                    .tree());
        } catch (ScanException e) { // such as an archive without prompts
            return json.put("why", String.valueOf(e.getMessage()));
        }
    }

    private static ObjectNode diagnosis(ViewedRun run, OpenRun open) {
        try {
            if (open.records().isEmpty()) {
                return diagnosis(open);
            }
            Map<String, Long> behind = new HashMap<>();
            lags(open)
                    .path("behind")
                    .properties()
                    .forEach(
                            entry -> behind.put(entry.getKey(), entry.getValue().asLong()));
            return diagnosis(open, open.records().get(), behind, run.source().alarms());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return JsonNodeFactory.instance.objectNode();
        }
    }

    private static Optional<ObjectNode> batch(RunIndex index, int epoch, long batch) {
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        index.read(
                "SELECT batch.batch, assembled_version, expected_version, assembled_ms, batch.partition, batch.offset, step.version,"
                        + " step.partition, step.offset, step.finished_ms, step.starved FROM batch LEFT JOIN step USING(epoch, batch)"
                        + " WHERE epoch = ? AND (batch = ? OR ? < 0 AND step.version IS NOT NULL) ORDER BY batch DESC LIMIT 1",
                List.of(epoch, batch, batch),
                row -> {
                    json.put("batch", row.getLong(1))
                            .put("assembled_version", row.getLong(2))
                            .put("expected_version", row.getLong(3))
                            .put("assembled_ms", row.getLong(4))
                            .put("offset", row.getLong(6))
                            .put("place", "batches-" + row.getLong(5) + "@" + row.getLong(6));
                    if (row.getObject(7) != null) {
                        json.put("version", row.getLong(7))
                                .put("step_place", "training-log-" + row.getLong(8) + "@" + row.getLong(9))
                                .put("finished_ms", row.getLong(10))
                                .put("starved", row.getInt(11) == 1);
                    }
                });
        if (!json.has("batch")) {
            return Optional.empty();
        }
        json.put(
                "last",
                index.numbers("SELECT coalesce(max(batch), -1) FROM batch WHERE epoch = ?", epoch)
                        .get(0));
        List<Object> key = List.of(epoch, json.path("batch").asLong());
        index.objects(
                        "SELECT 'policy-versions-' || partition || '@' || offset AS place, published_ms FROM version"
                                + " WHERE epoch = ? AND batch = ?",
                        key)
                .forEach(published -> json.set("published", published));
        json.putArray("entries")
                .addAll(index.objects(
                        "SELECT id, grp AS \"group\", reward, policy_tokens AS tokens, advantage, staleness, trained_tokens,"
                                + " masked_by, log_ratio AS ratio FROM rollout WHERE epoch = ? AND batch = ? ORDER BY entry",
                        key));
        return Optional.of(json);
    }

    /** From the whole log, as {@code millrace doctor}. */
    private static ObjectNode diagnosis(OpenRun run, RunRecords records, Map<String, Long> lags, List<Alarm> alarms)
            throws InterruptedException {
        Examination examination =
                new ExaminationReader(records, DIAGNOSIS_PATIENCE, Clock.systemUTC()).read(lags, alarms);
        return treated(
                json(new Doctor().findings(examination), examination.steps().size()), run, examination.offPolicy());
    }

    private static ObjectNode diagnosis(OpenRun run) throws InterruptedException {
        Diagnosis[] last = new Diagnosis[1];
        int[] steps = new int[1];
        new WhatIf(
                        run.recorded(),
                        StepRange.ALL,
                        List.of(new Alternative("recorded", run.config().algorithm())))
                .replay(1, step -> {
                    steps[0]++;
                    step.diagnoses().get(0).ifPresent(found -> last[0] = found);
                });
        Optional<Diagnosis> found = Optional.ofNullable(last[0]);
        return treated(json(found.map(Doctor::offPolicy).orElse(List.of()), steps[0]), run, found);
    }

    /** Adds the smallest fix as part of a report, if there is a diagnosis. */
    private static ObjectNode treated(ObjectNode json, OpenRun run, Optional<Diagnosis> diagnosis)
            throws InterruptedException {
        if (diagnosis.filter(found -> !found.isHealthy()).isPresent()) {
            Treatment treatment = Treatment.of(run.recorded(), run.config(), diagnosis.get(), TRIED, 1);
            json.set(
                    "treatment",
                    Report.of("The smallest change", List.of())
                            .concluding(TreatmentReport.conclusion(treatment))
                            .with(TreatmentReport.section(treatment))
                            .tree());
        }
        return json;
    }

    private static ObjectNode json(List<Finding> findings, int steps) {
        ObjectNode json = JsonNodeFactory.instance.objectNode().put("steps", steps);
        ArrayNode array = json.putArray("findings");
        findings.forEach(finding -> array.addObject()
                .put("weight", finding.weight().name().toLowerCase(Locale.ROOT))
                .put("subject", finding.subject())
                .put("sentence", finding.sentence())
                .put("advice", finding.advice()));
        return json;
    }

    private static ObjectNode record(OpenRun run, String place) {
        ObjectNode json = JsonNodeFactory.instance.objectNode().put("place", place);
        Matcher matcher = PLACE.matcher(place);
        Map<String, Class<? extends SpecificRecord>> types =
                types(run.recorded().topics());
        String topic = matcher.matches() ? run.recorded().topics().prefix() + matcher.group(1) : "";
        if (!matcher.matches()
                || !types.containsKey(topic)
                        && !topic.equals(run.recorded().topics().deadLetters())) {
            return json.put("problem", place + " is not the position of a record, such as rollouts-3@19");
        }
        Optional<ConsumerRecord<byte[], byte[]>> found = RolloutTrace.fetch(
                run, new TopicPartition(topic, Integer.parseInt(matcher.group(2))), Long.parseLong(matcher.group(3)));
        if (found.isEmpty()) {
            return json.put("problem", "there is no record at " + place + ", or not any more");
        }
        ConsumerRecord<byte[], byte[]> record = found.get();
        json.put("topic", topic)
                .put("partition", record.partition())
                .put("offset", record.offset())
                .put("timestamp_ms", record.timestamp())
                .put("key", record.key() == null ? null : new String(record.key(), StandardCharsets.UTF_8))
                .put("bytes", record.value() == null ? 0 : record.value().length);
        ObjectNode headers = json.putObject("headers");
        record.headers()
                .forEach(header -> headers.put(
                        header.key(),
                        header.value() == null ? null : new String(header.value(), StandardCharsets.UTF_8)));
        String source = DeadLetterHeaders.text(record.headers(), DeadLetterHeaders.SOURCE_TOPIC);
        Class<? extends SpecificRecord> type = types.get(source.isEmpty() ? topic : source);
        if (record.value() != null && type != null) {
            try {
                json.set(
                        "record",
                        RecordJson.of(Objects.requireNonNull(
                                AvroSerde.of(type, run.recorded().registry())
                                        .deserializer()
                                        .deserialize(source.isEmpty() ? topic : source, record.value()))));
                return json;
            } catch (MalformedRecordException e) {
                json.put("unreadable", e.getMessage());
            }
        }
        if (record.value() != null) {
            json.put("hex", HexFormat.of().formatHex(record.value(), 0, Math.min(MOST_BYTES, record.value().length)));
        }
        return json;
    }

    private static Map<String, Class<? extends SpecificRecord>> types(RunTopics topics) {
        Map<String, Class<? extends SpecificRecord>> types = new HashMap<>();
        types.put(topics.prompts(), PromptRequest.class);
        types.put(topics.rollouts(), Rollout.class);
        types.put(topics.scores(), Score.class);
        types.put(topics.referenceScores(), Score.class);
        types.put(topics.teacherScores(), Score.class);
        types.put(topics.rewards(), Reward.class);
        types.put(topics.trajectories(), Trajectory.class);
        types.put(topics.batches(), LearnerBatch.class);
        types.put(topics.outcomes(), Outcome.class);
        types.put(topics.trainingLog(), TrainingStep.class);
        types.put(topics.policyVersions(), PolicyVersion.class);
        types.put(topics.serving(), Serving.class);
        types.put(topics.evaluations(), VersionEvaluation.class);
        return types;
    }

    /**
     * Rollouts by the staleness of their oldest token, over the newest steps: version at step start minus oldest
     * sampling version. Excludes masked ones.
     */
    private static ObjectNode staleness(RunIndex index, int epoch) {
        List<Long> batches = index.numbers(
                "SELECT batch FROM batch JOIN step USING(epoch, batch) WHERE epoch = ? ORDER BY batch DESC LIMIT "
                        + STALENESS_STEPS,
                epoch);
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        ArrayNode histogram = json.putArray("histogram");
        if (batches.isEmpty()) {
            return json;
        }
        long from = batches.get(batches.size() - 1);
        json.put("from_batch", from).put("to_batch", batches.get(0));
        index.read(
                "SELECT step.version - (1 - step.starved) - rollout.version_min, count(*) FROM rollout JOIN step USING(epoch, batch)"
                        + " WHERE rollout.epoch = ? AND batch BETWEEN ? AND ? AND trained_tokens > 0 AND version_min IS NOT NULL"
                        + " GROUP BY 1 ORDER BY 1",
                List.of(epoch, from, batches.get(0)),
                row -> histogram.addArray().add(row.getLong(1)).add(row.getLong(2)));
        return json;
    }

    /** Newest versions of an epoch, oldest first, with their servers. */
    private static ObjectNode weights(RunIndex index, int epoch) {
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        List<ObjectNode> versions = index.objects(
                "SELECT version, parent, batch, published_ms, bytes, base, sha256, optimizer AS optimizer_bytes,"
                        + " 'policy-versions-' || partition || '@' || offset AS place FROM version"
                        + " WHERE epoch = ? ORDER BY version DESC LIMIT " + MOST_VERSIONS,
                List.of(epoch));
        Collections.reverse(versions);
        json.putArray("versions").addAll(versions);
        long from = versions.isEmpty() ? 0 : versions.get(0).path("version").asLong();
        json.putArray("served")
                .addAll(index.objects(
                        "SELECT server, role, version, since_ms FROM served WHERE epoch = ? AND version >= ? ORDER BY version",
                        List.of(epoch, from)));
        return json;
    }

    /** Current state next to the steps: servers, lags, alarms. */
    public static ObjectNode now(ViewedRun run, RunIndex index, int epoch, long nowMs) {
        ObjectNode json = RunFacts.of(run).put("now_ms", nowMs);
        index.read(
                // versions after a gap are not on the chain
                "SELECT version, published_ms FROM version AS v WHERE epoch = ? AND NOT EXISTS"
                        + " (SELECT 1 FROM version WHERE epoch = v.epoch AND version = v.version + 1)"
                        + " ORDER BY version LIMIT 1",
                List.of(epoch),
                row -> json.put("newest_version", row.getLong(1)).put("published_ms", row.getLong(2)));
        servers(json.putArray("servers"), index);
        ArrayNode alarms = json.putArray("alarms");
        run.source()
                .alarms()
                .forEach(alarm -> alarms.addObject()
                        .put("name", alarm.name())
                        .put("subject", alarm.subject())
                        .put("sentence", alarm.sentence())
                        .put("remedy", alarm.remedy()));
        json.put(
                "dead_letters",
                index.numbers("SELECT count(*) FROM letter WHERE redriven < 0").get(0));
        run.status().ifPresent(status -> status(json.putObject("status"), status));
        return json;
    }

    private static void servers(ArrayNode servers, RunIndex index) {
        index.read(
                "SELECT server, role, version, since_ms, heartbeat_ms, tokens, left, tokens_before, heartbeat_before_ms"
                        + " FROM server ORDER BY role, server",
                List.of(),
                row -> {
                    ObjectNode server = servers.addObject()
                            .put("server", row.getString(1))
                            .put("role", row.getString(2))
                            .put("version", row.getLong(3))
                            .put("since_ms", row.getLong(4))
                            .put("heartbeat_ms", row.getLong(5))
                            .put("tokens", row.getLong(6))
                            .put("left", row.getInt(7) == 1);
                    long before = row.getLong(9);
                    long tokensBefore = row.getLong(8);
                    if (before > 0 && row.getLong(5) > before && row.getLong(6) >= tokensBefore) {
                        server.put(
                                "tokens_per_second",
                                1000.0 * (row.getLong(6) - tokensBefore) / (row.getLong(5) - before));
                    } else {
                        server.putNull("tokens_per_second");
                    }
                });
    }

    private static void status(ObjectNode json, RunStatus status) {
        json.put("phase", status.phase()).put("elapsed_seconds", status.elapsedSeconds());
        status.roles().tokensPerSecond().forEach(json.putObject("tokens_per_second")::put);
        status.roles().idle().forEach(json.putObject("idle")::put);
        status.roles().recordsBehind().forEach(json.putObject("behind")::put);
        status.roles().serving().forEach(json.putObject("serving")::put);
        status.troubles().lost().forEach(json.putObject("lost")::put);
        ArrayNode stages = json.putArray("idle_stages");
        status.troubles().idleStages().forEach(stages::add);
        ArrayNode alarms = json.putArray("alarms");
        status.troubles().alarms().forEach(alarm -> alarms.add(alarm.text()));
    }

    /**
     * Lag per role by consumer group; a sentence where access is denied.
     *
     * @param admin of the same cluster; not closed
     */
    private static ObjectNode lags(LogConnection connection, Admin admin) throws InterruptedException {
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        Map<String, String> groups = new LinkedHashMap<>();
        for (String role : RunTopics.CONSUMERS) {
            groups.put(connection.group(role), role);
        }
        Optional<String> why = Optional.empty();
        try {
            new ConsumerLag(admin, groups).read().forEach(json.putObject("behind")::put);
        } catch (ExecutionException e) {
            why = Optional.of(
                    e.getCause() instanceof GroupAuthorizationException
                            ? "it takes DESCRIBE on groups that begin with "
                                    + connection.topics().prefix()
                            : String.valueOf(
                                    e.getCause() == null
                                            ? e.getMessage()
                                            : e.getCause().getMessage()));
        } catch (TimeoutException e) {
            why = Optional.of("the cluster does not answer");
        }
        why.ifPresent(sentence -> json.put("why", sentence));
        return json;
    }

    /** Cache of answers shared by all pages: concurrent requests compute one answer. Thread-safe. */
    static final class SharedAnswers {
        static final long NO_VERSION = -1;

        private static final int KEPT = 64;

        private final LongSupplier nanos;
        private final Map<String, Kept> kept = new LinkedHashMap<>(16, 0.75f, true) {
            private static final long serialVersionUID = 1L;

            @Override
            protected boolean removeEldestEntry(Map.Entry<String, Kept> eldest) {
                return size() > KEPT;
            }
        };

        SharedAnswers(LongSupplier nanos) {
            this.nanos = nanos;
        }

        private static final class Kept {
            private @Nullable String answer;
            private long version;
            private long at;
        }

        interface Making {
            String make() throws BadRequestException, InterruptedException;
        }

        /** @param version of the inputs: the answer stays valid while it is equal; {@link #NO_VERSION} for none */
        String get(String key, long version, long limitMs, Making making)
                throws BadRequestException, InterruptedException {
            Kept last;
            synchronized (kept) {
                last = kept.computeIfAbsent(key, unknown -> new Kept());
            }
            synchronized (last) {
                String answer = last.answer;
                if (answer == null
                        || (version == NO_VERSION || last.version != version)
                                && nanos.getAsLong() - last.at >= TimeUnit.MILLISECONDS.toNanos(limitMs)) {
                    answer = making.make();
                    last.answer = answer;
                    last.version = version;
                    last.at = nanos.getAsLong();
                }
                return answer;
            }
        }
    }

    public static String evaluations(RunIndex index, int epoch) {
        List<String> rows = new ArrayList<>();
        EvaluationIndex.read(index, epoch, row -> rows.add(row.getString(1)));
        return "{\"evaluations\":[" + String.join(",", rows) + "]}";
    }
}
