package dev.millrace.runtime.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.junit.jupiter.api.Test;

class LearnerMemoryTest {
    /** Prompts of a few tokens, responses of up to a thousand, through layers that hold some MB of each token. */
    private static final String[] LONG = {
        "model.hidden_size=256",
        "model.layers=8",
        "model.head_size=64",
        "model.intermediate_size=1024",
        "model.max_positions=1024",
        "generator.capacity_tokens=1024",
        "admission.sampling.max_tokens=1000"
    };

    private static MillraceConfig bind(String... settings) {
        ObjectNode tree = ConfigTree.empty();
        for (String setting : LONG) {
            ConfigTree.set(tree, setting);
        }
        for (String setting : settings) {
            ConfigTree.set(tree, setting);
        }
        return ConfigBinder.bind(MillraceConfig.defaults(), tree);
    }

    @Test
    void shouldSayHowMuchGoesAtOnceAndWhatThatTakes() {
        assertThat(LearnerMemory.require(bind()).orElseThrow())
                .matches(
                        "a gradient takes at most \\d+ sequences of 1,0\\d\\d tokens at once in each of 2 shards, [\\d,]+ MB"
                                + " together by the estimate, of 2,048 MB \\(learner.step.memory_mb\\)");
        assertThat(LearnerMemory.require(bind("learner.step.recompute=true", "learner.step.memory_mb=1000"))
                        .orElseThrow())
                .endsWith(
                        "of 1,000 MB (learner.step.memory_mb), its layers computed again on the way back (learner.step.recompute)");
        assertThat(LearnerMemory.require(MillraceConfig.defaults())).isEmpty();
    }

    @Test
    void shouldRefuseARunWhoseLongestSequenceDoesNotFitWithTheWaysOut() {
        assertThatCode(() -> LearnerMemory.require(bind())).doesNotThrowAnyException();
        assertThatThrownBy(() -> LearnerMemory.require(bind("learner.step.memory_mb=100")))
                .isInstanceOf(ConfigException.class)
                .hasMessageMatching(
                        "one sequence of 1,0\\d\\d tokens, the longest that this run can have, takes \\d+ MB on the"
                                + " gradient's way forward and back; each of learner.step.shards=2 may take 50 of the 100 MB of"
                                + " learner.step.memory_mb; set memory_mb to \\d+ at least, or learner.step.recompute=true, which takes"
                                + " \\d+ MB a shard, or make sequences shorter \\(admission.sampling.max_tokens\\)");
        assertThatThrownBy(
                        () -> LearnerMemory.require(bind("learner.step.memory_mb=100", "learner.step.recompute=true")))
                .hasMessageNotContaining("learner.step.recompute=true");
    }
}
