package dev.millrace.cli.deployment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.abort;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;

/** The alert rules over recorded scrapes, by Prometheus' own tool. */
class AlertRulesTest {
    private static final Path FOLDER =
            Path.of("../infra/prometheus").toAbsolutePath().normalize();

    @TempDir
    private Path scratch;

    private static Map<?, ?> yaml(String file) throws IOException {
        return new Yaml(new SafeConstructor(new LoaderOptions())).load(Files.readString(FOLDER.resolve(file)));
    }

    private static List<Map<?, ?>> maps(Object list) {
        List<Map<?, ?>> maps = new ArrayList<>();
        ((List<?>) list).forEach(element -> maps.add((Map<?, ?>) element));
        return maps;
    }

    @Test
    void shouldHaveAFixtureOnWhichEachAlertFiresAndOneOnWhichNoneDoes() throws IOException {
        Set<String> alerts = new TreeSet<>();
        for (Map<?, ?> group : maps(yaml("alerts.yaml").get("groups"))) {
            maps(group.get("rules")).forEach(rule -> alerts.add((String) rule.get("alert")));
        }
        Set<String> fire = new TreeSet<>();
        Set<String> keepSilent = new TreeSet<>();
        for (Map<?, ?> test : maps(yaml("alerts.test.yaml").get("tests"))) {
            for (Map<?, ?> expected : maps(test.get("alert_rule_test"))) {
                boolean isSilent = maps(expected.get("exp_alerts")).isEmpty();
                (isSilent ? keepSilent : fire).add((String) expected.get("alertname"));
            }
        }

        assertThat(alerts).hasSizeGreaterThan(10);
        assertThat(fire).isEqualTo(alerts);
        assertThat(keepSilent).isEqualTo(alerts);
    }

    @Test
    void shouldFireOnTheRecordedScrapesAndNotBefore() throws Exception {
        assertThat(promtool("test", "rules", "alerts.test.yaml")).contains("SUCCESS");
    }

    /** As rules, since that is what the tool reads. */
    @Test
    void shouldAskOnlyWhatPrometheusUnderstands() throws Exception {
        ObjectNode group = new ObjectMapper().createObjectNode().put("name", "panels");
        ArrayNode rules = group.putArray("rules");
        for (Path dashboard : QueriedMeters.dashboards()) {
            for (String expression : QueriedMeters.expressions(dashboard)) {
                rules.addObject()
                        .put("record", "panel:number" + rules.size())
                        .put("expr", expression.replace("$instance", ".*"));
            }
        }
        Path file = scratch.resolve("panels.yaml");
        ObjectNode all = new ObjectMapper().createObjectNode();
        all.putArray("groups").add(group);
        Files.writeString(file, all.toString());

        assertThat(promtool("check", "rules", file.toString())).contains("SUCCESS: " + rules.size() + " rules found");
        assertThat(promtool("check", "rules", "alerts.yaml")).contains("SUCCESS");
    }

    /** What the tool says; the test is skipped where it is not installed. */
    private String promtool(String... arguments) throws Exception {
        List<String> command = new ArrayList<>(List.of("promtool"));
        command.addAll(List.of(arguments));
        Path said = scratch.resolve("said");
        Process process;
        try {
            process = new ProcessBuilder(command)
                    .directory(FOLDER.toFile())
                    .redirectErrorStream(true)
                    .redirectOutput(said.toFile())
                    .start();
        } catch (IOException e) {
            return abort("promtool is not installed (Debian: apt-get install prometheus)");
        }
        assertThat(process.waitFor(120, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue()).as(Files.readString(said)).isZero();
        return Files.readString(said);
    }
}
