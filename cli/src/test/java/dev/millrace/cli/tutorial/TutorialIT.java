package dev.millrace.cli.tutorial;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.python.PythonInterpreter;
import dev.millrace.cli.start.PackagedCommand;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** The commands of the tutorials, as a reader types them one after the other, by the packaged command. */
@Execution(ExecutionMode.CONCURRENT)
class TutorialIT {
    private static final Path TUTORIALS = Path.of("..", "docs", "tutorials");
    /** Needs NumPy, and nothing of the others. */
    private static final String OF_PYTHON = "4-a-collapse-elsewhere.md";

    private static final Pattern REWARD = Pattern.compile("\"reward\": ([0-9.e-]+)");
    private static final long PATIENCE_MINUTES = 20;

    @TempDir
    private Path folder;

    @Test
    void shouldDoWhatTheTutorialsSay() throws Exception {
        PackagedCommand.writeTo(folder);
        List<Path> pages;
        try (Stream<Path> files = Files.list(TUTORIALS)) {
            pages = files.filter(page -> !page.endsWith(OF_PYTHON)).sorted().toList();
        }
        int blocks = 0;
        for (Path page : pages) {
            for (TutorialPage.Block block : TutorialPage.read(page).blocks()) {
                run(page, block, Map.of());
                blocks++;
            }
        }
        assertThat(blocks).isGreaterThan(10);
    }

    @Test
    void shouldDoWhatTheTutorialWithPythonSays() throws Exception {
        Path python = Path.of(PythonInterpreter.with(folder, "numpy").command());
        String path = System.getenv("PATH");
        PackagedCommand.writeTo(folder);
        Files.createSymbolicLink(folder.resolve("clients"), PythonInterpreter.CLIENT.getParent());
        Path page = TUTORIALS.resolve(OF_PYTHON);
        for (TutorialPage.Block block : TutorialPage.read(page).blocks()) {
            run(
                    page,
                    block,
                    Map.of(
                            "PATH",
                            python.getParent() == null ? path : python.getParent() + ":" + path,
                            "PYTHONDONTWRITEBYTECODE",
                            "1"));
        }
        assertThat(lastRewards("collapsed")).isLessThan(0.75 * lastRewards("corrected"));
    }

    /** Mean of the recorded steps 180 to 199. */
    private double lastRewards(String recorded) throws IOException {
        List<String> lines = new ArrayList<>();
        for (int step = 180; step < 200; step++) {
            lines.addAll(Files.readAllLines(folder.resolve(recorded).resolve(step + ".jsonl")));
        }
        return lines.stream()
                .map(REWARD::matcher)
                .filter(Matcher::find)
                .mapToDouble(reward -> Double.parseDouble(reward.group(1)))
                .average()
                .orElseThrow();
    }

    private void run(Path page, TutorialPage.Block block, Map<String, String> environment)
            throws IOException, InterruptedException {
        Path printed = folder.resolve("printed");
        ProcessBuilder builder = new ProcessBuilder("bash", "-e", "-c", block.commands())
                .directory(folder.toFile())
                .redirectErrorStream(true)
                .redirectOutput(printed.toFile());
        builder.environment().putAll(environment);
        Process shell = builder.start();
        boolean ended = shell.waitFor(PATIENCE_MINUTES, TimeUnit.MINUTES);
        if (!ended) {
            shell.descendants().forEach(ProcessHandle::destroyForcibly);
            shell.destroyForcibly();
        }
        String what = page + ":\n" + block.commands() + "printed:\n" + Files.readString(printed);
        assertThat(ended).as(what).isTrue();
        assertThat(shell.exitValue()).as(what).isEqualTo(block.exit());
        for (String expected : block.expected()) {
            assertThat(unwrapped(Files.readString(printed))).as(what).contains(unwrapped(expected));
        }
        for (String file : block.files()) {
            assertThat(folder.resolve(file)).as(what).isNotEmptyFile();
        }
    }

    /** Long lines are wrapped where a terminal would end. */
    private static String unwrapped(String text) {
        return text.replaceAll("\\s+", " ");
    }
}
