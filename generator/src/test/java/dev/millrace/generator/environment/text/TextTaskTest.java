package dev.millrace.generator.environment.text;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.api.environment.Environment;
import dev.millrace.api.environment.Episode;
import dev.millrace.api.environment.FinishedResponse;
import dev.millrace.api.environment.Prompt;
import dev.millrace.api.environment.PromptDataset;
import dev.millrace.api.environment.RewardFunction;
import dev.millrace.api.environment.StepResult;
import dev.millrace.api.environment.Task;
import dev.millrace.api.environment.VerifiedReward;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.api.tokenizer.TokenizerSettings;
import dev.millrace.generator.environment.Symbols;
import dev.millrace.generator.environment.remote.RemoteEnvironment;
import dev.millrace.generator.environment.text.TextTask.HeldOutRows;
import dev.millrace.generator.environment.text.TextTask.TextEnvironment;
import dev.millrace.generator.environment.text.TextTask.TextFiles;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TextTaskTest {
    /** The vocabulary of the built-in tasks, in which a text of digits is one token each. */
    private record Digits() implements TokenizerSettings {
        @Override
        public Tokenizer open() {
            return Symbols.tokenizer();
        }
    }

    /** Never encodes; a token is a character at most. */
    private record Unencodable() implements TokenizerSettings {
        @Override
        public Tokenizer open() {
            Tokenizer digits = Symbols.tokenizer();
            return new Tokenizer() {
                @Override
                public int vocabSize() {
                    return digits.vocabSize();
                }

                @Override
                public int mostCharacters(int tokens) {
                    return tokens;
                }

                @Override
                public int[] encode(String text) {
                    throw new AssertionError("encodes " + text);
                }

                @Override
                public String decode(int[] tokens) {
                    return digits.decode(tokens);
                }

                @Override
                public String hash() {
                    return digits.hash();
                }
            };
        }
    }

    private static final RewardFunction ANY = new RegexReward("4", 2);

    @TempDir
    private Path folder;

    @Test
    void shouldReleaseEveryRowOnceAPassAndAgainAtTheSamePlace() throws IOException {
        Task task = task(lines(10), true).task();
        List<String> twoPasses = texts(task, 7, 0, 20);
        assertThat(new HashSet<>(twoPasses.subList(0, 10))).hasSize(10);
        assertThat(new HashSet<>(twoPasses.subList(10, 20))).hasSize(10);
        assertThat(twoPasses.subList(0, 10)).isNotEqualTo(twoPasses.subList(10, 20));
        assertThat(texts(task(lines(10), true).task(), 7, 13, 20))
                .as("a run that resumes at position 13")
                .isEqualTo(twoPasses.subList(13, 20));
        assertThat(texts(task, 8, 0, 10)).as("another seed").isNotEqualTo(twoPasses.subList(0, 10));
    }

    @Test
    void shouldKeepTheOrderOfTheFileWhereNothingIsShuffled() throws IOException {
        Task task = task(lines(4), false).task();
        assertThat(texts(task, 7, 0, 6)).containsExactly("0", "1", "2", "3", "0", "1");
    }

    @Test
    void shouldCarryWhatARowSaysBesideItsPrompt() throws IOException {
        Path file = Files.writeString(
                folder.resolve("a.jsonl"), "\uFEFF\n{\"prompt\": \"42\", \"answer\": 7, \"level\": {\"of\": 3}}\n\n");
        TextTask text = task(file, true);
        Prompt prompt = text.task().prompts().prompt(1, 5);
        assertThat(prompt.tokens()).containsExactly(Symbols.digit(4), Symbols.digit(2));
        assertThat(prompt.environmentState()).isEqualTo("{\"answer\":7,\"level\":{\"of\":3}}");
        assertThat(text.files())
                .isEqualTo(new TextFiles(
                        text.files().dataSha256(),
                        1,
                        "",
                        0,
                        2,
                        Symbols.tokenizer().hash(),
                        "",
                        16,
                        List.of(),
                        List.of()));
        assertThat(text.task().promptTokens()).isEqualTo(2);
    }

    @Test
    void shouldEndATurnWithAnyOfTheStopTokens() {
        Environment environment = new TextEnvironment(List.of(1L, 5L), List.of(), Symbols.tokenizer());
        assertThat(environment.endToken()).isEqualTo(-1);
        assertThat(new TextEnvironment(List.of(5L), List.of(), Symbols.tokenizer()).endToken())
                .isEqualTo(5);
        assertThat(environment.begin("{}").afterToken(new Written(7, 4))).isSameAs(StepResult.GO_ON);
        assertThat(environment.begin("{}").afterToken(new Written(7, 5))).isSameAs(StepResult.END);
        assertThatThrownBy(() -> environment.begin("[1]")).hasMessage("the state must be a JSON object: '[1]'");
    }

    @Test
    void shouldEndATurnAtAStopTextThatSeveralTokensMakeAndRewardWhatStandsBeforeIt() throws IOException {
        int[] digits = IntStream.of(1, 2, 7, 7, 3).map(Symbols::digit).toArray();
        Path file = lines(1);
        TextTask text = new TextTask(
                new JsonLines(file.toString()),
                new Digits(),
                true,
                9,
                List.of("77", "9"),
                new OneTurn(),
                HeldOutRows.defaults(),
                TextFiles.unknown());
        Environment environment = text.inspected(ANY, 100, 0).task().environment();
        Episode turn = environment.begin("{}");
        assertThat(turn.afterToken(new Written(Arrays.copyOf(digits, 3)))).isSameAs(StepResult.GO_ON);
        assertThat(turn.afterToken(new Written(Arrays.copyOf(digits, 4)))).isSameAs(StepResult.END);
        FinishedResponse response = new FinishedResponse(
                new int[] {1},
                "{}",
                new Written(digits),
                new VerifiedReward(0, Map.of()),
                Symbols.tokenizer(),
                environment.stopTexts(),
                "");
        assertThat(response.text()).isEqualTo("12");
        assertThatThrownBy(() -> new TextTask(
                        new JsonLines("a"),
                        new Digits(),
                        true,
                        9,
                        List.of(""),
                        new OneTurn(),
                        HeldOutRows.defaults(),
                        TextFiles.unknown()))
                .hasMessage("stop must have texts of at least one character: one is empty");
    }

    @Test
    void shouldBePlayedByWhomItNamesInThePlaceOfOneTurn() throws IOException {
        TextTask text = new TextTask(
                new JsonLines(lines(1).toString()),
                new Digits(),
                true,
                9,
                List.of(),
                RemoteEnvironment.defaults(),
                HeldOutRows.defaults(),
                TextFiles.unknown());
        assertThat(text.isOneTurn()).isFalse();
        assertThat(text.inspected(ANY, 100, 0).task().environment()).isEqualTo(RemoteEnvironment.defaults());
        assertThatThrownBy(() -> new TextTask(
                        new JsonLines("a"),
                        new Digits(),
                        true,
                        9,
                        List.of("7"),
                        RemoteEnvironment.defaults(),
                        HeldOutRows.defaults(),
                        TextFiles.unknown()))
                .hasMessageStartingWith("stop applies to environment.kind=one_turn only");
    }

    @Test
    void shouldNameTheLineThatCannotBeRead() throws IOException {
        refused("", "data: " + folder.resolve("b.jsonl") + " has no row: it needs a line such as ");
        refused("{\"prompt\": \"1\"}\n{\"prompt\": \"1\"", "b.jsonl line 2 is not JSON: ");
        refused("[1]", "b.jsonl line 1 is not a JSON object; write each row as an object on one line");
        refused(
                "{\n\"prompt\": \"1\"\n}",
                "b.jsonl line 1 is not JSON: Unexpected end-of-input: expected close marker for Object;"
                        + " write each row as an object on one line");
        refused("{\"prompt\": \"1\"}\n{\"prompt\": \"1\\ud83d\"}", "b.jsonl line 2 has an unpaired surrogate ");
        refused("{\"prompt\": \"1\", \"answer\": \"\\ude00\"}", "b.jsonl line 1 has an unpaired surrogate ");
        refused(
                "{\"answer\": 3}",
                "b.jsonl line 1 needs a \"prompt\" that is a text of at least one character, or \"messages\": there is none");
        refused("{\"messages\": []}", "b.jsonl line 1 needs \"messages\" that are a list of at least one message");
        refused(
                "{\"messages\": [{\"role\": \"user\", \"content\": \"1\"}]}",
                "b.jsonl line 1: this tokenizer has no chat template, so messages cannot be rendered");
        refused("{\"messages\": [{\"role\": \"user\"}]}", "b.jsonl line 1 has a message that is not ");
        refused("{\"prompt\": \"1\", \"messages\": []}", "b.jsonl line 1 has both a \"prompt\" and \"messages\"");
        refused("{\"prompt\": \"1\"}\n{\"prompt\": \"x\"}", "b.jsonl line 2: no symbol begins at character 0 of 'x'");
        assertThatThrownBy(() -> task(folder.resolve("none.jsonl"), true))
                .hasMessage("data: there is no file " + folder.resolve("none.jsonl"));
    }

    @Test
    void shouldRefuseDataThatCannotBeHeldBeforeItIsRead() throws IOException {
        assertThatThrownBy(() -> task(Path.of("/dev/zero"), true))
                .hasMessageStartingWith("data: /dev/zero is a folder, a pipe or a device");
        Path large = folder.resolve("large.jsonl");
        try (RandomAccessFile sparse = new RandomAccessFile(large.toFile(), "rw")) {
            sparse.setLength(Runtime.getRuntime().maxMemory());
        }
        assertThatThrownBy(() -> task(large, true))
                .hasMessageStartingWith(
                        "data: " + large + " has " + Files.size(large) + " bytes; all rows are held in memory");
    }

    @Test
    void shouldRefuseARowThatTheRewardCannotJudge() throws IOException {
        Path file = Files.writeString(folder.resolve("c.jsonl"), "{\"prompt\": \"1\"}");
        TextTask asked = new TextTask(
                new JsonLines(file.toString()),
                new Digits(),
                true,
                4,
                List.of(),
                new OneTurn(),
                HeldOutRows.defaults(),
                TextFiles.unknown());
        assertThatThrownBy(() -> asked.inspected(ExactReward.defaults(), 100, 0))
                .hasMessage(
                        "data: " + file
                                + " line 1: reward exact compares with the row's \"answer\", which must be a text or a number: there is none");
        assertThatThrownBy(() -> asked.inspected(RegexReward.defaults(), 100, 0))
                .hasMessage("data: " + file
                        + " line 1: reward regex has no pattern to look for; give one, --set 'reward.pattern=[0-9]+'");
        assertThatThrownBy(() -> asked.inspected(ANY, 9, 9))
                .hasMessage("data: " + file
                        + " line 1: the prompt has 1 tokens, and a response (task.response_tokens) leaves the model"
                        + " room for 0; prompts are not truncated, so shorten the prompt or leave it out");
    }

    @Test
    void shouldRefuseByItsCharactersAPromptThatCannotFit() throws IOException {
        Path file = Files.writeString(folder.resolve("d.jsonl"), "{\"prompt\": \"123\"}");
        TextTask asked = new TextTask(
                new JsonLines(file.toString()),
                new Unencodable(),
                true,
                4,
                List.of(),
                new OneTurn(),
                HeldOutRows.defaults(),
                TextFiles.unknown());
        assertThatThrownBy(() -> asked.inspected(ANY, 11, 9))
                .hasMessage("data: " + file
                        + " line 1: the prompt has 3 characters, and the 2 tokens that a response"
                        + " (task.response_tokens) leaves have at most 2; prompts are not truncated, so"
                        + " shorten the prompt or leave it out");
    }

    @Test
    void shouldHoldOutAShareOfTheRowsTheSameEveryTime() throws IOException {
        HeldOutRows share = new HeldOutRows(JsonLines.defaults(), 0.3, 5);
        Task task = task(lines(10), share).task();
        List<String> trained = texts(task.prompts(), 7, 0, 14);
        List<String> held = texts(task.heldOut().orElseThrow(), 1, 0, 6);
        assertThat(new HashSet<>(trained)).hasSize(7);
        assertThat(new HashSet<>(held)).hasSize(3).doesNotContainAnyElementsOf(trained);
        assertThat(texts(task(lines(10), share).task().heldOut().orElseThrow(), 1, 0, 6))
                .isEqualTo(held);
        assertThatThrownBy(() -> task(lines(1), share))
                .hasMessageStartingWith("eval.share of 0.3 holds out 1 of 1 rows, so none is left to train on");
    }

    @Test
    void shouldHoldOutTheRowsOfAFileOfTheirOwn() throws IOException {
        Path own = Files.writeString(folder.resolve("own.jsonl"), "{\"prompt\": \"123\"}\n{\"prompt\": \"9\"}\n");
        HeldOutRows rows = new HeldOutRows(new JsonLines(own.toString()), 0, 0);
        TextTask text = task(lines(3), rows);
        assertThat(text.files().rows()).isEqualTo(3);
        assertThat(text.files().evalRows()).isEqualTo(2);
        assertThat(text.task().promptTokens()).as("the longest, held out").isEqualTo(3);
        assertThat(texts(text.task().heldOut().orElseThrow(), 1, 0, 2)).containsExactlyInAnyOrder("123", "9");
        Files.writeString(own, "{\"prompt\": \"5\"}");
        assertThatThrownBy(text::requireHeldOutAsRecorded)
                .hasMessageStartingWith("task.eval.data: the rows of ")
                .hasMessageContaining("differ from those the run started with");
        assertThatThrownBy(() -> new HeldOutRows(new JsonLines("a"), 0.5, 0))
                .hasMessageStartingWith("share is 0.5 and data names held-out prompts of their own");
        assertThatThrownBy(() -> task(lines(3), new HeldOutRows(new JsonLines("none.jsonl"), 0, 0)))
                .hasMessage("eval.data: there is no file none.jsonl");
    }

    @Test
    void shouldRefuseRowsThatHaveChangedSinceTheRunBegan() throws IOException {
        Path file = lines(3);
        TextTask text = task(file, true);
        Files.writeString(file, "{\"prompt\": \"5\"}");
        assertThatThrownBy(text::requireDataAsRecorded)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("differ from those the run started with");
    }

    private void refused(String content, String message) throws IOException {
        Path file = Files.writeString(folder.resolve("b.jsonl"), content);
        assertThatThrownBy(() -> task(file, true))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining(message);
    }

    private Path lines(int count) throws IOException {
        List<String> lines = IntStream.range(0, count)
                .mapToObj(i -> "{\"prompt\": \"" + i + "\"}")
                .toList();
        return Files.write(folder.resolve("lines.jsonl"), lines);
    }

    private static TextTask task(Path file, boolean shuffle) {
        return task(file, shuffle, HeldOutRows.defaults());
    }

    private static TextTask task(Path file, HeldOutRows eval) {
        return task(file, true, eval);
    }

    private static TextTask task(Path file, boolean shuffle, HeldOutRows eval) {
        return new TextTask(
                        new JsonLines(file.toString()),
                        new Digits(),
                        shuffle,
                        4,
                        List.of(),
                        new OneTurn(),
                        eval,
                        TextFiles.unknown())
                .inspected(ANY, 100, 0);
    }

    private static List<String> texts(Task task, long seed, long from, long to) {
        return texts(task.prompts(), seed, from, to);
    }

    private static List<String> texts(PromptDataset prompts, long seed, long from, long to) {
        return LongStream.range(from, to)
                .mapToObj(
                        i -> Symbols.tokenizer().decode(prompts.prompt(seed, i).tokens()))
                .toList();
    }
}
