package dev.millrace.chaos.clock;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.millrace.chaos.process.TellsTheTime;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(300)
class ProcessClockTest {
    @TempDir
    private Path directory;

    private Process process;
    private BufferedReader out;
    private BufferedWriter in;

    @BeforeEach
    void startAProcess() throws IOException {
        assumeTrue(ProcessClock.isAvailable(), "a JDK's attach mechanism sets the clock");
        process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx48m",
                        "-cp",
                        System.getProperty("java.class.path"),
                        TellsTheTime.class.getName())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        out = process.inputReader();
        in = process.outputWriter();
    }

    @AfterEach
    void endIt() {
        process.destroyForcibly();
    }

    /** Error of each of its clocks, in hours. */
    private String hours() throws IOException {
        in.write("\n");
        in.flush();
        return out.readLine();
    }

    @Test
    void shouldSetTheClockOfARunningProcessAndSetItRightAgain() throws IOException {
        assertThat(hours()).isEqualTo("0 0 0 0 0");
        ProcessClock clock = new ProcessClock(directory);

        clock.set(process.pid(), Duration.ofHours(5));
        assertThat(hours()).isEqualTo("5 5 5 5 5");

        clock.set(process.pid(), Duration.ofHours(-7));
        assertThat(hours()).isEqualTo("-7 -7 -7 -7 -7");

        clock.set(process.pid(), Duration.ZERO);
        assertThat(hours()).isEqualTo("0 0 0 0 0");
    }
}
