package dev.millrace.report;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class LinesTest {
    @Test
    void shouldBreakAtSpacesAndKeepNamesWhole() {
        String name = "x".repeat(90);
        assertThat(Lines.wrapped("  ", "a ".repeat(45) + name))
                .hasSize(3)
                .allMatch(line -> line.length() <= 80 || line.endsWith(name))
                .last()
                .asString()
                .isEqualTo("    " + name);
    }

    @Test
    void shouldPutTextBesideItsLabel() {
        assertThat(Lines.labelled("dropped", "stale 3 " + "word ".repeat(20)))
                .first()
                .asString()
                .startsWith("  dropped     stale 3 word");
        assertThat(Lines.labelled("dropped", "stale 3 " + "word ".repeat(20)).get(1))
                .startsWith("              word");
    }

    @Test
    void shouldBeAsWideAsTheTerminalElseAsTheVariableSaysElse80() {
        assertThat(Lines.width(60, "100")).isEqualTo(60);
        assertThat(Lines.width(0, "100")).isEqualTo(100);
        assertThat(Lines.width(0, null)).isEqualTo(80);
        assertThat(Lines.width(0, "many")).isEqualTo(80);
        assertThat(Lines.width(3, null))
                .as("of a terminal too narrow for words")
                .isEqualTo(20);
    }

    @Test
    void shouldGoOnUnderTheTextOnAnyWidth() {
        assertThat(Lines.wrapped("  ", "    ", "one of the sentences that are long", 24))
                .containsExactly("  one of the sentences", "    that are long");
    }

    @Test
    void shouldSayDurationsAsAPersonDoes() {
        assertThat(Lines.duration(340)).isEqualTo("340 ms");
        assertThat(Lines.duration(12_340)).isEqualTo("12.3 s");
        assertThat(Lines.duration(250_000)).isEqualTo("4 min 10 s");
        assertThat(Lines.duration(12_000_000)).isEqualTo("3 h 20 min");
        assertThat(Lines.duration(184_000_000)).isEqualTo("2 d 3 h");
        assertThat(Lines.duration(-5)).isEqualTo("-5 ms");
    }

    @Test
    void shouldGiveTimesInUtc() {
        assertThat(Lines.time(1_700_000_000_123L)).isEqualTo("2023-11-14 22:13:20.123");
    }
}
