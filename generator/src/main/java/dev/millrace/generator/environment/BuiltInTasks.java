package dev.millrace.generator.environment;

import dev.millrace.api.catalogue.BuiltIn;
import dev.millrace.api.catalogue.Door;
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

/** The doors of tasks, environments and reward functions, and what Millrace itself brings through them. */
public final class BuiltInTasks implements BuiltIn {

    @Override
    public String name() {
        return "tasks";
    }

    @Override
    public List<Door> doors() {
        return List.of(
                new Door(
                        "task",
                        TaskSettings.class,
                        "task",
                        "makes prompts, and says which environment plays them and in which vocabulary"),
                new Door(
                        "environment",
                        Environment.class,
                        "environments",
                        "answers the policy's turns and verifies what a response is worth"),
                new Door(
                        "reward",
                        RewardFunction.class,
                        "reward",
                        "rewards a finished response in the place of its environment"),
                new Door(
                        "dataset",
                        DatasetSettings.class,
                        "task.data",
                        "reads the rows that prompts of text are made of"));
    }

    @Override
    public List<Kind> kinds() {
        return List.of(
                Kind.of(
                        TaskSettings.class,
                        "inc",
                        IncPrompts.defaults(),
                        "Answer each digit with its successor; learnt in under a hundred steps."),
                Kind.of(
                        TaskSettings.class,
                        "sort",
                        SortPrompts.defaults(),
                        "Answer digits with the same digits in ascending order."),
                Kind.of(
                        TaskSettings.class,
                        "guess",
                        GuessPrompts.defaults(),
                        "Find a number by guesses, each of which is answered with higher or lower."),
                Kind.of(
                        TaskSettings.class,
                        "text",
                        TextTask.defaults(),
                        "Go on with prompts of text, in the vocabulary of a checkpoint's tokenizer."),
                Kind.of(
                        DatasetSettings.class,
                        "jsonl",
                        JsonLines.defaults(),
                        "A file with a JSON object a line: a prompt, an answer, and any more."),
                Kind.of(
                        Environment.class,
                        "fixed_answer",
                        new FixedAnswer(),
                        "One turn with one right answer of known length; of inc and sort."),
                Kind.of(Environment.class, "guess", new Guess(), "The game of the task guess, in several turns."),
                Kind.of(
                        Environment.class,
                        "remote",
                        RemoteEnvironment.defaults(),
                        "An environment of the user's own, in any language: a server, a command, or one that speaks OpenEnv."),
                Kind.of(
                        Environment.class,
                        "one_turn",
                        new OneTurn(),
                        "Nobody to play with: a response of the task text is one turn, which the reward judges."),
                Kind.of(
                        RewardFunction.class,
                        "verified",
                        OwnVerdict.defaults(),
                        "What the environment itself says a response is worth, and its turns and tokens."),
                Kind.of(
                        RewardFunction.class,
                        "exact",
                        ExactReward.defaults(),
                        "1 where the response is the row's answer, apart from white space around it."),
                Kind.of(
                        RewardFunction.class,
                        "numeric",
                        NumericReward.defaults(),
                        "1 where the last number of the response is that of the row's answer."),
                Kind.of(
                        RewardFunction.class,
                        "regex",
                        RegexReward.defaults(),
                        "Matches of a pattern in the response, as a share of the wanted number, up to 1."),
                Kind.of(
                        RewardFunction.class,
                        "expression",
                        ExpressionReward.defaults(),
                        "What an expression makes of the response, its prompt and its row."),
                Kind.of(
                        RewardFunction.class,
                        "remote",
                        RemoteReward.defaults(),
                        "What a verifier of the user's own says, in any language: a server, or a command."));
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
