package dev.millrace.generator.environment;

import dev.millrace.api.catalogue.BuiltIn;
import dev.millrace.api.catalogue.ExtensionPoint;
import dev.millrace.api.dataset.DatasetSettings;
import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.PromptDataset;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.Task;
import dev.millrace.api.environment.TaskSettings;
import dev.millrace.api.plugin.Kind;
import dev.millrace.generator.environment.remote.RemoteEnvironment;
import dev.millrace.generator.environment.remote.RemoteReward;
import dev.millrace.generator.environment.text.ExactReward;
import dev.millrace.generator.environment.text.ExpressionReward;
import dev.millrace.generator.environment.text.JsonLines;
import dev.millrace.generator.environment.text.NumericReward;
import dev.millrace.generator.environment.text.OneTurn;
import dev.millrace.generator.environment.text.RegexReward;
import dev.millrace.generator.environment.text.TextTask;
import dev.millrace.generator.sampling.CounterBasedRandom;
import java.util.Arrays;
import java.util.List;

/** The extension points of tasks, environments and reward functions, and their built-in kinds. */
public final class BuiltInTasks implements BuiltIn {

    @Override
    public String name() {
        return "tasks";
    }

    @Override
    public List<ExtensionPoint> extensionPoints() {
        return List.of(
                new ExtensionPoint(
                        "task", TaskSettings.class, "task", "makes prompts for an environment in a vocabulary"),
                new ExtensionPoint(
                        "environment",
                        Environment.class,
                        "environments",
                        "answers the policy's turns and verifies responses"),
                new ExtensionPoint(
                        "reward",
                        RewardFunction.class,
                        "reward",
                        "rewards finished responses in place of the environment"),
                new ExtensionPoint("dataset", DatasetSettings.class, "task.data", "reads rows for text prompts"));
    }

    @Override
    public List<Kind> kinds() {
        return List.of(
                Kind.of(TaskSettings.class, "inc", IncPrompts.defaults(), "Answer each digit with its successor."),
                Kind.of(
                        TaskSettings.class,
                        "sort",
                        SortPrompts.defaults(),
                        "Answer digits with the same digits in ascending order."),
                Kind.of(
                        TaskSettings.class,
                        "guess",
                        GuessPrompts.defaults(),
                        "Guess a number from higher and lower answers."),
                Kind.of(
                        TaskSettings.class,
                        "text",
                        TextTask.defaults(),
                        "Text prompts, in the vocabulary of a checkpoint's tokenizer."),
                Kind.of(
                        DatasetSettings.class,
                        "jsonl",
                        JsonLines.defaults(),
                        "JSON lines with a prompt, an answer and other fields."),
                Kind.of(
                        Environment.class,
                        "fixed_answer",
                        new FixedAnswer(),
                        "One turn with one right answer, for inc and sort."),
                Kind.of(Environment.class, "guess", new Guess(), "The game of the task guess."),
                Kind.of(
                        Environment.class,
                        "remote",
                        RemoteEnvironment.defaults(),
                        "Your environment in any language: a server, a command, or OpenEnv."),
                Kind.of(Environment.class, "one_turn", new OneTurn(), "One response without an environment, for text."),
                Kind.of(RewardFunction.class, "verified", OwnVerdict.defaults(), "The environment's own reward."),
                Kind.of(
                        RewardFunction.class,
                        "exact",
                        ExactReward.defaults(),
                        "1 if the trimmed response is the row's answer."),
                Kind.of(
                        RewardFunction.class,
                        "numeric",
                        NumericReward.defaults(),
                        "1 if the number in the response's last box, or its last number, is the answer's."),
                Kind.of(
                        RewardFunction.class,
                        "regex",
                        RegexReward.defaults(),
                        "Matches of a pattern, as a share of the wanted number, up to 1."),
                Kind.of(
                        RewardFunction.class,
                        "expression",
                        ExpressionReward.defaults(),
                        "An expression over response, prompt and row."),
                Kind.of(
                        RewardFunction.class,
                        "remote",
                        RemoteReward.defaults(),
                        "Your verifier in any language: a server or a command."));
    }

    /**
     * Task {@code sort}: {@code BOS d1..dn SEP}, to be answered by the same digits in ascending order. Each position of the
     * answer depends on all of the question, so it takes several times the steps of {@code inc}.
     *
     * @param digits n, 1 to 64
     */
    public record SortPrompts(int digits) implements PromptDataset, TaskSettings {

        public SortPrompts {
            DigitQuestion.requireLength("sort", digits);
        }

        /** Four digits: learnt in a few hundred steps. */
        public static SortPrompts defaults() {
            return new SortPrompts(4);
        }

        @Override
        public Task task() {
            return new Task("sort", this, new FixedAnswer(), Symbols.tokenizer(), digits + 2, digits);
        }

        @Override
        public Prompt prompt(long seed, long ordinal) {
            long stream = CounterBasedRandom.stream(seed, ordinal, 0);
            int[] question = new int[digits];
            for (int i = 0; i < digits; i++) {
                question[i] = CounterBasedRandom.below(stream, i, 10);
            }
            int[] answer = question.clone();
            Arrays.sort(answer);
            return DigitQuestion.prompt(question, answer);
        }
    }
}
