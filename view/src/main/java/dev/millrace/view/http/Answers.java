package dev.millrace.view.http;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.log.LogConnection;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.pipeline.RunTokenizer;
import dev.millrace.view.follow.OpenRun;
import dev.millrace.view.follow.RunSource;
import dev.millrace.view.follow.ViewedRun;
import dev.millrace.view.follow.ViewedRun.Known;
import dev.millrace.view.follow.ViewedRuns;
import dev.millrace.view.index.RunIndex;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Which answer an address has. */
final class Answers {
    private static final Logger LOG = LoggerFactory.getLogger(Answers.class);

    /** What changes by itself, such as ages and rates, may be so old. */
    private static final long FRESH_MS = 1000;
    /** To ask for the lags of consumer groups is work for the cluster. */
    private static final long LAGS_MS = 5000;

    private final ViewedRuns runs;
    private final SharedAnswers shared = new SharedAnswers(System::nanoTime);

    private final ReportShelf reports;

    Answers(ViewedRuns runs, ReportShelf reports) {
        this.runs = runs;
        this.reports = reports;
    }

    /** All reports. */
    String reports() {
        return reports.list(runs.sources()).toString();
    }

    /** One of them. */
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

    /** All runs. */
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

    /** What a page asks of a run. */
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
        // an index that takes another's place counts from the beginning
        String key = run.source().name() + "/" + System.identityHashCode(index) + "/" + epochOf(known) + "/" + question
                + query.values();
        return switch (question) {
            case "steps" -> shared.get(key, index.stepChanges(), 0, () -> made(run, index, known, question, query));
            case "now" ->
                shared.get(key, SharedAnswers.NO_VERSION, FRESH_MS, () -> made(run, index, known, question, query));
            case "lags" ->
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
            case "now" ->
                NowAnswer.of(run, index, epoch, System.currentTimeMillis()).toString();
            case "steps" ->
                query.text("newest").isPresent()
                        ? StepsAnswer.newest(index, epoch)
                        : StepsAnswer.of(index, epoch, query.number("after", -1));
            case "evaluations" -> EvaluationsAnswer.of(index, epoch);
            case "staleness" -> StalenessAnswer.of(index, epoch).toString();
            case "lags" -> lags(run).toString();
            case "diagnosis" -> diagnosis(run).toString();
            case "choices" -> RolloutRows.choices(index).toString();
            case "rollouts" -> RolloutRows.list(index, query.values()).toString();
            case "points" ->
                RolloutRows.points(index, query.values())
                        .orElseThrow(() -> new BadRequestException("points are of numbers that rollouts have"))
                        .toString();
            case "rollout" -> rollout(run, index, query.required("id"));
            case "record" -> record(run, query.required("place"));
            case "batch" ->
                BatchAnswer.of(index, epoch, query.number("batch", -1))
                        .orElseGet(() -> JsonNodeFactory.instance.objectNode())
                        .toString();
            case "redecide" -> redecided(run, index, epoch, query);
            case "ledger" -> LedgerRows.of(index).toString();
            case "letters" -> LedgerRows.letters(index, run.source().options()).toString();
            case "account" -> account(run).toString();
            case "weights" -> WeightsRows.of(index, epoch).toString();
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

    private static String record(ViewedRun run, String place) {
        return run.ask(open -> RecordAnswer.of(open, place)).toString();
    }

    private static String redecided(ViewedRun run, RunIndex index, int epoch, Query query)
            throws BadRequestException, InterruptedException {
        long batch = query.number("batch", -1);
        String named = query.required("as");
        ObjectNode found = BatchAnswer.of(index, epoch, batch)
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

    private static ObjectNode account(ViewedRun run) throws InterruptedException {
        return run.askLog(open -> open.connection()
                .map(LedgerRows::check)
                .orElseGet(() -> JsonNodeFactory.instance
                        .objectNode()
                        .put("problem", "an archive has no log to add up; import it first")));
    }

    /** The course of a run for laying it over others: from its folder if it has one, else from its index. */
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

    private static ObjectNode lags(ViewedRun run) {
        return run.ask(Answers::lags);
    }

    /** Nothing where nobody consumes: it is an archive, or has ended. */
    private static ObjectNode lags(OpenRun open) {
        if (open.connection().isEmpty()) {
            return JsonNodeFactory.instance.objectNode();
        }
        try {
            return NowAnswer.lags(open.connection().get(), open.admin());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return JsonNodeFactory.instance.objectNode().put("why", "the page was closed");
        }
    }

    private static ObjectNode diagnosis(ViewedRun run) throws InterruptedException {
        return run.askLog(open -> diagnosis(run, open));
    }

    private static ObjectNode diagnosis(ViewedRun run, OpenRun open) {
        try {
            if (open.connection().isEmpty()) {
                return DiagnosisAnswer.of(open);
            }
            LogConnection connection = open.connection().get();
            Map<String, Long> behind = new HashMap<>();
            lags(open)
                    .path("behind")
                    .properties()
                    .forEach(
                            entry -> behind.put(entry.getKey(), entry.getValue().asLong()));
            return DiagnosisAnswer.of(open, connection, behind, run.source().alarms());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return JsonNodeFactory.instance.objectNode();
        }
    }
}
