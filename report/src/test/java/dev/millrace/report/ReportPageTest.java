package dev.millrace.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.IntStream;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReportPageTest {
    @TempDir
    private Path folder;

    private static Report report() {
        double[] steps = IntStream.range(0, 60).asDoubleStream().toArray();
        double[] reward = IntStream.range(0, 60)
                .mapToDouble(step -> step < 20 || step > 39 ? step / 60.0 : Double.NaN)
                .toArray();
        List<Column<String>> columns =
                List.of(Column.text("corrections", name -> name), Column.number("reward", 2, name -> Double.NaN));
        return Report.of("A </script><script>alert(1)</script> run", List.of("It ended well."))
                .madeBy(new ReportOrigin("millrace replay", "abc", "a machine", 2, "a JDK", null, "now", -1))
                .with(Section.of("Means")
                        .noting(List.of("over all steps"))
                        .with(Table.of("", columns, List.of("none"))))
                .with(Section.of("Curves")
                        .with(List.of(Chart.of(
                                "reward",
                                Axis.of("step"),
                                Axis.share("reward"),
                                List.of(Series.line("none", steps, reward), Series.reference("goal", steps, steps))))))
                .with(Section.of("Configuration").listing("a: 1").forDetails());
    }

    @Test
    void shouldNeedNoNetworkAndNotBeBrokenByItsData() {
        String page = ReportPage.of(report());
        assertThat(page)
                .contains("name=\"viewport\"")
                .contains("It ended well.")
                .doesNotContain("</script><script>alert")
                .doesNotContain("/*STYLE*/", "/*SCRIPT*/", "/*DATA*/");
        assertThat(page.replace("http://www.w3.org/2000/svg", ""))
                .doesNotContain("http://")
                .doesNotContain("https://")
                .doesNotContain("src=");
    }

    @Test
    void shouldBeReadBackFromItsJson() throws IOException {
        Report read = Report.JSON.readValue(report().json(), Report.class);
        assertThat(read).isEqualTo(report());
        assertThat(read.sections().get(1).charts().get(0).series().get(0).y().get(25))
                .isNull();
        assertThat(read.sections().get(0).tables().get(0).rows().get(0)).containsExactly("none", null);
    }

    @Test
    void shouldSayInATextWhatIsOpenAndNotWhatIsForDetails() {
        assertThat(ReportText.lines(report()))
                .containsExactly(
                        "a machine, 2 processors; a JDK; commit abc; now",
                        "millrace replay",
                        "It ended well.",
                        "",
                        "Means",
                        "corrections  reward",
                        "none              -",
                        "  over all steps");
    }

    @Test
    void shouldDrawChartsAsAPicture() throws IOException {
        Path file = folder.resolve("run.png");
        Picture.write(report(), report().sections().get(1).charts(), 1, file);
        var image = ImageIO.read(file.toFile());
        assertThat(image.getWidth()).isEqualTo(900);
        assertThat(folder.toFile().list()).containsExactly("run.png");
    }

    @Test
    void shouldDrawNothingWhereThereIsNoValue() {
        Chart empty = Chart.of(
                "x", Axis.of("step"), Axis.of(""), List.of(Series.line("a", new double[] {1}, new double[] {Double.NaN
                })));
        assertThatThrownBy(() -> Picture.write(report(), List.of(empty), 1, folder.resolve("run.png")))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("no chart has a value");
    }

    @Test
    void shouldTellCurvesApartThatAreCalledAlike() {
        Series one = Series.line("a", new double[] {1}, new double[] {1});
        assertThat(Chart.of("x", Axis.of(""), Axis.of(""), List.of(one, one)).series())
                .extracting(Series::name)
                .containsExactly("a", "a (2)");
        assertThatThrownBy(() -> new Chart("x", Axis.of(""), Axis.of(""), List.of(one, one), List.of()))
                .hasMessageContaining("different names: [a, a]");
    }
}
