package dev.millrace.policy.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.api.tokenizer.ChatMessage;
import dev.millrace.api.tokenizer.Tokenizer;
import dev.millrace.policy.tokenizer.HuggingFaceTokenizer.NativeLibraryFolder;
import dev.millrace.policy.tokenizer.HuggingFaceTokenizer.TokenizerFile;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class HuggingFaceTokenizerTest {
    private static final Path TINY = Path.of("src", "test", "resources", "tiny", "tokenizer.json");
    private static final Path STORIES = Path.of("..", "..", "shared", "models", "stories260k");

    @TempDir
    private Path folder;

    @Test
    void shouldMakeTokensOfTextAndTextOfTokens() throws IOException {
        Tokenizer tokenizer = tiny("{\"vocab_size\": 40, \"eos_token_id\": 1}");
        assertThat(tokenizer.encode("The dog ran")).containsExactly(0, 15, 11, 13);
        assertThat(tokenizer.decode(new int[] {0, 15, 11, 1})).isEqualTo("<s> the dog </s>");
        assertThat(tokenizer.text(new int[] {0, 15, 11, 1})).isEqualTo("the dog");
        assertThat(tokenizer.stopTokens()).containsExactly(1);
    }

    @Test
    void shouldSayHowLongATextOfSoManyTokensIsAtMost() throws IOException {
        Tokenizer tokenizer = tiny("{\"vocab_size\": 40}");
        assertThat(tokenizer.mostCharacters(3))
                .as("all unknown words are one token")
                .isEqualTo(Integer.MAX_VALUE);
        String bytes = """
                {"model": {"type": "BPE", "vocab": {"a": 0, "aaaaa": 1}}, "pre_tokenizer": {"type": "ByteLevel"}, "normalizer": %s,
                 "added_tokens": [{"id": 2, "content": "<|end|>", "lstrip": %s}]}""";
        assertThat(longest(bytes, "null", "false")).isEqualTo(7);
        assertThat(longest(bytes, "{\"type\": \"NFC\"}", "false")).isEqualTo(7);
        assertThat(longest(bytes, "{\"type\": \"Strip\"}", "false")).isZero();
        assertThat(longest(
                        bytes,
                        "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \" +\"}, \"content\": \" \"}",
                        "false"))
                .isZero();
        assertThat(longest(
                        bytes,
                        "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, {\"type\": \"StripAccents\"}]}",
                        "false"))
                .isZero();
        assertThat(longest(bytes, "null", "true"))
                .as("it takes the spaces before it")
                .isZero();
        String longest = "the ".repeat(300_000);
        assertThat(tokenizer.encode(longest))
                .as("of more characters than are encoded at once")
                .hasSize(300_001);
    }

    private static int longest(String json, String normalizer, String lstrip) {
        return TokenizerFile.read(json.formatted(normalizer, lstrip).getBytes(StandardCharsets.UTF_8), "tokenizer.json")
                .longestToken();
    }

    @Test
    void shouldKnowTheIdsThatTheModelHasBeyondItsTokens() throws IOException {
        Tokenizer tokenizer = tiny("{\"vocab_size\": 40}");
        assertThat(tokenizer.vocabSize()).isEqualTo(40);
        assertThat(tokenizer.text(new int[] {39, 11})).isEqualTo("dog");
        assertThat(tokenizer.text(new int[] {39})).isEmpty();
        assertThatThrownBy(() -> tokenizer.decode(new int[] {11, 40}))
                .hasMessage("token 40 at 1 is outside the vocabulary of 40");
        assertThat(tokenizer.hash())
                .isNotEqualTo(tiny("{\"vocab_size\": 41}").hash())
                .isEqualTo(tiny("{\"vocab_size\": 40}").hash());
    }

    @Test
    void shouldPreferTheStopTokensOfTheGenerationConfig() throws IOException {
        Files.writeString(folder.resolve("generation_config.json"), "{\"eos_token_id\": [1, 18]}");
        assertThat(tiny("{\"vocab_size\": 40, \"eos_token_id\": 5}").stopTokens())
                .containsExactly(1, 18);
    }

    @Test
    void shouldRenderAConversationWithOneFirstToken() throws IOException {
        assertThatThrownBy(() -> tiny("{}").encode(List.of(new ChatMessage("user", "hello"))))
                .hasMessageStartingWith("this tokenizer has no chat template");
        assertThat(tiny("{}").chatHash()).isEmpty();
        Files.writeString(folder.resolve("tokenizer_config.json"), """
                {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "chat_template": [{"name": "tool", "template": ""},
                 {"name": "default", "template": "{{ bos_token }} {% for m in messages %}{{ m.content }} ? {% endfor %}"}]}""");
        Tokenizer tokenizer = tiny("{}");
        List<ChatMessage> messages = List.of(new ChatMessage("user", "the dog"));
        assertThat(tokenizer.encode(messages)).containsExactly(0, 15, 11, 20);
        Files.writeString(folder.resolve("chat_template.jinja"), "{{ bos_token }} {{ messages[0].role }} !\n");
        assertThat(tiny("{}").encode(messages)).as("a file of its own").containsExactly(0, 2, 21);
        assertThat(tiny("{}").chatHash()).isNotEqualTo(tokenizer.chatHash());
        assertThat(tiny("{}").hash()).isEqualTo(tokenizer.hash());
    }

    @Test
    void shouldRefuseChatTemplatesThatCannotBeRead() throws IOException {
        Files.writeString(folder.resolve("tokenizer_config.json"), "{\"chat_template\": 5}");
        assertThatThrownBy(() -> tiny("{}"))
                .hasMessage(folder.resolve("tokenizer_config.json")
                        + ": chat_template=5: must be a text, or a list of texts with names");
        Files.writeString(folder.resolve("tokenizer_config.json"), "{\"chat_template\": \"other\"}");
        Path template = folder.resolve("chat_template.jinja");
        Files.write(template, "gr\u00fcn".getBytes(StandardCharsets.ISO_8859_1));
        assertThatThrownBy(() -> tiny("{}")).hasMessage(template + " is not UTF-8 text");
        Files.delete(template);
        Files.createSymbolicLink(template, folder.resolve("blob"));
        assertThatThrownBy(() -> tiny("{}"))
                .hasMessage(
                        template + " is not a regular file or a link to one; remove it, or give the whole checkpoint");
        Files.writeString(folder.resolve("blob"), "{{ messages[0].content }} !");
        assertThat(tiny("{}").encode(List.of(new ChatMessage("user", "the")))).containsExactly(15, 21);
    }

    @Test
    void shouldFindOutWhetherAFolderCanBeWritten() throws IOException {
        Path file = Files.writeString(folder.resolve("file"), "");
        assertThat(NativeLibraryFolder.isWritable(file.resolve("below"))).isFalse();
        assertThat(NativeLibraryFolder.isWritable(folder.resolve("a/b"))).isTrue();
        assertThat(folder.resolve("a/b")).isEmptyDirectory();
    }

    @Test
    void shouldRefuseWhatIsNoTokenizerOfTheModel() throws IOException {
        assertThatThrownBy(() -> new TokenizerDirectory(folder.toString()).open())
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageStartingWith(folder + " holds no tokenizer.json");
        Path file = Files.createDirectory(folder.resolve("tokenizer.json"));
        assertThatThrownBy(() -> new TokenizerDirectory(folder.toString()).open())
                .hasMessage(file + " is not a regular file; give the directory of a checkpoint");
        Files.delete(file);
        try (RandomAccessFile sparse = new RandomAccessFile(file.toFile(), "rw")) {
            sparse.setLength(200_000_000);
        }
        assertThatThrownBy(() -> new TokenizerDirectory(folder.toString()).open())
                .hasMessageStartingWith(file + " has 200000000 bytes, and no tokenizer needs more than 134217728");
        assertThatThrownBy(() -> tiny("{\"vocab_size\": 7}"))
                .hasMessageContaining("has a token with the id ")
                .hasMessageContaining("and the model of config.json knows 7 ids");
        assertThatThrownBy(() -> tiny("{\"vocab_size\": 40, \"eos_token_id\": 40}"))
                .hasMessageContaining("is 40, which is not among the 40 tokens");
        Files.writeString(folder.resolve("tokenizer.json"), "{\"model\": 3}");
        assertThatThrownBy(() -> new TokenizerDirectory(folder.toString()).open())
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("tokenizer.json cannot be read as a tokenizer: ");
    }

    @Test
    void shouldGiveTheIdsOfARealTokenizerAndDecodeThemBack() throws IOException {
        assumeTrue(Files.isDirectory(STORIES), () -> "there is no " + STORIES + " here");
        Tokenizer tokenizer = new TokenizerDirectory(STORIES.toString()).open();
        assertThat(tokenizer.vocabSize()).isEqualTo(512);
        assertThat(tokenizer.stopTokens()).containsExactly(2);
        JsonNode cases =
                new ObjectMapper().readTree(STORIES.resolve("tokenization.json").toFile());
        assertThat(cases.size()).isGreaterThan(50);
        for (JsonNode one : cases) {
            String text = one.get("text").asText();
            int[] ids = IntStream.range(0, one.get("ids").size())
                    .map(i -> one.get("ids").get(i).asInt())
                    .toArray();
            assertThat(tokenizer.encode(text)).as(text).isEqualTo(ids);
            assertThat(tokenizer.text(Arrays.copyOfRange(ids, 1, ids.length))).isEqualTo(text);
        }
    }

    private Tokenizer tiny(String config) throws IOException {
        Files.writeString(folder.resolve("config.json"), config);
        Files.write(folder.resolve("tokenizer.json"), Files.readAllBytes(TINY));
        return new TokenizerDirectory(folder.toString()).open();
    }
}
