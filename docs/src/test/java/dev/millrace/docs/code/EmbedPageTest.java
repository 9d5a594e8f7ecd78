package dev.millrace.docs.code;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The runtime's own test runs the same lines. */
class EmbedPageTest {
    @TempDir
    private Path folder;

    @Test
    void shouldCompile() throws Exception {
        try (PageCode code = PageCode.compile("how-to/embed.md", folder)) {
            assertThat(code.type("example.Embedded").getMethod("main", String[].class))
                    .isNotNull();
        }
    }
}
