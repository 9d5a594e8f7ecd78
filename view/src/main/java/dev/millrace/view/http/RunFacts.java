package dev.millrace.view.http;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.m2po.SecondMomentFigure;
import dev.millrace.corrections.stage.Stage;
import dev.millrace.corrections.staleness.StalenessDamping;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.train.RunDirectory;
import dev.millrace.view.follow.RunSource;
import dev.millrace.view.follow.ViewedRun;
import dev.millrace.view.follow.ViewedRun.Known;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Identity, goal and state of a run. */
public final class RunFacts {
    private static final Logger LOG = LoggerFactory.getLogger(RunFacts.class);
    private static final ObjectMapper JSON = new ObjectMapper();

    private RunFacts() {}

    public static ObjectNode of(ViewedRun run) {
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        json.put("name", run.source().name())
                .put("options", run.source().options())
                .put("problem", run.problem())
                .put("archived", run.source() instanceof RunSource.Archive);
        Optional<String> summary = run.source().summary();
        Optional<ObjectNode> ends = run.source().folder().flatMap(CourseAnswer::ends);
        json.put("state", state(run, summary.isPresent(), ends.isPresent() || hasStep(run)))
                .put("ended", run.ended());
        put(json, run.source(), ends);
        summary.ifPresent(text -> json.set("summary", parsed(text)));
        json.putObject("index")
                .put("read", run.progress().read())
                .put("end", run.progress().end())
                .put("whole", run.progress().isWhole());
        run.known().ifPresent(known -> put(json, known));
        return json;
    }

    public static ObjectNode of(RunSource source) {
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        Optional<String> summary = source.summary();
        Optional<ObjectNode> ends = source.folder().flatMap(CourseAnswer::ends);
        json.put("name", source.name())
                .put("options", source.options())
                .put("archived", source instanceof RunSource.Archive)
                .put(
                        "state",
                        source instanceof RunSource.Archive
                                ? "archived"
                                : source instanceof RunSource.Cluster
                                        ? "on a cluster"
                                        : source.mayGrow()
                                                ? "running"
                                                : ended(source, summary.isPresent(), ends.isPresent()));
        put(json, source, ends);
        summary.ifPresent(text -> json.set("summary", parsed(text)));
        return json;
    }

    private static String state(ViewedRun run, boolean ended, boolean hasStep) {
        if (run.source() instanceof RunSource.Archive) {
            return "archived";
        }
        if (!run.ended().isEmpty()) {
            return "finished";
        }
        if (run.known().isEmpty()) {
            return "opening";
        }
        if (run.source() instanceof RunSource.Cluster) {
            return "on a cluster";
        }
        return run.isGrowing() ? "running" : ended(run.source(), ended, hasStep);
    }

    /** An orderly end leaves a summary; a kill, or an end before the first step, does not. */
    private static String ended(RunSource source, boolean hasSummary, boolean hasStep) {
        return hasSummary
                ? "finished"
                : !source.wasTrained() ? "ended" : hasStep ? "killed" : "ended before its first step";
    }

    private static boolean hasStep(ViewedRun run) {
        return run.index()
                .map(index -> index.numbers("SELECT count(*) FROM step").get(0) > 0)
                .orElse(false);
    }

    /** Times, task and model, as far as the folder has them. */
    private static void put(ObjectNode json, RunSource source, Optional<ObjectNode> ends) {
        ends.ifPresent(found -> json.set("course", found));
        source.folder().map(RunDirectory::config).filter(Files::isRegularFile).ifPresent(file -> {
            try {
                JsonNode config = ConfigTree.read(file);
                json.put("task_kind", config.at("/task/kind").asText());
                json.put("model", model(config.path("model")));
                if (ends.isEmpty()) {
                    json.putObject("course")
                            .put("started_ms", Files.getLastModifiedTime(file).toMillis());
                }
            } catch (ConfigException | IOException e) {
                LOG.info("{} has no configuration to show: {}", source.name(), e.getMessage());
            }
        });
    }

    private static String model(JsonNode model) {
        String checkpoint = model.path("checkpoint").asText();
        return checkpoint.isEmpty()
                ? model.path("layers").asText() + " layers of "
                        + model.path("hidden_size").asText() + ", random"
                : String.valueOf(Path.of(checkpoint).getFileName());
    }

    static JsonNode parsed(String text) {
        try {
            return JSON.readTree(text);
        } catch (IOException e) {
            return JsonNodeFactory.instance.nullNode();
        }
    }

    private static void put(ObjectNode json, Known known) {
        MillraceConfig config = known.config();
        json.put("run_id", known.run().runId())
                .put("epoch", known.run().epoch())
                .put("policy_id", known.run().policyId())
                .put("topic_prefix", known.topics().prefix())
                .put("task", config.task().task().name())
                .put("goal", config.goal().meanReward() > 0 ? config.goal().meanReward() : null)
                .put("goal_steps", config.goal().overSteps())
                .put(
                        "max_steps",
                        config.learner().maxSteps() > 0 ? config.learner().maxSteps() : null);
        stages(json.putArray("stages"), config.algorithm());
    }

    /** Stages in order, and what each does: weigh, mask, credit or measure. */
    private static void stages(ArrayNode json, Algorithm algorithm) {
        for (Stage stage : algorithm.stages()) {
            json.addObject().put("name", stage.name()).put("does", does(stage, algorithm));
        }
    }

    private static String does(Stage stage, Algorithm algorithm) {
        if (stage.equals(algorithm.advantage()) || algorithm.rewards().contains(stage)) {
            return "credits";
        }
        if (stage.name().equals(algorithm.weights().name())) {
            return "weighs";
        }
        if (stage instanceof SecondMomentFigure) {
            return "measures";
        }
        return stage instanceof StalenessDamping
                        || stage.name().equals(algorithm.ess().name())
                ? "scales"
                : "masks";
    }
}
