package dev.millrace.runtime.config;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.TaskSettings;
import dev.millrace.generator.environment.IncPrompts;
import dev.millrace.generator.environment.OwnVerdict;
import dev.millrace.generator.environment.text.TextTask;
import org.jspecify.annotations.Nullable;

/**
 * Completes the configuration of a run on text: {@code data} is the data of {@code task: text}, the tokenizer is the checkpoint's unless
 * another is named. The hashes of both are recorded when the run begins.
 */
final class TextRun {
    private static final String DATA = "data";
    private static final String TASK = "task";
    private static final String TEXT = "text";
    private static final String FILES = "files";
    private static final String EVAL = "eval";

    private TextRun() {}

    /** {@code data} stands for {@code task.data}, and for the task text where no task is named. */
    static void read(ObjectNode tree) {
        JsonNode data = tree.remove(DATA);
        JsonNode task = tree.get(TASK);
        if (data == null) {
            if (kind(task).isEmpty() && tree.at("/task/eval").isObject()) {
                throw new ConfigException(
                        "held-out prompts are given without training prompts; give these too: --data FILE");
            }
            return;
        }
        String kind = kind(task);
        if (!kind.isEmpty() && !kind.equals(TEXT)) {
            throw new ConfigException("data is given and task.kind is " + kind
                    + ", which makes its own prompts; leave data out, or choose task.kind=text");
        }
        ObjectNode text = task instanceof ObjectNode group ? group : ConfigTree.empty();
        text.put(Choice.KIND, TEXT);
        ObjectNode given = ConfigTree.empty();
        given.set(DATA, data);
        ConfigTree.merge(text, given);
        tree.set(TASK, text);
    }

    private static String kind(@Nullable JsonNode choice) {
        if (choice instanceof ObjectNode group) {
            return group.path(group.has(Choice.KIND) ? Choice.KIND : ConfigTree.WORD)
                    .asText("");
        }
        return choice == null ? "" : choice.asText("");
    }

    /**
     * Checks data and tokenizer of a run that begins or changes them, and sizes slots for their prompts where the size
     * is not set.
     *
     * @param begun the run's initial configuration
     */
    static void fill(ObjectNode tree, ObjectNode begun) {
        if (!kind(tree.get(TASK)).equals(TEXT)) {
            return;
        }
        if (!(tree.get(TASK) instanceof ObjectNode)) {
            tree.set(TASK, ConfigTree.empty().put(Choice.KIND, TEXT));
        }
        ObjectNode task = (ObjectNode) tree.get(TASK);
        String checkpoint = tree.at("/model/checkpoint").asText("");
        if (!task.has("tokenizer") && !checkpoint.isEmpty()) {
            task.set("tokenizer", ConfigTree.empty().put("directory", checkpoint));
        }
        if (isAsBegun(task, begun)) {
            return;
        }
        if (!task.has("tokenizer")) {
            throw new ConfigException("text prompts need a model with a tokenizer; give its directory: --model DIR");
        }
        task.remove(FILES);
        Asked asked = asked(tree);
        if (asked.reward() instanceof OwnVerdict && asked.task() instanceof TextTask text && text.isOneTurn()) {
            throw new ConfigException(
                    "reward is verified, and the task text has no verifier; choose one: --reward exact, numeric,"
                            + " regex, expression, remote, or a kind of a plug-in; or set task.environment");
        }
        TextTask found = found(
                asked,
                tree.at("/model/max_positions").asInt(Integer.MAX_VALUE),
                tree.at("/admission/sampling/max_tokens").asInt(0));
        task.set(FILES, ConfigBinder.unbind(found.files()));
        if (found.files().evalRows() > 0
                && tree.at("/evaluation/every_versions").isMissingNode()
                && tree.at("/evaluation/every_seconds").isMissingNode()) {
            ConfigTree.set(tree, "evaluation.every_versions=10");
        }
        if (tree.at("/generator/capacity_tokens").isMissingNode()) {
            int response = tree.at("/admission/sampling/max_tokens").asInt(0);
            int capacity = found.files().promptTokens() + (response > 0 ? response : found.responseTokens());
            ConfigTree.set(tree, "generator.capacity_tokens=" + capacity);
        }
    }

    private static boolean isAsBegun(ObjectNode task, ObjectNode begun) {
        JsonNode before = begun.path(TASK);
        return before.has(FILES)
                && before.path(DATA).equals(task.path(DATA))
                && before.path(EVAL).equals(task.path(EVAL))
                && before.path("tokenizer").equals(task.path("tokenizer"))
                && before.path(FILES).equals(task.path(FILES));
    }

    private static Asked asked(ObjectNode tree) {
        ObjectNode part = ConfigTree.empty();
        part.set(TASK, tree.get(TASK));
        if (tree.has("reward")) {
            part.set("reward", tree.get("reward"));
        }
        return ConfigBinder.bind(new Asked(IncPrompts.defaults(), OwnVerdict.defaults()), part);
    }

    private static TextTask found(Asked asked, int positions, int maxTokens) {
        try {
            return ((TextTask) asked.task()).inspected(asked.reward(), positions, maxTokens);
        } catch (IllegalArgumentException e) {
            throw new ConfigException("task." + e.getMessage(), e);
        }
    }

    /** Refuses evaluations without held-out prompts, and held-out prompts without an evaluation. */
    static void requireHeldOut(TaskSettings task, EvaluationConfig evaluation) {
        if (!(task instanceof TextTask text) || text.files().rows() == 0) {
            return;
        }
        boolean heldOut = text.files().evalRows() > 0;
        if (evaluation.isOn() && !heldOut) {
            throw new ConfigException((evaluation.everyVersions() > 0
                            ? "evaluation.every_versions is " + evaluation.everyVersions()
                            : "evaluation.every_seconds is " + evaluation.everySeconds())
                    + " without held-out prompts; give held-out prompts, --eval-data FILE, or hold out a share of the data,"
                    + " --set task.eval.share=0.1");
        }
        if (!evaluation.isOn() && heldOut) {
            throw new ConfigException(
                    "evaluation.every_versions is 0 and " + text.files().evalRows()
                            + " prompts are held out and never evaluated; set it to 10, or leave the prompts out");
        }
    }

    /** The part of a configuration that is needed before the rest can be resolved. */
    public record Asked(TaskSettings task, RewardFunction reward) {}
}
