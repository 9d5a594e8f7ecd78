package dev.millrace.view.http;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.millrace.view.http.ViewServer.PageFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The page in the jar is what its sources give. */
class PageFileTest {
    private static final Path SOURCES = Path.of("page");

    @Test
    void shouldBeMadeOfTheSourcesAsTheyAre() throws Exception {
        MessageDigest hash = MessageDigest.getInstance("SHA-256");
        for (String name : sources()) {
            hash.update((name + "\n").getBytes(StandardCharsets.UTF_8));
            hash.update(Files.readAllBytes(SOURCES.resolve(name)));
        }
        assertThat(new String(PageFile.read().bytes(), StandardCharsets.UTF_8))
                .as(
                        "a source has changed since the page was made; make it anew with 'npm ci && npm run build' in view/page")
                .contains("<meta name=\"millrace-built-from\" content=\""
                        + HexFormat.of().formatHex(hash.digest()) + "\">");
    }

    /** As build.mjs lists them. */
    private static List<String> sources() throws IOException {
        try (Stream<Path> files = Files.walk(SOURCES.resolve("src"))) {
            return Stream.concat(
                            files.filter(file -> file.toString().matches(".*\\.(tsx?|css|html)"))
                                    .map(file ->
                                            SOURCES.relativize(file).toString().replace('\\', '/')),
                            Stream.of("build.mjs", "package.json", "package-lock.json", "tsconfig.json"))
                    .sorted()
                    .toList();
        }
    }

    @Test
    void shouldComeOutTheSameByteForByteWhereItsToolsAreInstalled(@TempDir Path folder) throws Exception {
        assumeTrue(
                Files.isDirectory(SOURCES.resolve("node_modules")),
                "view/page/node_modules is not there: npm ci makes it");
        Process build = new ProcessBuilder("node", "build.mjs", folder.toString())
                .directory(SOURCES.toFile())
                .redirectErrorStream(true)
                .start();
        String said = new String(build.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(build.waitFor()).as(said).isZero();
        assertThat(Files.readAllBytes(folder.resolve("index.html")))
                .isEqualTo(PageFile.read().bytes());
    }

    @Test
    void shouldPassItsOwnTestsWhereItsToolsAreInstalled() throws Exception {
        assumeTrue(
                Files.isDirectory(SOURCES.resolve("node_modules")),
                "view/page/node_modules is not there: npm ci makes it");
        Process tests = new ProcessBuilder("node", "test.mjs")
                .directory(SOURCES.toFile())
                .redirectErrorStream(true)
                .start();
        String said = new String(tests.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(tests.waitFor()).as(said).isZero();
    }

    @Test
    void shouldNeedNothingFromElsewhere() {
        String page = new String(PageFile.read().bytes(), StandardCharsets.UTF_8);
        assertThat(page).doesNotContain("src=\"http", "href=\"http", "@import", "url(http");
        assertThat(PageFile.read().policy())
                .startsWith("default-src 'none'; script-src 'sha256-")
                .contains("connect-src 'self'");
    }
}
