package dev.millrace.chaos.observe;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.lang.ref.Reference;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ProcessHeapTest {
    private static final double MEGABYTES = 48;

    @BeforeEach
    void needAJdkOnLinux() {
        assumeTrue(ProcessHeap.isAvailable(), "live heaps are asked for with the JDK's jcmd, on Linux");
    }

    /** Holds an array until it is sent a line, and ends with its input. */
    static final class Holder {
        public static void main(String[] arguments) throws IOException {
            byte[] held = new byte[(int) MEGABYTES << 20];
            System.out.println("held");
            System.in.read();
            Reference.reachabilityFence(held);
            held = null;
            System.out.println("let go");
            while (System.in.read() >= 0) {}
        }
    }

    /** Not of this process: a library of Go, which other tests load, takes the signal that jcmd begins with. */
    @Test
    void shouldCountWhatIsHeldAndNotWhatWasLetGoOf() throws Exception {
        Process holder = new ProcessBuilder(
                        ProcessHandle.current().info().command().orElseThrow(),
                        "-Xmx128m",
                        "-XX:+UseSerialGC",
                        "-cp",
                        System.getProperty("java.class.path"),
                        Holder.class.getName())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        try (BufferedReader said = holder.inputReader();
                Writer line = holder.outputWriter()) {
            assertThat(said.readLine()).isEqualTo("held");
            double before = ProcessHeap.megabytes(holder.pid()).orElseThrow();
            line.write("\n");
            line.flush();
            assertThat(said.readLine()).isEqualTo("let go");
            double after = ProcessHeap.megabytes(holder.pid()).orElseThrow();

            assertThat(before - after).isBetween(MEGABYTES - 1, MEGABYTES + 1);
        } finally {
            holder.destroyForcibly();
        }
    }

    @Test
    void shouldPassOverAProcessThatIsGone() throws IOException, InterruptedException {
        Process gone = new ProcessBuilder("true").start();
        gone.waitFor();

        assertThat(ProcessHeap.megabytes(gone.pid())).isEmpty();
    }
}
