package dev.millrace.cli.config;

import static org.assertj.core.api.Assertions.assertThat;

import dev.millrace.cli.Main;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class ClientFileTest {
    @TempDir
    private Path folder;

    private static List<CommandLine> all(CommandLine command) {
        List<CommandLine> all = new ArrayList<>(List.of(command));
        command.getSubcommands().values().forEach(each -> all.addAll(all(each)));
        return all;
    }

    private String refusal(String properties) throws Exception {
        Path file = Files.writeString(folder.resolve("client.properties"), properties);
        StringWriter err = new StringWriter();
        int status = Main.commandLine()
                .setErr(new PrintWriter(err))
                .execute("ledger", "--run", "r", "--command-config", file.toString());
        assertThat(status).as(err.toString()).isEqualTo(2);
        return err.toString();
    }

    @Test
    void shouldBeTakenByEveryCommandThatTakesACluster() {
        List<CommandLine> onCluster = all(Main.commandLine()).stream()
                .filter(command -> command.getCommandSpec().optionsMap().containsKey("--bootstrap-servers"))
                .toList();
        assertThat(onCluster)
                .hasSizeGreaterThan(20)
                .allMatch(command -> command.getCommandSpec().optionsMap().containsKey("--command-config"));
    }

    @Test
    void shouldFollowReferences() throws Exception {
        assertThat(refusal("bootstrap.servers=127.0.0.1:1\nssl.truststore.password=${env:MILLRACE_NO_SUCH}\n"))
                .contains("kafka.ssl.truststore.password refers to ${env:MILLRACE_NO_SUCH}, and there is no"
                        + " environment variable");
    }

    @Test
    void shouldNameFileAndKeyOfWhatIsNoSettingOrMustNotBeSet() throws Exception {
        assertThat(refusal("sasl.mechanisms=PLAIN\n"))
                .contains("client.properties: kafka.sasl.mechanisms is not a setting that Kafka's clients know")
                .contains("did you mean kafka.sasl.mechanism?");
        assertThat(refusal("isolation.level=read_uncommitted\n"))
                .contains(
                        "client.properties: kafka.isolation.level must not be set: exactly-once delivery depends on it");
    }

    @Test
    void shouldSayThatThereIsNoFile() {
        StringWriter err = new StringWriter();
        int status = Main.commandLine()
                .setErr(new PrintWriter(err))
                .execute("train", "--command-config", folder.resolve("none").toString());
        assertThat(status).isEqualTo(2);
        assertThat(err.toString())
                .contains("there is no file of client properties ")
                .contains("none");
    }
}
