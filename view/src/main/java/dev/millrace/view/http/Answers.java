package dev.millrace.view.http;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.log.LogConnection;
import dev.millrace.view.answer.DiagnosisAnswer;
import dev.millrace.view.answer.NowAnswer;
import dev.millrace.view.answer.RunFacts;
import dev.millrace.view.answer.StalenessAnswer;
import dev.millrace.view.answer.StepsAnswer;
import dev.millrace.view.follow.OpenRun;
import dev.millrace.view.follow.RunSource;
import dev.millrace.view.follow.ViewedRun;
import dev.millrace.view.follow.ViewedRun.Known;
import dev.millrace.view.follow.ViewedRuns;
import dev.millrace.view.index.RunIndex;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/** Which answer an address has. */
final class Answers {
    private final ViewedRuns runs;

    Answers(ViewedRuns runs) {
        this.runs = runs;
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
        RunIndex index = run.index().orElse(null);
        Known known = run.known().orElse(null);
        if (index == null || known == null) {
            return RunFacts.of(run).put("opening", true).toString();
        }
        int epoch = known.run().epoch();
        return switch (question) {
            case "now" ->
                NowAnswer.of(run, index, epoch, System.currentTimeMillis()).toString();
            case "steps" -> StepsAnswer.of(index, epoch, query.number("after", -1));
            case "staleness" -> StalenessAnswer.of(index, epoch).toString();
            case "lags" -> lags(run).toString();
            case "diagnosis" -> diagnosis(run).toString();
            default -> throw new BadRequestException("there is nothing called " + question + " of a run");
        };
    }

    private static ObjectNode lags(ViewedRun run) {
        return run.ask(open -> open.connection()
                .map(Answers::lags)
                .orElseGet(
                        () -> JsonNodeFactory.instance.objectNode().put("why", "an archive has no consumer groups")));
    }

    private static ObjectNode lags(LogConnection connection) {
        try {
            return NowAnswer.lags(connection);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return JsonNodeFactory.instance.objectNode().put("why", "the page was closed");
        }
    }

    private static ObjectNode diagnosis(ViewedRun run) {
        return run.ask(open -> diagnosis(run, open));
    }

    private static ObjectNode diagnosis(ViewedRun run, OpenRun open) {
        if (open.connection().isPresent()) {
            LogConnection connection = open.connection().get();
            Map<String, Long> behind = new HashMap<>();
            lags(connection)
                    .path("behind")
                    .properties()
                    .forEach(
                            entry -> behind.put(entry.getKey(), entry.getValue().asLong()));
            return DiagnosisAnswer.of(connection, behind, run.source().alarms());
        }
        try {
            return DiagnosisAnswer.of(open);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return JsonNodeFactory.instance.objectNode();
        }
    }
}
