package dev.millrace.runtime.config;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Any bytes as a configuration file: a configuration that is the same when it is written and read again, or a sentence. */
@Timeout(300)
public class ConfigurationFuzzTest {
    /** Called by the fuzzer with what it made up. */
    public static void fuzzerTestOneInput(byte[] input) {
        MillraceConfig config;
        try {
            config = new ConfigLayers()
                    .yaml(new String(input, StandardCharsets.UTF_8), "file")
                    .resolve();
        } catch (ConfigException e) {
            assertThat(e.getMessage()).isNotBlank();
            return;
        }
        ObjectNode tree = ConfigBinder.unbind(config);
        assertThat(ConfigBinder.unbind(new ConfigLayers()
                        .yaml(ConfigTree.write(tree), "written")
                        .resolve()))
                .isEqualTo(tree);
    }

    static Stream<Path> corpus() throws IOException {
        return Files.list(Path.of("src/test/fuzz", ConfigurationFuzzTest.class.getName()))
                .sorted();
    }

    @ParameterizedTest
    @MethodSource("corpus")
    void shouldReadAConfigurationOrRefuseIt(Path input) throws IOException {
        fuzzerTestOneInput(Files.readAllBytes(input));
    }
}
