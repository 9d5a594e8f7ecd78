package dev.millrace.cli.python;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.Main;
import dev.millrace.cli.start.PackagedCommand;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The notebook of the Python package over an archive and over the folder of the same run, without a broker in Python. */
@Timeout(900)
class PythonNotebookIT {
    private static final Path ARCHIVE =
            Path.of("src", "test", "resources", "archives", "contract-3").toAbsolutePath();
    private static final String EXECUTE = """
            import json, re, sys
            names = {}
            for cell in json.load(open(sys.argv[1]))["cells"]:
                if cell["cell_type"] == "code":
                    exec(re.sub('^RUN = ".*"', lambda run: "RUN = " + repr(sys.argv[2]), "".join(cell["source"])), names)
            """;

    @TempDir
    private Path directory;

    private String executed(PythonInterpreter python, String name, Path run) throws Exception {
        Process process = python.start(
                name,
                Map.of("MILLRACE", directory.resolve("millrace").toString(), "MPLBACKEND", "Agg"),
                "-W",
                "ignore:FigureCanvasAgg", // nobody sees the pictures
                "-c",
                EXECUTE,
                PythonInterpreter.CLIENT.resolve("examples/explore.ipynb").toString(),
                run.toString());
        assertThat(process.waitFor(300, TimeUnit.SECONDS)).as("ends in time").isTrue();
        assertThat(process.exitValue()).as(python.printed(name)).isZero();
        return python.printed(name);
    }

    @Test
    void executesEveryCellOverAnArchiveAndARunsFolder() throws Exception {
        PythonInterpreter python = PythonInterpreter.with(directory, "numpy", "pyarrow");
        PackagedCommand.writeTo(directory);
        Path run = directory.resolve("run");
        assertThat(Main.commandLine().execute("import", ARCHIVE.toString(), "--run-dir", run.toString()))
                .isZero();

        String ofTheArchive = executed(python, "archive", ARCHIVE);

        assertThat(ofTheArchive)
                .contains("372 rollouts, 1860 tokens, 6 steps", "84 dropped", "158 trained", "34 masked")
                .contains(" staleness 2, version ", " of 1860 tokens");
        assertThat(executed(python, "folder", run)).isEqualTo(ofTheArchive);
    }
}
