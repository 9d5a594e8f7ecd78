package dev.millrace.runtime.pipeline;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.log.ContentTopic;
import dev.millrace.runtime.RefusedRequestException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CachedFolderTest {
    private static final byte[] TOKENS = "{\"a\": 1}".getBytes(StandardCharsets.UTF_8);
    private static final String HASH = ContentTopic.hash(TOKENS);
    private static final Map<String, String> HASHES = Map.of("tokenizer.json", HASH);

    @TempDir
    private Path folder;

    private CachedFolder cached(Path... roots) {
        return new CachedFolder(List.of(roots), HASHES);
    }

    @Test
    void shouldMakeAFolderWithExactlyTheFilesAndFindItAgain() throws IOException {
        Path root = folder.resolve("cache/millrace");
        assertThat(cached(root).find()).isEmpty();
        Path made = cached(root).make(Map.of(HASH, TOKENS));
        assertThat(made.getParent()).isEqualTo(root);
        assertThat(made.resolve("tokenizer.json")).hasBinaryContent(TOKENS);
        assertThat(cached(root).find()).contains(made);
        assertThat(cached(root).make(Map.of(HASH, TOKENS))).as("by two at once").isEqualTo(made);
        assertThat(root).isDirectoryNotContaining(path -> !path.equals(made));
    }

    @Test
    void shouldNotUseAFolderThatSomebodyChanged() throws IOException {
        Path made = cached(folder).make(Map.of(HASH, TOKENS));
        Files.writeString(made.resolve("tokenizer.json"), "{}");
        assertThat(cached(folder).find()).isEmpty();
        assertThat(cached(folder).make(Map.of(HASH, TOKENS))).isEqualTo(made);
        assertThat(made.resolve("tokenizer.json")).hasBinaryContent(TOKENS);
        Files.writeString(made.resolve("chat_template.jinja"), "{{ 1 }}");
        assertThat(cached(folder).find()).as("a file too many").isEmpty();
    }

    @Test
    void shouldTakeTheNextPlaceWhereOneCannotBeWritten() throws IOException {
        Path file = Files.writeString(folder.resolve("file"), "");
        assertThat(cached(file.resolve("a"), folder).make(Map.of(HASH, TOKENS)).getParent())
                .isEqualTo(folder);
        assertThatThrownBy(() -> cached(file.resolve("a")).make(Map.of(HASH, TOKENS)))
                .isInstanceOf(RefusedRequestException.class)
                .hasMessageContaining("can be written")
                .hasMessageEndingWith("make one writable, or name another with XDG_CACHE_HOME");
    }
}
