package dev.millrace.runtime.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.generator.environment.remote.RemoteEnvironment;
import dev.millrace.generator.environment.remote.RemoteReward;
import dev.millrace.generator.environment.text.TextTask;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class KeyScopeTest {
    /** Those of the defaults, and of the kinds that the defaults have not chosen. */
    private static List<String> keys() {
        return ConfigBinder.keys(MillraceConfig.defaults());
    }

    @Test
    void shouldClassifyEveryKey() {
        assertThat(keys())
                .hasSizeGreaterThan(100)
                .allSatisfy(key -> assertThat(KeyScope.of(key)).as(key).isNotNull());
    }

    @Test
    void shouldClassifyNoKeyThatIsNone() {
        List<String> environment = ConfigBinder.keys(RemoteEnvironment.defaults());
        List<String> keys = Stream.of(
                        keys().stream(),
                        ConfigBinder.keys(TextTask.defaults()).stream().map(key -> "task." + key),
                        ConfigBinder.keys(RemoteReward.defaults()).stream().map(key -> "reward." + key),
                        environment.stream().map(key -> "task.environment." + key),
                        environment.stream().map(key -> "environments." + key))
                .flatMap(some -> some)
                .toList();
        assertThat(KeyScope.all().keySet())
                .allSatisfy(group -> assertThat(keys)
                        .as("a key of %s", group)
                        .anyMatch(key -> key.equals(group) || key.startsWith(group + ".")));
    }

    @Test
    void shouldKeepWhatSpeaksForAProcessOffTheLog() {
        assertThat(keys().stream().filter(key -> KeyScope.of(key) == KeyScope.PROCESS))
                .containsExactlyInAnyOrder(
                        "kafka",
                        "run.epoch",
                        "run.bootstrap_servers",
                        "run.schema_registry_url",
                        "run.device",
                        "generator.id",
                        "engine.kind",
                        "engine.url",
                        "engine.key_variable",
                        "engine.model",
                        "engine.directory",
                        "engine.seen_as",
                        "engine.dtype",
                        "engine.log_probs",
                        "engine.probe_tokens",
                        "engine.tolerance",
                        "engine.kept_versions",
                        "engine.start_ms",
                        "engine.update_ms",
                        "engine.answer_ms",
                        "gateway.host",
                        "gateway.port",
                        "gateway.public_url",
                        "gateway.token_variable",
                        "scorer.id",
                        "topology.runtime.threads",
                        "topology.runtime.instance_id",
                        "topics.schemas_topic",
                        "observers",
                        "broker.port",
                        "broker.max_record_bytes",
                        "broker.min_free_bytes",
                        "broker.start_timeout_ms",
                        "broker.stop_timeout_ms",
                        "broker.durability",
                        "metrics.port",
                        "metrics.tensorboard.directory",
                        "metrics.otlp.url",
                        "metrics.otlp.headers",
                        "metrics.otlp.period_ms",
                        "http.host",
                        "http.token_variable",
                        "http.tls.certificate",
                        "http.tls.key",
                        "http.tls.key_store",
                        "http.tls.password");
    }

    /** Writers to the log cannot make readers start a command or call an address. */
    @Test
    void shouldKeepWhomToAskOffTheLogAlsoInLists() {
        MillraceConfig config = ConfigBinder.bind(
                MillraceConfig.defaults(),
                ConfigTree.parse(
                        "{reward: {kind: remote, command: rm, timeout_ms: 5}, environments: [guess, {kind: remote, name: a,"
                                + " url: 'http://a/'}]}",
                        "a test"));
        String recorded = RecordedConfiguration.of(config).text();
        assertThat(recorded).doesNotContain("rm\n", "http://a/").contains("timeout_ms: 5", "name: a");
        MillraceConfig read = ConfigBinder.bind(
                MillraceConfig.defaults(),
                RecordedConfiguration.parse(
                                "{reward: {kind: remote, command: rm}, environments: [{kind: remote, url: 'http://a/'}]}",
                                "a test")
                        .tree());
        assertThat(read.reward()).isEqualTo(RemoteReward.defaults());
        assertThat(read.environments()).containsExactly(RemoteEnvironment.defaults());
        assertThatThrownBy(read::requirePartners).hasMessageStartingWith("reward is remote and has no address");
    }

    @Test
    void shouldTakeTheLongestGroupThatFits() {
        assertThat(Stream.of("algorithm.objective.clip_ratio_low", "learner.max_steps", "kafka.ssl.key.password")
                        .map(KeyScope::of))
                .containsExactly(KeyScope.RUN, KeyScope.DEFAULT, KeyScope.PROCESS);
        assertThatThrownBy(() -> KeyScope.of("learner.news")).hasMessage("no role is listed for the key learner.news");
    }
}
