package dev.millrace.chaos.observe;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.ref.Reference;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class ProcessHeapTest {
    private static final double MEGABYTES = 48;

    @BeforeEach
    void needAJdkOnLinux() {
        assumeTrue(ProcessHeap.isAvailable(), "live heaps are asked for with the JDK's jcmd, on Linux");
    }

    @Test
    void shouldCountWhatIsHeldAndNotWhatWasLetGoOf() throws Exception {
        long pid = ProcessHandle.current().pid();
        byte[] held = new byte[(int) MEGABYTES << 20];
        double before = ProcessHeap.megabytes(pid).orElseThrow();
        Reference.reachabilityFence(held);
        held = new byte[0];

        double after = ProcessHeap.megabytes(pid).orElseThrow();

        Reference.reachabilityFence(held);
        assertThat(before - after).isBetween(MEGABYTES - 16, MEGABYTES + 16);
    }

    @Test
    void shouldPassOverAProcessThatIsGone() throws IOException, InterruptedException {
        Process gone = new ProcessBuilder("true").start();
        gone.waitFor();

        assertThat(ProcessHeap.megabytes(gone.pid())).isEmpty();
    }
}
