package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.Main;
import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;

class RegistryCommandTest {
    private static String refused(String... arguments) {
        StringWriter err = new StringWriter();
        assertThat(Main.commandLine().setErr(new PrintWriter(err)).execute(arguments))
                .as(err.toString())
                .isEqualTo(2);
        return err.toString();
    }

    @Test
    void shouldRefuseToServeNothingOrAnotherRegistry() {
        assertThat(refused("registry")).contains("no cluster given; give --bootstrap-servers HOST:PORT");
        assertThat(refused(
                        "registry",
                        "--bootstrap-servers",
                        "kafka:9092",
                        "--set",
                        "run.schema_registry_url=http://registry:8081"))
                .contains("run.schema_registry_url names another registry", "topic _schemas");
        assertThat(refused("registry", "--bootstrap-servers", "kafka:9092", "--port", "65536"))
                .contains("--port must be from 0 to 65535: 65536");
    }
}
