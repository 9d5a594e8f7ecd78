package dev.millrace.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class ForegroundTest {
    @Test
    void shouldCompareTheProcessGroupWithTheTerminals() {
        assertThat(Foreground.isForeground("71 (java) S 60 71 60 34816 71 4194304 1 0"))
                .isTrue();
        assertThat(Foreground.isForeground("71 (java) S 60 71 60 34816 60 4194304 1 0"))
                .isFalse();
        assertThat(Foreground.isForeground("71 (a name) of its own) S 60 71 60 34816 71 4194304 1 0"))
                .isTrue();
    }
}
