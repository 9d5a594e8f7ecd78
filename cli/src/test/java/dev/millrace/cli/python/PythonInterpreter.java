package dev.millrace.cli.python;

import static org.junit.jupiter.api.Assumptions.abort;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * An installed Python with the modules that a test needs, and the package {@code millrace} of this tree.
 *
 * @param command the interpreter
 * @param directory for what its programs print, as {@code NAME.out} and {@code NAME.err}
 */
public record PythonInterpreter(String command, Path directory) {
    /** The package, with its tests and examples. */
    public static final Path CLIENT =
            Path.of("../clients/python").toAbsolutePath().normalize();

    private static final List<String> COMMANDS = List.of("python3", "/usr/bin/python3");

    /** The first that can import all of the modules; the test is skipped where there is none. */
    public static PythonInterpreter with(Path directory, String... modules) throws Exception {
        for (String command : COMMANDS) {
            try {
                Process probe = new ProcessBuilder(command, "-c", "import " + String.join(", ", modules))
                        .redirectErrorStream(true)
                        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                        .start();
                if (probe.waitFor(120, TimeUnit.SECONDS) && probe.exitValue() == 0) {
                    return new PythonInterpreter(command, directory);
                }
            } catch (IOException e) {
                continue; // this one is not installed; another may be
            }
        }
        return abort("no python3 is installed that can import " + Arrays.toString(modules)
                + " (Debian: apt-get install python3-confluent-kafka python3-numpy python3-torch python3-avro"
                + " python3-requests; pip install pyarrow)");
    }

    /** Starts a program; its last arguments are the interpreter's. */
    public Process start(String name, Map<String, String> environment, String... arguments) throws IOException {
        List<String> line = new ArrayList<>(List.of(command));
        line.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(line)
                .redirectOutput(directory.resolve(name + ".out").toFile())
                .redirectError(directory.resolve(name + ".err").toFile());
        builder.environment().put("PYTHONPATH", CLIENT.toString());
        builder.environment().put("PYTHONDONTWRITEBYTECODE", "1");
        builder.environment().putAll(environment);
        return builder.start();
    }

    /** An example of the package. */
    public Process example(String name, String example, String... arguments) throws IOException {
        List<String> line =
                new ArrayList<>(List.of(CLIENT.resolve("examples/" + example).toString()));
        line.addAll(List.of(arguments));
        return start(name, Map.of(), line.toArray(String[]::new));
    }

    /** What a program has printed so far. */
    public String printed(String name) {
        try {
            Path err = directory.resolve(name + ".err");
            return Files.exists(err) ? Files.readString(directory.resolve(name + ".out")) + Files.readString(err) : "";
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }
}
