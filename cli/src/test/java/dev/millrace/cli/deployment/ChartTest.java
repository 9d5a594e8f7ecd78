package dev.millrace.cli.deployment;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;
import static org.assertj.core.api.Assumptions.assumeThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.gson.JsonElement;
import com.google.gson.JsonParser;
import com.marcnuri.helm.Helm;
import dev.millrace.cli.Main;
import dev.millrace.gateway.GatewayConfig;
import dev.millrace.runtime.config.ConfigLayers;
import dev.millrace.schemas.run.RunTopics;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1Deployment;
import io.kubernetes.client.openapi.models.V1Job;
import io.kubernetes.client.openapi.models.V1PersistentVolumeClaim;
import io.kubernetes.client.openapi.models.V1PodDisruptionBudget;
import io.kubernetes.client.openapi.models.V1Service;
import io.kubernetes.client.openapi.models.V1StatefulSet;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;

/** What Helm makes of the chart: fields that Kubernetes knows, and commands that this build understands. */
class ChartTest {
    private static final Path CHART = Path.of("..", "infra", "helm", "millrace").toAbsolutePath();
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TRAIN = "roles: {learn: {enabled: false}, train: {enabled: true}}";
    private static final String EVERYTHING = """
            secrets: {kafka: k, environment: e}
            monitoring: {enabled: true, labels: {release: p}}
            triggerAuthentication: t
            epoch: 2
            roles:
              learn: {volume: 1Gi, arguments: [--device, "cuda:0"], image: "gpu:1", resources: {limits: {nvidia.com/gpu: 1}}}
              admit: {volumes: [{name: data, persistentVolumeClaim: {claimName: d}}], volumeMounts: [{name: data, mountPath: /data}]}
              gateway: {enabled: true, replicas: 2}
              evaluate: {enabled: true}
              generate: {scale: {min: 1, max: 3, lag: 7}}
              score: {scale: {min: 1, max: 4, lag: 100}, nodeSelector: {zone: a}, tolerations: [{key: gpu, operator: Exists}]}
            """;

    private interface Model {
        void check(JsonElement resource) throws IOException;
    }

    private static final Map<String, Model> MODELS = Map.of(
            "ConfigMap", V1ConfigMap::validateJsonElement,
            "Deployment", V1Deployment::validateJsonElement,
            "Job", V1Job::validateJsonElement,
            "PersistentVolumeClaim", V1PersistentVolumeClaim::validateJsonElement,
            "PodDisruptionBudget", V1PodDisruptionBudget::validateJsonElement,
            "Service", V1Service::validateJsonElement,
            "StatefulSet", V1StatefulSet::validateJsonElement);

    @BeforeAll
    static void needsHelmsLibrary() {
        assumeThat(System.getProperty("os.name") + " " + System.getProperty("os.arch"))
                .as("what helm-java has a library for")
                .matches("Linux (amd64|aarch64)|Mac OS X .*");
    }

    @TempDir
    private Path folder;

    private List<JsonNode> rendered(String values) throws IOException {
        Path file = Files.writeString(folder.resolve("values.yaml"), values);
        LoaderOptions strict = new LoaderOptions();
        strict.setAllowDuplicateKeys(false);
        List<JsonNode> resources = new ArrayList<>();
        new Yaml(new SafeConstructor(strict))
                .loadAll(new Helm(CHART)
                        .template()
                        .withName("a")
                        .withValuesFile(file)
                        .call())
                .forEach(document -> resources.add(JSON.valueToTree(document)));
        return resources;
    }

    private static Stream<JsonNode> ofKind(List<JsonNode> resources, String kind) {
        return resources.stream()
                .filter(resource -> resource.path("kind").asText().equals(kind));
    }

    @Test
    void shouldPassHelmsLint() {
        assertThat(new Helm(CHART).lint().strict().call())
                .satisfies(result -> assertThat(result.isFailed())
                        .as("%s", result.getMessages())
                        .isFalse());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", TRAIN, EVERYTHING})
    void shouldHaveOnlyFieldsThatKubernetesKnows(String values) throws IOException {
        List<JsonNode> resources = rendered(values);
        assertThat(resources).hasSizeGreaterThan(2);
        for (JsonNode resource : resources) {
            String kind = resource.path("kind").asText();
            if (resource.path("apiVersion").asText().matches(".*(keda\\.sh|coreos\\.com)/.*")) {
                assertThat(kind).isIn("ScaledObject", "PodMonitor", "PrometheusRule");
            } else {
                assertThat(MODELS).containsKey(kind);
                MODELS.get(kind).check(JsonParser.parseString(resource.toString()));
            }
        }
        for (JsonNode pod : pods(resources)) {
            JsonNode container = pod.at("/containers/0");
            container.path("args").forEach(word -> assertThat(word.isTextual()).isTrue());
            container
                    .path("env")
                    .forEach(variable -> assertThat(variable.has("valueFrom")
                                    || variable.path("value").isTextual())
                            .as("%s", variable)
                            .isTrue());
            assertThat(names(container.path("volumeMounts")))
                    .containsExactlyInAnyOrderElementsOf(names(pod.path("volumes")));
        }
    }

    private static List<String> names(JsonNode entries) {
        List<String> names = new ArrayList<>();
        entries.forEach(entry -> names.add(entry.path("name").asText()));
        return names;
    }

    private static List<JsonNode> pods(List<JsonNode> resources) {
        return resources.stream()
                .map(resource -> resource.at("/spec/template/spec"))
                .filter(pod -> pod.has("containers"))
                .toList();
    }

    /** Each role once, one-shot ones as a Job; probes reach a port that the role opens, with its token. */
    @ParameterizedTest
    @ValueSource(strings = {"", TRAIN, EVERYTHING})
    void shouldStartCommandsAndConfigurationsThatAreUnderstood(String values) throws IOException {
        List<JsonNode> resources = rendered(values);
        Map<String, String> kinds = new TreeMap<>();
        for (JsonNode resource : resources) {
            for (JsonNode container : resource.at("/spec/template/spec/containers")) {
                List<String> words = new ArrayList<>();
                container
                        .path("args")
                        .forEach(word ->
                                words.add(word.asText().replace("$(POD)", "a-1").replace("$(NAMESPACE)", "rl")));
                kinds.put(words.get(0), resource.path("kind").asText());
                Main.commandLine().parseArgs(words.toArray(String[]::new));
                ConfigLayers layers = new ConfigLayers();
                words.stream()
                        .filter(word -> word.startsWith("--set="))
                        .forEach(word -> layers.set(word.substring("--set=".length())));
                var http = layers.resolve().http();
                assertThat(http.host()).isEqualTo("0.0.0.0");
                assertThat(names(container.path("env"))).contains(http.tokenVariable());
                assertThat(layers.resolve().metrics().port())
                        .isEqualTo(container.at("/ports/0/containerPort").asInt());
                for (String probe : List.of("startupProbe/livez", "livenessProbe/livez", "readinessProbe/readyz")) {
                    String[] parts = probe.split("/");
                    assertThat(container.path(parts[0]).path("httpGet"))
                            .as(probe)
                            .isEqualTo(JSON.createObjectNode()
                                    .put("path", "/" + parts[1])
                                    .put("port", "http"));
                }
            }
        }
        new ConfigLayers()
                .yaml(
                        ofKind(resources, "ConfigMap")
                                .findFirst()
                                .orElseThrow()
                                .at("/data/millrace.yaml")
                                .asText(),
                        "millrace.yaml")
                .resolve();

        Map<String, String> expected = new TreeMap<>();
        if (values.equals(TRAIN)) {
            expected.put("train", "Job");
        } else {
            expected.put("learn", "Job");
            List.of("admit", "generate", "score", "stream").forEach(role -> expected.put(role, "Deployment"));
        }
        if (values.equals(EVERYTHING)) {
            expected.putAll(Map.of("gateway", "StatefulSet", "evaluate", "Deployment"));
        }
        assertThat(kinds).isEqualTo(expected);
    }

    /** A session lives in one pod: agents reach that one by the name that its set and service give it, with a token. */
    @Test
    void shouldSendAgentsToThePodThatHasTheirSession() throws IOException {
        List<JsonNode> resources = rendered(EVERYTHING);
        JsonNode set = ofKind(resources, "StatefulSet").findFirst().orElseThrow();
        JsonNode service = ofKind(resources, "Service").findFirst().orElseThrow();
        JsonNode container = set.at("/spec/template/spec/containers/0");
        ConfigLayers layers = new ConfigLayers();
        container.path("args").forEach(word -> {
            if (word.asText().startsWith("--set=")) {
                layers.set(word.asText()
                        .substring("--set=".length())
                        .replace("$(POD)", "a-gateway-1")
                        .replace("$(NAMESPACE)", "rl"));
            }
        });
        GatewayConfig gateway = layers.resolve().gateway();

        assertThat(service.at("/spec/clusterIP").asText()).isEqualTo("None");
        assertThat(service.at("/spec/selector")).isEqualTo(set.at("/spec/selector/matchLabels"));
        assertThat(set.at("/spec/serviceName")).isEqualTo(service.at("/metadata/name"));
        assertThat(gateway.publicUrl()).isEqualTo("http://a-gateway-1.a-gateway.rl.svc:8090");
        assertThat(gateway.port())
                .isEqualTo(container.at("/ports/1/containerPort").asInt())
                .isEqualTo(service.at("/spec/ports/0/port").asInt());
        assertThat(names(container.path("env"))).contains(gateway.tokenVariable(), "POD", "NAMESPACE");
        assertThat(layers.resolve().generator().id()).isEqualTo("a-gateway-1");
    }

    @Test
    void shouldScaleByTheLagOfTheRunsOwnGroups() throws IOException {
        List<JsonNode> scaled = ofKind(rendered(EVERYTHING), "ScaledObject").toList();
        RunTopics topics = new RunTopics("millrace.my-run.");
        assertThat(scaled)
                .extracting(
                        each -> each.at("/spec/scaleTargetRef/name").asText(),
                        each -> each.at("/spec/triggers/0/metadata/consumerGroup")
                                .asText(),
                        each -> each.at("/spec/triggers/0/metadata/topic").asText(),
                        each -> each.at("/spec/triggers/0/metadata/lagThreshold"))
                .containsExactlyInAnyOrder(
                        tuple(
                                "a-generate",
                                topics.group("generator", 2),
                                topics.prompts(),
                                JSON.getNodeFactory().textNode("7")),
                        tuple(
                                "a-score",
                                topics.group("scorer", 2),
                                topics.rollouts(),
                                JSON.getNodeFactory().textNode("100")));
        assertThat(ofKind(rendered(EVERYTHING), "Deployment")
                        .filter(each -> each.at("/spec/replicas").isMissingNode())
                        .map(each -> each.at("/metadata/name").asText()))
                .as("an upgrade must not undo what KEDA set")
                .containsExactlyInAnyOrder("a-generate", "a-score");
    }

    @Test
    void shouldBringTheAlertRulesAndTheJobThatTheyAskFor() throws IOException {
        List<JsonNode> resources = rendered(EVERYTHING);
        JsonNode rules = ofKind(resources, "PrometheusRule").findFirst().orElseThrow();
        Object written = new Yaml().load(Files.readString(CHART.resolve("../../prometheus/alerts.yaml")));
        JsonNode monitor = ofKind(resources, "PodMonitor").findFirst().orElseThrow();

        assertThat(rules.path("spec")).isEqualTo(JSON.valueToTree(written));
        assertThat(rules.toString()).contains("up{job=\\\"millrace\\\"}");
        String job = monitor.at("/spec/jobLabel").asText();
        assertThat(ofKind(resources, "Deployment"))
                .allSatisfy(each -> assertThat(
                                each.at("/spec/template/metadata/labels").path(job))
                        .isEqualTo(JSON.getNodeFactory().textNode("millrace")));
        assertThat(monitor.at("/spec/podMetricsEndpoints/0/port").asText()).isEqualTo("http");
    }

    @Test
    void shouldRefuseToScaleWhatHasNoGroupToScaleBy() {
        assertThatThrownBy(() -> rendered("roles: {gateway: {enabled: true, scale: {min: 1, max: 2, lag: 5}}}"))
                .hasMessageContaining("cannot scale roles.gateway: expected scale with generate, score or stream");
    }

    @Test
    void shouldRefuseARunInOneProcessBesideALearner() {
        assertThatThrownBy(() -> rendered("roles: {train: {enabled: true}}"))
                .hasMessageContaining(
                        "cannot deploy the run: roles.train.enabled and roles.learn.enabled are both true");
    }
}
