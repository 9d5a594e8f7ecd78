package dev.millrace.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.Main;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReplayCommandTest {
    @TempDir
    Path folder;

    @BeforeEach
    void writeConfiguration() throws Exception {
        Files.writeString(folder.resolve("config.yaml"), "run: {id: a}\n");
    }

    private String refusal(String... options) {
        StringWriter err = new StringWriter();
        List<String> words = new ArrayList<>(List.of("replay", "--run-dir", folder.toString()));
        words.addAll(List.of(options));

        int status = Main.commandLine()
                .setOut(new PrintWriter(err))
                .setErr(new PrintWriter(err))
                .execute(words.toArray(String[]::new));

        assertThat(status).isNotZero();
        return err.toString();
    }

    @Test
    void shouldRefuseWrongOptionsBeforeABrokerStarts() {
        assertThat(refusal("--corrections", "decoupled_xyz")).contains("decoupled_xyz");
        assertThat(refusal("--retrain", "--rescore", "own"))
                .contains("--rescore belongs to --corrections; --retrain and --gradients");
        assertThat(refusal("--corrections", "none", "--keep")).contains("give --report and one of these");
        assertThat(refusal("--from-version", "3"))
                .contains("--report and ranges belong to --corrections and --rescore");
        assertThat(refusal("--retrain", "--at-version", "4")).contains("--at-version chooses steps for --gradients");

        assertThat(folder.toFile().list()).containsExactly("config.yaml");
    }
}
