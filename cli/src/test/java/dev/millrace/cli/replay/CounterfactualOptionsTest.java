package dev.millrace.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.runtime.config.ConfigException;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;

class CounterfactualOptionsTest {
    private static CounterfactualOptions options(String... arguments) {
        CounterfactualOptions options = CommandLine.populateCommand(new CounterfactualOptions(), arguments);
        options.check();
        return options;
    }

    @Test
    void shouldTakeTheRecordedRolloutsUnlessItIsToldOtherwise() {
        assertThat(options("--retrain").live).isFalse();
        assertThat(options("--retrain", "--live", "--seeds", "3").seeds).isEqualTo(3);
    }

    @Test
    void shouldRefuseWhatSaysNothing() {
        assertThatThrownBy(() -> options("--live", "--gradients"))
                .isInstanceOf(ConfigException.class)
                .hasMessage("--live needs --retrain; give that too");
        assertThatThrownBy(() -> options("--retrain", "--seeds", "2"))
                .isInstanceOf(ConfigException.class)
                .hasMessage("--seeds=2 sets sampling seeds, and without --live nothing is sampled: give that too, or"
                        + " leave out --seeds");
        assertThatThrownBy(() -> options("--retrain", "--live", "--seeds", "0"))
                .isInstanceOf(ConfigException.class)
                .hasMessage("--seeds must be at least 1: 0");
        assertThatThrownBy(() -> options("--retrain", "--at-version", "4"))
                .hasMessageContaining("--at-version chooses steps for --gradients");
    }
}
