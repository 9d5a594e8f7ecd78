package dev.millrace.runtime.report;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import org.junit.jupiter.api.Test;

class RunTaskTest {
    private static MillraceConfig with(String... settings) {
        ObjectNode tree = ConfigTree.empty();
        for (String setting : settings) {
            ConfigTree.set(tree, setting);
        }
        return ConfigBinder.bind(MillraceConfig.defaults(), tree);
    }

    private static String vocabulary(MillraceConfig config) {
        return config.task().task().tokenizer().hash();
    }

    @Test
    void shouldBeTriedWhereItRewardedTheRun() {
        assertThat(RunTask.refusal(with(), vocabulary(with()))).isEmpty();
        MillraceConfig reference = with("topology.join.reference=true", "scorer.reference.version=0");
        assertThat(RunTask.refusal(reference, vocabulary(reference)))
                .as("a reference rewards nothing")
                .isEmpty();
    }

    @Test
    void shouldNotBeTriedWhereOthersRewardedTheRun() {
        MillraceConfig rewarded = with("topology.join.reward=true");
        assertThat(RunTask.refusal(rewarded, vocabulary(rewarded)))
                .hasValue("the run's rollouts have reward records (topology.join.reward), which differ from the"
                        + " task environment's reward");
    }

    @Test
    void shouldNotBeTriedOnARunOfAnotherVocabulary() {
        assertThat(RunTask.refusal(with(), "of-another"))
                .hasValue("the task " + with().task().task().name()
                        + " has another vocabulary than the run (of-another)");
    }
}
