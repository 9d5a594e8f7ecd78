package dev.millrace.cli.deployment;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.log.topics.TopicsConfig;
import io.micrometer.core.instrument.Tags;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;

/** What can be checked of files for programs that are not here: syntax, and that they speak of the same things. */
class DeploymentFilesTest {
    private static final Path INFRA = Path.of("..", "infra");
    private static final Pattern METER = Pattern.compile("\\bmillrace_[a-z_]+");

    static Stream<Path> yamlFiles() throws IOException {
        List<Path> found = new ArrayList<>();
        for (String folder : List.of("docker", "kubernetes", "prometheus", "grafana")) {
            try (Stream<Path> files = Files.walk(INFRA.resolve(folder))) {
                files.filter(file -> file.toString().matches(".*\\.ya?ml")).forEach(found::add);
            }
        }
        return found.stream();
    }

    @Test
    void shouldHaveFilesToCheck() throws IOException {
        assertThat(yamlFiles()).hasSizeGreaterThanOrEqualTo(7);
    }

    @ParameterizedTest
    @MethodSource("yamlFiles")
    void shouldBeYamlWithoutRepeatedKeys(Path file) throws IOException {
        assertThat(documents(file)).isNotEmpty().doesNotContainNull();
    }

    @ParameterizedTest
    @ValueSource(strings = {"prometheus/alerts.yaml", "grafana/millrace.json"})
    void shouldOnlyNameMetersThatExist(String file) throws IOException {
        Set<String> named = new TreeSet<>();
        Matcher matcher = METER.matcher(Files.readString(INFRA.resolve(file)));
        while (matcher.find()) {
            named.add(matcher.group());
        }

        assertThat(named).hasSizeGreaterThan(4);
        assertThat(meters().keySet()).containsAll(named);
    }

    @Test
    void shouldNameMetersAsMicrometerDoes() throws IOException {
        PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        for (Map.Entry<String, String[]> meter : meters().entrySet()) {
            String dotted = meter.getKey().replaceAll("_total$", "").replace('_', '.');
            Tags tags = meter.getValue()[2].isEmpty() ? Tags.empty() : Tags.of(meter.getValue()[2], "x");
            if (meter.getValue()[1].equals("counter")) {
                registry.counter(dotted, tags);
            } else {
                registry.gauge(dotted, tags, 1);
            }
        }

        String scraped = registry.scrape();

        for (Map.Entry<String, String[]> meter : meters().entrySet()) {
            assertThat(scraped).contains("# TYPE " + meter.getKey() + " " + meter.getValue()[1]);
        }
    }

    @Test
    void shouldGiveEveryPanelAnExpressionAndAPlaceOfItsOwn() throws IOException {
        JsonNode dashboard = new ObjectMapper()
                .readTree(INFRA.resolve("grafana/millrace.json").toFile());
        Set<String> places = new TreeSet<>();
        for (JsonNode panel : dashboard.path("panels")) {
            places.add(panel.path("gridPos").toString());
            assertThat(panel.path("targets"))
                    .as("%s", panel.path("title"))
                    .isNotEmpty()
                    .allSatisfy(
                            target -> assertThat(target.path("expr").asText()).contains("millrace_"));
        }

        assertThat(places).hasSize(dashboard.path("panels").size()).hasSizeGreaterThan(5);
    }

    @Test
    void shouldAskForTopicsThatTheClusterOfTheComposeFileCanHold() throws IOException {
        Map<?, ?> compose =
                (Map<?, ?>) documents(INFRA.resolve("docker/compose.yaml")).get(0);
        Map<?, ?> services = (Map<?, ?>) compose.get("services");
        long brokers = services.keySet().stream()
                .filter(name -> name.toString().startsWith("kafka-"))
                .count();
        Map<?, ?> configuration =
                (Map<?, ?>) documents(INFRA.resolve("docker/millrace.yaml")).get(0);
        Map<?, ?> topics = (Map<?, ?>) configuration.get("topics");
        TopicsConfig d = TopicsConfig.defaults();

        TopicsConfig asked = new TopicsConfig(
                (int) topics.get("partitions"),
                (int) topics.get("replication_factor"),
                (int) topics.get("min_insync_replicas"),
                d.recordRetentionMs(),
                d.passingRetentionMs(),
                d.weightsRetentionBytes(),
                d.optimizerRetentionBytes(),
                d.maxRecordBytes(),
                d.schemasTopic(),
                d.timeoutMs());

        assertThat(brokers).isEqualTo(3).isGreaterThanOrEqualTo(asked.replicationFactor());
        Map<?, ?> environment = (Map<?, ?>) ((Map<?, ?>) services.get("kafka-1")).get("environment");
        assertThat((int) environment.get("KAFKA_MESSAGE_MAX_BYTES")).isGreaterThanOrEqualTo(asked.maxRecordBytes());
    }

    private static List<Object> documents(Path file) throws IOException {
        LoaderOptions strict = new LoaderOptions();
        strict.setAllowDuplicateKeys(false);
        List<Object> documents = new ArrayList<>();
        new Yaml(new SafeConstructor(strict)).loadAll(Files.readString(file)).forEach(documents::add);
        return documents;
    }

    /** Name to the columns of the list of meters. */
    private static Map<String, String[]> meters() throws IOException {
        Map<String, String[]> meters = new LinkedHashMap<>();
        Files.readAllLines(INFRA.resolve("prometheus/meters.csv")).stream()
                .skip(1)
                .map(line -> line.split(",", 4))
                .forEach(columns -> meters.put(columns[0], columns));
        return meters;
    }
}
