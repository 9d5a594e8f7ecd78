package dev.millrace.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

class TableTextTest {
    private record Row(String name, long steps, double reward, double seconds) {}

    private static final List<Column<Row>> COLUMNS = List.of(
            Column.text("run", Row::name),
            Column.count("steps", Row::steps),
            Column.percent("reward", 1, Row::reward),
            Column.<Row>number("time", 2, Row::seconds).in("s"));

    private static final List<Row> ROWS =
            List.of(new Row("first", 1234, 0.5, 2), new Row("the | other", 7, Double.NaN, 10.25));

    @Test
    void shouldAlignColumnsAndShowWhatIsAbsentAsAbsent() {
        assertThat(TableText.lines(Table.of("Runs", COLUMNS, ROWS)))
                .containsExactly(
                        "Runs",
                        "run          steps  reward  time, s",
                        "first        1,234  50.0 %     2.00",
                        "the | other      7       -    10.25");
    }

    @Test
    void shouldShowNoSignOfANumberThatRoundsToZero() {
        assertThat(new Format(Format.Kind.DECIMALS, 4).shown(-0.00001)).isEqualTo("0.0000");
        assertThat(new Format(Format.Kind.DECIMALS, 4).shown(-0.0001)).isEqualTo("-0.0001");
        assertThat(new Format(Format.Kind.DECIMALS, 0).shown(-0.4)).isEqualTo("0");
        assertThat(new Format(Format.Kind.PERCENT, 1).shown(-0.0001)).isEqualTo("0.0 %");
    }

    @Test
    void shouldBreakLongHeadingsAtWords() {
        Table table = Table.of("", List.of(Column.number("cosine to the update", 2, Row::reward)), ROWS.subList(0, 1));
        assertThat(TableText.lines(table)).containsExactly("cosine to", "      the", "   update", "     0.50");
    }

    @Test
    void shouldGoOnBelowItselfWhereTheScreenIsNarrow() {
        assertThat(TableText.lines(Table.of("", COLUMNS, ROWS), 30))
                .containsExactly(
                        "run          steps  reward",
                        "first        1,234  50.0 %",
                        "the | other      7       -",
                        "",
                        "run          time, s",
                        "first           2.00",
                        "the | other    10.25");
    }

    @Test
    void shouldBreakTheLongestTextAtWordsWhereThatMakesItFit() {
        List<Column<Row>> columns =
                List.of(Column.count("sample", Row::steps), Column.text("what became of it", Row::name));
        List<Row> rows =
                List.of(new Row("trained: batch 2, version 3 of the policy", 0, 0, 0), new Row("masked", 1, 0, 0));
        assertThat(TableText.lines(Table.of("", columns, rows), 36))
                .containsExactly(
                        "sample  what became of it",
                        "     0  trained: batch 2, version 3",
                        "        of the policy",
                        "     1  masked");
    }

    @Test
    void shouldListAColumnThatDoesNotFitBesideTheFirst() {
        assertThat(TableText.lines(Table.of("", COLUMNS, ROWS), 18))
                .containsExactly(
                        "run          steps",
                        "first        1,234",
                        "the | other      7",
                        "",
                        "reward",
                        "  first: 50.0 %",
                        "  the | other: -",
                        "",
                        "time, s",
                        "  first: 2.00",
                        "  the | other:",
                        "    10.25");
    }

    @Test
    void shouldBeMarkdownThatCanBeReadAsItIs() {
        assertThat(TableText.markdown(Table.of("", COLUMNS, ROWS))).isEqualTo("""
                        | run          | steps | reward | time, s |
                        | ------------ | ----: | -----: | ------: |
                        | first        | 1,234 | 50.0 % |    2.00 |
                        | the \\| other |     7 |      - |   10.25 |
                        """);
    }

    @Test
    void shouldRefuseARowThatDoesNotFitItsHead() {
        assertThatThrownBy(() ->
                        new Table("", COLUMNS.stream().map(Column::heading).toList(), List.of(List.of("first", 1L))))
                .hasMessageContaining("values=2, columns=4");
    }
}
