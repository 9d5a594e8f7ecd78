package dev.millrace.cli.python;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The tests of the Python package that need no broker, with the modules that are installed here. */
@Timeout(900)
class PythonPackageTest {
    @TempDir
    private Path directory;

    @Test
    void shouldPassTheTestsOfThePackage() throws Exception {
        PythonInterpreter python = PythonInterpreter.with(directory, "confluent_kafka", "numpy");
        String tests = PythonInterpreter.CLIENT.resolve("tests").toString();
        Process process = python.start("tests", Map.of(), "-m", "unittest", "discover", "-s", tests);

        assertThat(process.waitFor(880, TimeUnit.SECONDS)).as("ends in time").isTrue();
        assertThat(python.printed("tests")).containsPattern("Ran [1-9]\\d+ tests");
        assertThat(process.exitValue()).as(python.printed("tests")).isZero();
    }

    @Test
    void shouldFindTheGradientOfTheExampleInDifferences() throws Exception {
        PythonInterpreter python = PythonInterpreter.with(directory, "confluent_kafka", "numpy");
        Process process = python.example("gradient", "numpy_decoder.py");

        assertThat(process.waitFor(880, TimeUnit.SECONDS)).as("ends in time").isTrue();
        assertThat(python.printed("gradient")).contains("the gradient of every tensor agrees with differences");
    }
}
