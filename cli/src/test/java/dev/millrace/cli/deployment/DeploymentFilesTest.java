package dev.millrace.cli.deployment;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.cli.Main;
import dev.millrace.log.run.TopicsConfig;
import io.micrometer.core.instrument.Tags;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;

/** What can be checked of files for programs that are not here: syntax, and that they speak of the same things. */
class DeploymentFilesTest {
    private static final Path INFRA = Path.of("..", "infra");

    static Stream<Path> yamlFiles() throws IOException {
        List<Path> found = new ArrayList<>();
        for (String folder : List.of("docker", "prometheus", "grafana")) {
            try (Stream<Path> files = Files.walk(INFRA.resolve(folder))) {
                files.filter(file -> file.toString().matches(".*\\.ya?ml")).forEach(found::add);
            }
        }
        return found.stream();
    }

    @Test
    void shouldHaveFilesToCheck() throws IOException {
        assertThat(yamlFiles()).hasSizeGreaterThanOrEqualTo(5);
    }

    @ParameterizedTest
    @MethodSource("yamlFiles")
    void shouldBeYamlWithoutRepeatedKeys(Path file) throws IOException {
        assertThat(documents(file)).isNotEmpty().doesNotContainNull();
    }

    @Test
    void shouldNameMetersAsMicrometerDoes() throws IOException {
        PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        List<ListedMeter> meters = ListedMeter.all();
        for (ListedMeter meter : meters) {
            String dotted = meter.name().replaceAll("_total$", "").replace('_', '.');
            Tags tags = meter.labels().isEmpty() ? Tags.empty() : Tags.of(meter.labels(), "x");
            if (meter.type().equals("counter")) {
                registry.counter(dotted, tags);
            } else {
                registry.gauge(dotted, tags, 1);
            }
        }

        String scraped = registry.scrape();

        for (ListedMeter meter : meters) {
            assertThat(scraped).contains("# TYPE " + meter.name() + " " + meter.type());
        }
    }

    @ParameterizedTest
    @MethodSource("dashboards")
    void shouldGiveEveryPanelAnExpressionAndAPlaceOfItsOwn(Path file) throws IOException {
        JsonNode dashboard = new ObjectMapper().readTree(file.toFile());
        Set<String> places = new TreeSet<>();
        for (JsonNode panel : dashboard.path("panels")) {
            places.add(panel.path("gridPos").toString());
            assertThat(panel.path("targets"))
                    .as("%s", panel.path("title"))
                    .isNotEmpty()
                    .allSatisfy(target -> assertThat(
                                    QueriedMeters.in(target.path("expr").asText()))
                            .isNotEmpty());
        }

        assertThat(places).hasSize(dashboard.path("panels").size()).hasSizeGreaterThan(5);
        assertThat(Files.readString(INFRA.resolve("docker/compose.yaml")))
                .as("it is provisioned")
                .contains("../grafana/" + file.getFileName() + ":/var/lib/grafana/dashboards/" + file.getFileName());
    }

    static List<Path> dashboards() throws IOException {
        return QueriedMeters.dashboards();
    }

    @Test
    void shouldHaveDashboardsForLearningCorrectionsFlowAndKafka() throws IOException {
        assertThat(dashboards())
                .extracting(file -> file.getFileName().toString())
                .containsExactly("corrections.json", "flow.json", "kafka.json", "learning.json");
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

    @Test
    void shouldStartByComposeACommandThatIsUnderstood() throws IOException {
        JsonNode service = new ObjectMapper()
                .valueToTree(documents(INFRA.resolve("docker/compose.yaml")).get(0))
                .at("/services/millrace");
        List<String> words = new ArrayList<>();
        service.path("command").forEach(word -> words.add(word.asText()));
        Main.commandLine().parseArgs(words.toArray(String[]::new));

        assertThat(words).containsSequence("--metrics-port", "9464");
        assertThat(service.at("/healthcheck/test").toString()).contains("/127.0.0.1/9464 ", "GET /readyz ");
    }

    private static List<Object> documents(Path file) throws IOException {
        LoaderOptions strict = new LoaderOptions();
        strict.setAllowDuplicateKeys(false);
        List<Object> documents = new ArrayList<>();
        new Yaml(new SafeConstructor(strict)).loadAll(Files.readString(file)).forEach(documents::add);
        return documents;
    }
}
