package dev.millrace.cli.tutorial;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.start.PackagedCommand;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The commands of the tutorials, as a reader types them one after the other, by the packaged command. */
class TutorialIT {
    private static final Path TUTORIALS = Path.of("..", "docs", "tutorials");
    private static final long PATIENCE_MINUTES = 4;

    @TempDir
    private Path folder;

    @Test
    void shouldDoWhatTheTutorialsSay() throws Exception {
        PackagedCommand.writeTo(folder);
        List<Path> pages;
        try (Stream<Path> files = Files.list(TUTORIALS)) {
            pages = files.sorted().toList();
        }
        int blocks = 0;
        for (Path page : pages) {
            for (TutorialPage.Block block : TutorialPage.read(page).blocks()) {
                run(page, block);
                blocks++;
            }
        }
        assertThat(blocks).isGreaterThan(10);
    }

    private void run(Path page, TutorialPage.Block block) throws IOException, InterruptedException {
        Path printed = folder.resolve("printed");
        Process shell = new ProcessBuilder("bash", "-e", "-c", block.commands())
                .directory(folder.toFile())
                .redirectErrorStream(true)
                .redirectOutput(printed.toFile())
                .start();
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
