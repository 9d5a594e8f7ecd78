package dev.millrace.runtime.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ConfigBinderTest {
    public enum Order {
        COMPLETION,
        SUBMISSION
    }

    public record Limits(int maxStaleness, double cap, Order order) {
        public Limits {
            if (maxStaleness < 0) {
                throw new IllegalArgumentException("max_staleness must be at least 0: " + maxStaleness);
            }
        }
    }

    public sealed interface Decay {
        record Constant() implements Decay {}

        record HalfCosine(int steps, double floor) implements Decay {
            public static HalfCosine defaults() {
                return new HalfCosine(500, 0);
            }
        }
    }

    public record Schedule(Decay decay) {}

    private static Schedule schedule(String... settings) {
        ObjectNode tree = ConfigTree.empty();
        for (String setting : settings) {
            ConfigTree.set(tree, setting);
        }
        return ConfigBinder.bind(new Schedule(new Decay.Constant()), tree);
    }

    public record Root(
            String name, long seed, boolean enabled, Limits limits, List<String> stages, Map<String, String> kafka) {}

    private static final Root DEFAULTS =
            new Root("inc", 7, true, new Limits(8, 2.0, Order.COMPLETION), List.of("token_tis"), Map.of());

    private static Root bind(String... settings) {
        ObjectNode tree = ConfigTree.empty();
        for (String setting : settings) {
            ConfigTree.set(tree, setting);
        }
        return ConfigBinder.bind(DEFAULTS, tree);
    }

    @Test
    void shouldKeepDefaultsWhereNothingIsSaid() {
        assertThat(bind()).isEqualTo(DEFAULTS);
    }

    @Test
    void shouldTakeEveryTypeFromSettings() {
        Root root = bind(
                "name=sort",
                "seed=12345678901",
                "enabled=false",
                "limits.cap=1e-3",
                "limits.order=submission",
                "stages=[a, b]",
                "kafka.max.poll.records=5",
                "kafka.acks=all");
        assertThat(root)
                .isEqualTo(new Root(
                        "sort",
                        12345678901L,
                        false,
                        new Limits(8, 1e-3, Order.SUBMISSION),
                        List.of("a", "b"),
                        Map.of("max.poll.records", "5", "acks", "all")));
    }

    @Test
    void shouldNameTheNearestKnownKey() {
        assertThatThrownBy(() -> bind("limits.max_stalenes=3"))
                .isInstanceOf(ConfigException.class)
                .hasMessage("unknown key limits.max_stalenes; did you mean limits.max_staleness?");
    }

    @Test
    void shouldListKnownKeysWhenNoneIsNear() {
        assertThatThrownBy(() -> bind("zzzzzzzzz=3")).hasMessageContaining("known here: name, seed, enabled");
    }

    @Test
    void shouldPutThePathBeforeTheRecordsOwnRefusal() {
        assertThatThrownBy(() -> bind("limits.max_staleness=-3"))
                .hasMessage("limits.max_staleness must be at least 0: -3");
    }

    @Test
    void shouldRefuseWrongTypesWithKeyAndValue() {
        assertThatThrownBy(() -> bind("limits.max_staleness=2.5"))
                .hasMessage("limits.max_staleness must be a whole number: 2.5");
        assertThatThrownBy(() -> bind("limits.cap=high")).hasMessage("limits.cap must be a number: 'high'");
        assertThatThrownBy(() -> bind("enabled=perhaps")).hasMessage("enabled must be true or false: 'perhaps'");
        assertThatThrownBy(() -> bind("limits.order=complete"))
                .hasMessage("limits.order must be one of completion, submission: 'complete'; did you mean completion?");
        assertThatThrownBy(() -> bind("limits=3")).hasMessage("limits must hold keys and values, not 3");
    }

    @Test
    void shouldTakeTrueAndFalseAloneForTruthValues() {
        assertThat(bind("enabled=false").enabled()).isFalse();
        assertThat(bind("enabled=true").enabled()).isTrue();
        assertThat(bind("enabled=False").enabled()).isFalse();
        assertThatThrownBy(() -> bind("enabled=off")).hasMessage("enabled must be true or false: 'off'");
        assertThatThrownBy(() -> bind("enabled=yes")).hasMessage("enabled must be true or false: 'yes'");
        assertThatThrownBy(() -> bind("limits.order=false"))
                .hasMessageStartingWith("limits.order must be one of completion, submission: false");
    }

    @Test
    void shouldTakeWordsThatYamlOnceTookForTruthValuesAsWords() {
        for (String word : List.of("off", "on", "yes", "no", "y", "n", "Off", "NO")) {
            assertThat(bind("name=" + word).name()).isEqualTo(word);
            assertThat(bind("stages=[" + word + "]").stages()).containsExactly(word);
            assertThat(ConfigBinder.bind(DEFAULTS, ConfigTree.parse("name: " + word, "a file"))
                            .name())
                    .isEqualTo(word);
            assertThat(ConfigBinder.bind(
                                    DEFAULTS,
                                    ConfigTree.parse(
                                            ConfigTree.write(ConfigBinder.unbind(bind("name=" + word))), "its own"))
                            .name())
                    .isEqualTo(word);
        }
    }

    @Test
    void shouldComeBackFromItsOwnYaml(@TempDir Path folder) throws Exception {
        Root root = bind("limits.cap=5", "name=7", "kafka.acks=all");
        Path file = folder.resolve("config.yaml");
        Files.writeString(file, ConfigTree.write(ConfigBinder.unbind(root)));
        assertThat(ConfigBinder.bind(DEFAULTS, ConfigTree.read(file))).isEqualTo(root);
    }

    @Test
    void shouldSayWhereAFileIsWrong(@TempDir Path folder) throws Exception {
        Path file = folder.resolve("config.yaml");
        assertThatThrownBy(() -> ConfigTree.read(file)).hasMessageContaining("there is no configuration file");
        Files.writeString(file, "a: [1, 2\nb: 3\n");
        assertThatThrownBy(() -> ConfigTree.read(file))
                .hasMessageContaining("is not valid YAML")
                .hasMessageContaining("line");
        Files.writeString(file, "name: a\nname: b\n");
        assertThatThrownBy(() -> ConfigTree.read(file)).hasMessageContaining("name");
        Files.writeString(file, "- a\n");
        assertThatThrownBy(() -> ConfigTree.read(file)).hasMessageContaining("keys and values");
    }

    @Test
    void shouldListEveryKeyWithItsPath() {
        assertThat(ConfigBinder.keys(DEFAULTS))
                .containsExactly(
                        "name",
                        "seed",
                        "enabled",
                        "limits.max_staleness",
                        "limits.cap",
                        "limits.order",
                        "stages",
                        "kafka");
    }

    @Test
    void shouldTakeOneOfSeveralKindsWithItsOwnSettings() {
        assertThat(schedule()).isEqualTo(new Schedule(new Decay.Constant()));
        assertThat(schedule("decay=half_cosine")).isEqualTo(new Schedule(new Decay.HalfCosine(500, 0)));
        assertThat(schedule("decay.kind=half_cosine", "decay.steps=20"))
                .isEqualTo(new Schedule(new Decay.HalfCosine(20, 0)));
        Schedule cosine = schedule("decay.kind=half_cosine", "decay.floor=0.1");
        assertThat(ConfigBinder.bind(new Schedule(new Decay.Constant()), ConfigBinder.unbind(cosine)))
                .isEqualTo(cosine);
        assertThat(ConfigBinder.keys(cosine)).containsExactly("decay.kind", "decay.steps", "decay.floor");
    }

    @Test
    void shouldRefuseSettingsOfAnotherKindByName() {
        assertThatThrownBy(() -> schedule("decay.steps=20"))
                .hasMessage("unknown key decay.steps for decay.kind=constant; it belongs to half_cosine");
        assertThatThrownBy(() -> schedule("decay.kind=cosine"))
                .hasMessage("decay.kind must be one of constant, half_cosine: 'cosine'");
        assertThatThrownBy(() -> schedule("decay=half_cosin"))
                .hasMessage("decay must be one of constant, half_cosine: 'half_cosin'; did you mean half_cosine?");
    }
}
