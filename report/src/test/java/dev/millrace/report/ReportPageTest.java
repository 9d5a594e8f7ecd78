package dev.millrace.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.millrace.report.Conclusion.Health;
import java.awt.image.BufferedImage;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
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
                .concluding(Conclusion.of("Did it end well?", "it ended at 0.98", Health.OK)
                        .resting("reward", "0.98 (0.95 to 1.00)")
                        .sure("3 seeds"))
                .shownBy("./millrace view --run-dir runs/a")
                .madeBy(new ReportOrigin(
                        "millrace replay", "abc", "a machine", 2, new ReportOrigin.Software("a JDK", null), "now", -1))
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
                .contains("<script id=\"saved\" type=\"application/json\">")
                .doesNotContain("</script><script>alert")
                .doesNotContain("src=\"http", "href=\"http", "@import", "url(http");
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
                        "  asked       Did it end well?",
                        "  answer      it ended at 0.98",
                        "  figure      reward: 0.98 (0.95 to 1.00)",
                        "  sure        3 seeds",
                        "",
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
    void shouldDrawTheRecordedAndEvenRanksOfTooManyCurves() {
        double[] x = {0, 1};
        List<Series> many = new ArrayList<>();
        for (int i = 0; i < 24; i++) {
            double height = (7 * i) % 24;
            many.add(Series.line(i == 12 ? "recorded" : "v" + i, x, new double[] {height, height}));
        }
        many.add(Series.reference("goal", x, x));
        Chart crowded = Chart.of("reward", Axis.of("step"), Axis.of(""), many);
        Chart drawn = Picture.few(List.of(crowded)).get(0);
        assertThat(drawn.series())
                .extracting(Series::name)
                .containsExactly("v0", "v1", "v4", "v5", "recorded", "v13", "v16", "v17", "goal");
        assertThat(drawn.title()).isEqualTo("reward (8 of 24 drawn)");
        Chart enough = Chart.of("reward", Axis.of("step"), Axis.of(""), many.subList(0, 8));
        assertThat(Picture.few(List.of(enough))).containsExactly(enough);
        Report report = Report.of("x", List.of()).with(Section.of("").with(List.of(crowded)));
        assertThat(Picture.names(report, List.of(drawn)))
                .containsExactly("v0", "v1", "v4", "v5", "recorded", "v13", "v16", "v17");
    }

    /** Which of a picture's pixels are of a colour, by row, darker edges of lines left out. */
    private static List<int[]> places(BufferedImage image, int colour) {
        List<int[]> places = new ArrayList<>();
        for (int y = 0; y < image.getHeight(); y++) {
            for (int x = 0; x < image.getWidth(); x++) {
                if ((image.getRGB(x, y) & 0xffffff) == colour) {
                    places.add(new int[] {x, y});
                }
            }
        }
        return places;
    }

    private BufferedImage picture(int columns, Chart... charts) throws IOException {
        Path file = folder.resolve("one.png");
        Picture.write(Report.of("x", List.of()), List.of(charts), columns, file);
        return ImageIO.read(file.toFile());
    }

    @Test
    void shouldNameCurvesBelowThePanelsAndOverNone() throws IOException {
        double[] x = {0, 1, 2};
        Chart chart = Chart.of(
                "t",
                Axis.of("step"),
                Axis.share("reward"),
                List.of(Series.line("first", x, new double[] {0, 0, 0}), Series.line("second", x, new double[] {1, 1, 1
                })));
        BufferedImage image = picture(1, chart);
        assertThat(image.getHeight()).as("a panel and one row of names").isBetween(360, 380);
        for (int colour : new int[] {0x0072b2, 0xd55e00}) {
            List<int[]> drawn = places(image, colour);
            assertThat(drawn).filteredOn(at -> at[1] < 340).as("the curve").hasSizeGreaterThan(400);
            assertThat(drawn)
                    .filteredOn(at -> at[1] >= 340)
                    .as("its name's line")
                    .hasSizeBetween(20, 400);
        }
        assertThat(places(image, 0x0072b2))
                .filteredOn(at -> at[1] < 340)
                .as("a curve at 0 that nothing covers goes from edge to edge")
                .extracting(at -> at[0])
                .anyMatch(at -> at < 110)
                .anyMatch(at -> at > 850);
    }

    @Test
    void shouldDrawOneDot() throws IOException {
        Chart one = Chart.of(
                "t",
                Axis.of("offered"),
                Axis.of("rollouts/s"),
                List.of(Series.line("a", new double[] {100}, new double[] {100.28372002192903})));
        List<int[]> dot = places(picture(1, one), 0x0072b2);
        assertThat(dot).isNotEmpty();
        assertThat(dot).extracting(at -> at[0]).allMatch(at -> at > 400 && at < 560);
        assertThat(dot).extracting(at -> at[1]).allMatch(at -> at > 80 && at < 250);
    }

    @Test
    void shouldPutPanelsBelowEachOtherOnOneLeftEdge() throws IOException {
        double[] x = {0, 1};
        Chart small = Chart.of("", Axis.of("x"), Axis.of("y"), List.of(Series.line("a", x, new double[] {0, 1})));
        Chart large =
                Chart.of("", Axis.of("x"), Axis.of("y"), List.of(Series.line("a", x, new double[] {0, 123_456_789})));
        List<int[]> drawn = places(picture(1, small, large), 0x0072b2);
        int upper = drawn.stream()
                .filter(at -> at[1] < 340)
                .mapToInt(at -> at[0])
                .min()
                .orElseThrow();
        int lower = drawn.stream()
                .filter(at -> at[1] > 340)
                .mapToInt(at -> at[0])
                .min()
                .orElseThrow();
        assertThat(upper).isBetween(lower - 2, lower + 2);
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
