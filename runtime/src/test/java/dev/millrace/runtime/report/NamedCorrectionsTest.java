package dev.millrace.runtime.report;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.NamedAlgorithms;
import dev.millrace.runtime.config.ConfigException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NamedCorrectionsTest {
    @TempDir
    private Path folder;

    @Test
    void shouldSayWhyARunWhoseObjectiveTakesACorrectionCannotGoWithoutOne() {
        assertThatThrownBy(() -> NamedCorrections.parse("none", NamedAlgorithms.of("decoupled_ppo")))
                .isInstanceOf(ConfigException.class)
                .hasMessageStartingWith("--corrections none does not fit the run's objective")
                .hasMessageContaining("objective decoupled_ppo")
                .hasMessageEndingWith("--corrections ppo or grpo names a whole algorithm in its place");
    }

    @Test
    void shouldNameTheFileThatItRefuses() throws IOException {
        Path file = Files.writeString(folder.resolve("other.yaml"), "m2pa: {enabled: true}\n");

        assertThatThrownBy(() -> NamedCorrections.parse(file.toString(), Algorithm.defaults()))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("--corrections " + file + ": ")
                .hasMessageContaining("m2pa");
    }
}
