package dev.millrace.policy.ort;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.policy.ort.Ort.NativeLibraries;
import dev.millrace.policy.session.Engine;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(900)
class NativeLibrariesIT {
    @TempDir
    private Path folder;

    /** A process that uses the runtime until it is killed. */
    static final class Sleeper {
        private Sleeper() {}

        public static void main(String[] arguments) throws Exception {
            Engine.cpu().requireUsable();
            System.out.write('r');
            System.out.flush();
            Thread.sleep(Long.MAX_VALUE);
        }
    }

    private void killOneThatUsesTheRuntime() throws Exception {
        ProcessBuilder builder = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Djava.io.tmpdir=" + folder.resolve("tmp"),
                "-XX:TieredStopAtLevel=1",
                Sleeper.class.getName());
        builder.environment().put("CLASSPATH", System.getProperty("java.class.path"));
        builder.environment().put("XDG_CACHE_HOME", folder.resolve("cache").toString());
        builder.redirectError(ProcessBuilder.Redirect.INHERIT);
        Process process = builder.start();
        try (InputStream out = process.getInputStream()) {
            assertThat(out.read()).isEqualTo('r');
        } finally {
            process.destroyForcibly().waitFor();
        }
    }

    private List<Path> files(String of) throws IOException {
        try (Stream<Path> all = Files.walk(folder.resolve(of))) {
            return all.filter(Files::isRegularFile).toList();
        }
    }

    private static long bytes(List<Path> files) {
        return files.stream().mapToLong(file -> file.toFile().length()).sum();
    }

    @Test
    void shouldLeaveNoCopiesBehindHoweverOftenItIsKilled() throws Exception {
        Files.createDirectory(folder.resolve("tmp"));
        killOneThatUsesTheRuntime();
        List<Path> cached = files("cache");
        assertThat(bytes(cached)).as("the libraries, once").isGreaterThan(10 << 20);
        assertThat(files("tmp")).isEmpty();

        Path library = cached.stream()
                .filter(file -> file.toString().contains("onnxruntime."))
                .findFirst()
                .orElseThrow();
        byte[] whole = Files.readAllBytes(library);
        Files.write(library, new byte[1000]); // as a power loss may leave it
        Path half =
                Files.write(library.resolveSibling(library.getFileName() + NativeLibraries.PARTIAL), new byte[1000]);
        Files.setLastModifiedTime(half, FileTime.from(Instant.now().minusSeconds(3600)));
        killOneThatUsesTheRuntime();
        assertThat(files("cache")).containsExactlyInAnyOrderElementsOf(cached);
        assertThat(library).hasBinaryContent(whole);
        assertThat(files("tmp")).isEmpty();
    }
}
