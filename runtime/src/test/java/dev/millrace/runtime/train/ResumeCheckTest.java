package dev.millrace.runtime.train;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ResumeCheckTest {
    private static final Path FILE = Path.of("runs/a/config.yaml");

    private static ObjectNode tree(String... settings) {
        ObjectNode tree = ConfigTree.empty();
        ConfigTree.set(tree, "run.id=a");
        for (String setting : settings) {
            ConfigTree.set(tree, setting);
        }
        return tree;
    }

    private static void require(ObjectNode begun, ObjectNode now) {
        ResumeCheck.of(FILE, begun).require(ConfigBinder.bind(MillraceConfig.defaults(), now));
    }

    @ParameterizedTest
    @CsvSource({
        "run.id=b, run.id is a in runs/a/config.yaml and b is requested",
        "run.seed=2, run.seed is 1 in runs/a/config.yaml and 2 is requested",
        "run.topic_prefix=x., run.topic_prefix is empty in runs/a/config.yaml and x. is requested",
        "model.hidden_size=32, model.hidden_size is 64 in runs/a/config.yaml and 32 is requested",
        "'run.bootstrap_servers=\"k:9092\"', run.bootstrap_servers is empty in runs/a/config.yaml and k:9092 is requested"
    })
    void shouldRefuseWhatCannotChange(String setting, String sentence) {
        assertThatThrownBy(() -> require(tree(), tree(setting)))
                .isInstanceOf(ConfigException.class)
                .hasMessageStartingWith(sentence)
                .hasMessageEndingWith("leave it unchanged, or give --run-dir a new folder");
    }

    @Test
    void shouldLetEverythingElseChange() {
        assertThatCode(() -> require(
                        tree(),
                        tree("learner.max_steps=3", "goal.mean_reward=0.5", "admission.eta=2", "broker.port=9092")))
                .doesNotThrowAnyException();
        assertThatCode(() -> require(tree("run.bootstrap_servers=\"a:1\""), tree("run.bootstrap_servers=\"b:1\"")))
                .as("another address may be the same cluster")
                .doesNotThrowAnyException();
    }

    @Test
    void shouldNameTheFileThatIsNoConfiguration() {
        assertThatThrownBy(() -> ResumeCheck.of(FILE, tree("lerner.max_steps=1")))
                .isInstanceOf(ConfigException.class)
                .hasMessage("runs/a/config.yaml: unknown key lerner; did you mean learner?");
    }
}
