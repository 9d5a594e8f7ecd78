package dev.millrace.chaos.process;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A process of the suite does not outlive the suite, nor stand still for ever. */
@Timeout(300)
class LeftAloneTest {
    private Process parent;

    @BeforeEach
    void startAnyProcess() throws IOException {
        parent = new ProcessBuilder("cat").start();
    }

    @AfterEach
    void endIt() {
        parent.destroyForcibly();
    }

    /** Continues for ever. */
    public static final class Endless {
        /** Says that it is there. */
        public static void main(String[] args) throws InterruptedException {
            System.out.println(args[0]);
            new CountDownLatch(1).await();
        }
    }

    private Process role(long parentPid) throws IOException {
        return new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx32m",
                        "-cp",
                        System.getProperty("java.class.path"),
                        RoleMain.class.getName(),
                        Long.toString(parentPid),
                        Endless.class.getName(),
                        "here")
                .redirectErrorStream(true)
                .start();
    }

    @Test
    void shouldHaltWhenWhoStartedItIsKilled() throws Exception {
        Process role = role(parent.pid());
        assertThat(role.inputReader().readLine()).isEqualTo("here");

        parent.destroyForcibly();

        assertThat(role.waitFor(120, TimeUnit.SECONDS)).isTrue();
        assertThat(role.exitValue()).isEqualTo(RoleMain.LEFT_ALONE);
    }

    @Test
    void shouldHaltWhereWhoStartedItIsGoneAlready() throws Exception {
        parent.destroyForcibly().waitFor();

        Process role = role(parent.pid());

        assertThat(role.waitFor(120, TimeUnit.SECONDS)).isTrue();
        assertThat(role.exitValue()).isEqualTo(RoleMain.LEFT_ALONE);
    }

    @Test
    void shouldSuspendAProcessUntilItIsClosed() throws IOException {
        assumeTrue(Files.exists(Path.of("/proc/self/status")), "states of processes are read as Linux gives them");
        Suspension still = Suspension.of(parent.pid());
        awaitState(true);

        still.close();

        awaitState(false);
    }

    /** A signal arrives a moment after it was sent. */
    private void awaitState(boolean isStill) throws IOException {
        while (state().equals("T") != isStill) {
            Thread.onSpinWait();
        }
    }

    private String state() throws IOException {
        return Files.readAllLines(Path.of("/proc", Long.toString(parent.pid()), "status")).stream()
                .filter(line -> line.startsWith("State:"))
                .map(line -> line.replaceAll("State:\\s+(\\w).*", "$1"))
                .findFirst()
                .orElseThrow();
    }
}
