package dev.millrace.chaos;

import java.io.IOException;
import java.util.List;

/** A command of the machine that either does what it is asked for or cannot. */
final class MachineTool {
    private MachineTool() {}

    /** Whether it is there and did it. */
    static boolean ran(List<String> command) {
        try {
            return new ProcessBuilder(command)
                            .redirectErrorStream(true)
                            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                            .start()
                            .waitFor()
                    == 0;
        } catch (IOException noSuchCommand) {
            return false;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
