package dev.millrace.runtime.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.millrace.runtime.config.ConfigTree.BoundedText;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(300)
class ConfigTreeTest {
    @TempDir
    private Path folder;

    private static void refused(Runnable reading, String sentence) {
        assertThatThrownBy(reading::run).isInstanceOf(ConfigException.class).hasMessageContaining(sentence);
    }

    @Test
    void shouldRefuseADeviceWithoutEnd() {
        Path device = Path.of("/dev/zero");
        assumeTrue(Files.exists(device));
        refused(() -> ConfigTree.read(device), "the configuration file /dev/zero has more than 1048576 bytes");
    }

    @Test
    void shouldRefuseAPipeThatNobodyWritesTo() throws Exception {
        Path pipe = folder.resolve("pipe");
        assumeTrue(isMade(pipe));
        assertThatThrownBy(() -> new BoundedText(Duration.ofMillis(20)).read(pipe))
                .isInstanceOf(ConfigException.class)
                .hasMessageContaining("is a pipe or a device, and it did not end within");
    }

    private static boolean isMade(Path pipe) throws InterruptedException {
        try {
            return new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor() == 0;
        } catch (IOException e) {
            return false; // no such command here
        }
    }

    @Test
    void shouldRefuseAFileThatIsTooLongOrNoText() throws Exception {
        Path file = folder.resolve("c.yaml");
        Files.writeString(file, "#".repeat(BoundedText.MOST_BYTES + 1));
        refused(() -> ConfigTree.read(file), "has more than 1048576 bytes, too many for a configuration");
        Files.write(file, new byte[] {'a', ':', ' ', (byte) 0xff});
        refused(() -> ConfigTree.read(file), "is not UTF-8 text");
    }

    @Test
    void shouldRefuseAliasesWhichWouldBeReadAsTheirNames() {
        refused(() -> ConfigTree.parse("a: &x 3\nb: *x\n", "f"), "f refers to an anchor, *x, at line 2");
        StringBuilder bomb = new StringBuilder("a0: &a0 [1]\n");
        for (int i = 1; i < 40; i++) {
            bomb.append(
                    "a%d: &a%d [%s]\n".formatted(i, i, "*a%d, ".formatted(i - 1).repeat(20)));
        }
        refused(() -> ConfigTree.parse(bomb.toString(), "f"), "f refers to an anchor, *a0");
        refused(() -> ConfigTree.set(ConfigTree.empty(), "a=*x"), "a=...: the value refers to an anchor");
        assertThat(ConfigTree.parse("a: '*x'", "f").get("a").asText()).isEqualTo("*x");
    }

    @Test
    void shouldRefuseWhatIsNestedWithoutSense() {
        refused(() -> ConfigTree.parse("[".repeat(10_000), "f"), "f is not valid YAML");
        refused(() -> ConfigTree.parse("a: " + "[".repeat(40) + "]".repeat(40), "f"), "f is not valid YAML");
        refused(() -> ConfigTree.parse("a: 1\na: 2", "f"), "f is not valid YAML");
    }
}
