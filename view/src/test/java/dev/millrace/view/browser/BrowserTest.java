package dev.millrace.view.browser;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.millrace.gateway.HttpConfig;
import dev.millrace.report.Axis;
import dev.millrace.report.Chart;
import dev.millrace.report.Column;
import dev.millrace.report.Conclusion;
import dev.millrace.report.Conclusion.Health;
import dev.millrace.report.Report;
import dev.millrace.report.ReportOrigin;
import dev.millrace.report.ReportPage;
import dev.millrace.report.Section;
import dev.millrace.report.Series;
import dev.millrace.report.Table;
import dev.millrace.view.RecordedArchive;
import dev.millrace.view.follow.ViewedRun;
import dev.millrace.view.follow.ViewedRuns;
import dev.millrace.view.http.ReportShelf;
import dev.millrace.view.http.ViewServer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.DoubleStream;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/** Each page of a recorded run in a real browser: it shows what it should, fits a narrow window, and complains of nothing. */
@Tag("faults") // a browser takes a while to start: more than a test's share
class BrowserTest {
    private static final String RUN = "#/" + RecordedArchive.NAME + "/";

    // the browser may still write while it stops
    @TempDir(cleanup = CleanupMode.NEVER)
    static Path folder;

    private static ViewServer server;
    private static Browser browser;

    @BeforeAll
    static void open() throws Exception {
        Optional<Path> program = Browser.installed();
        assumeTrue(
                program.isPresent(),
                "no Chromium is installed here, such as Debian's package chromium: the pages are not driven");
        ViewedRuns runs = RecordedArchive.runs(folder.resolve("indexes"));
        server = ViewServer.open(HttpConfig.defaults(), 0, runs, new ReportShelf(List.of(folder.resolve("reports"))));
        RecordedArchive.indexed(runs);
        browser = new Browser(program.get(), folder.resolve("browser"));
    }

    @AfterAll
    static void close() {
        if (browser != null) {
            browser.close();
        }
        if (server != null) {
            server.close();
        }
    }

    private static void show(String page, int width, String scheme, String until) throws Exception {
        browser.window(width, 900, scheme);
        browser.open(server.address() + RUN + page);
        browser.await(until);
    }

    /** Nothing overflows: wide content scrolls in its own box. */
    private static void requireFits(int width) throws Exception {
        browser.await("document.documentElement.scrollWidth <= " + width); // a chart follows its window a moment later
    }

    private static void requireNoComplaint() {
        assertThat(browser.complaints()).as("what the browser complained of").isEmpty();
    }

    private static boolean has(String text) throws Exception {
        return browser.value("document.body.innerText.includes(" + quoted(text) + ")")
                .asBoolean();
    }

    private static String quoted(String text) {
        return "'" + text.replace("'", "\\'") + "'";
    }

    @Test
    void shouldShowHowTheRunDoes() throws Exception {
        show(
                "now",
                1400,
                "light",
                "document.querySelectorAll('.plot canvas').length >= 8 && document.querySelector('.verdict.ok, .verdict.look, .verdict.ill')");
        assertThat(browser.value("[...document.querySelectorAll('.verdict dt')].map((e) => e.textContent).join(' ')")
                        .asText())
                .as("three questions come first")
                .isEqualTo("Is it healthy? How stale is it? What did the corrections remove?");
        assertThat(has("Tokens are 1.3 versions old when they are trained on, 2 at most"))
                .isTrue();
        assertThat(has("For an archive the doctor judges only the gap between sampler and learner"))
                .as("what the doctor did not look at")
                .isTrue();
        assertThat(has(
                        "18 % of the 960 tokens of the last 6 steps, by rollout_correction. 34 of 192 rollouts were removed entirely."
                                + " The newest step lost 75 %."))
                .isTrue();
        assertThat(has("Effective sample size")).isTrue();
        assertThat(has("rollout_correction")).as("the table of stages").isTrue();
        requireFits(1400);
        show("now", 360, "dark", "document.querySelectorAll('.plot canvas').length >= 8");
        requireFits(360);
        requireNoComplaint();
    }

    /** At a wide light window and a narrow dark one. */
    private static void requireShown(String page, String until) throws Exception {
        show(page, 1400, "light", until);
        requireFits(1400);
        show(page, 360, "dark", until);
        requireFits(360);
        requireNoComplaint();
    }

    @Test
    void shouldShowHowTheRunEndedAndAskNobodyAnyMore() throws Exception {
        ViewedRuns runs = RecordedArchive.runs(folder.resolve("ended"));
        try (ViewServer own = ViewServer.open(HttpConfig.defaults(), 0, runs, new ReportShelf(List.of()))) {
            ViewedRun run = RecordedArchive.indexed(runs);
            browser.window(1400, 900, "light");
            browser.open(own.address() + RUN + "now");
            browser.await("document.querySelectorAll('.plot canvas').length >= 8");
            run.end("ended at step 6: the goal was reached", 6);
            browser.await(
                    "document.body.innerText.includes('The run ended at step 6: the goal was reached. ./millrace view --archive')");
        }
        Thread.sleep(3000); // an event stream that is opened again is so after a second
        assertThat(has("step 6")).isTrue();
        requireNoComplaint();
    }

    @Test
    void shouldListRollouts() throws Exception {
        requireShown(
                "rollouts",
                "document.querySelectorAll('table.list tbody tr').length === 50 && document.querySelector('canvas.plot')");
        assertThat(has("372 rollouts")).isTrue();
        show("rollouts?state=masked", 1400, "light", "document.body.innerText.includes('34 rollouts')");
        requireNoComplaint();
    }

    @Test
    void shouldShowARolloutTokenByToken() throws Exception {
        show("rollouts?state=masked", 1400, "light", "document.body.innerText.includes('34 rollouts')");
        browser.value("document.querySelector('table.list tbody a').click()");
        browser.await(
                "document.querySelectorAll('.token').length > 3 && document.body.innerText.includes('side by side')");
        browser.value("document.querySelectorAll('.token')[document.querySelectorAll('.token').length - 1].focus()");
        browser.await("document.body.innerText.includes('masked by rollout_correction')");
        requireNoComplaint();
    }

    @Test
    void shouldShowTheChainAndDecideABatchAgain() throws Exception {
        requireShown("chain?batch=2", "document.querySelectorAll('.box').length === 4");
        show(
                "chain?batch=2&as=none",
                1400,
                "light",
                "document.body.innerText.includes('would have been trained on or masked instead')");
        browser.value("document.querySelectorAll('.box details summary')[0].click()");
        browser.await("document.querySelector('.box pre').textContent.includes('\"batch_id\": 2')");
        browser.value("document.querySelector('table.list tbody th a').click()");
        browser.await(
                "document.querySelectorAll('.box').length >= 7 && document.body.innerText.includes('prompt released')");
        requireNoComplaint();
    }

    @Test
    void shouldShowTheLedgerAndTheWeights() throws Exception {
        requireShown(
                "ledger",
                "document.querySelectorAll('.sankey rect').length > 4 && document.body.innerText.includes('zero-variance')");
        assertThat(has("Survivor bias")).isTrue();
        assertThat(browser.value(
                                "[...document.querySelectorAll('.sankey text')].every((text) =>"
                                        + " text.getBBox().x + text.getBBox().width <= text.ownerSVGElement.viewBox.baseVal.width)")
                        .asBoolean())
                .as("no label of the flow is cut at its edge")
                .isTrue();
        requireShown("weights", "document.querySelectorAll('.plot canvas').length === 2");
    }

    @Test
    void shouldLayRunsOverEachOther() throws Exception {
        browser.window(1400, 900, "light");
        browser.open(server.address() + "#/runs?with=" + RecordedArchive.NAME);
        browser.await(
                "document.querySelector('.plot canvas') && document.querySelector('input[type=checkbox]').checked");
        requireNoComplaint();
    }

    @Test
    void shouldMoveTheCursorOfAChartByKeys() throws Exception {
        show("now", 1400, "light", "document.querySelectorAll('.plot canvas').length >= 8");
        browser.value("document.querySelector('.plot').focus()");
        browser.press("Home");
        browser.await("document.querySelector('.readout .where').textContent === 'step 1'");
        browser.press("ArrowRight");
        browser.await("document.querySelector('.readout .where').textContent === 'step 2'");
        requireNoComplaint();
    }

    @Test
    void shouldGoOnAsOneFileWithoutAServer() throws Exception {
        show(
                "now",
                1400,
                "light",
                "document.querySelectorAll('.plot canvas').length >= 8 && document.querySelector('.findings, .mark.ok')");
        browser.value(
                "window.kept = null; URL.createObjectURL = (blob) => { blob.text().then((text) => { window.kept = text; }); return 'data:,'; };"
                        + " HTMLAnchorElement.prototype.click = () => {}; 0");
        browser.value(
                "[...document.querySelectorAll('header button')].find((b) => b.textContent === 'save page').click()");
        browser.await("window.kept");
        Path file = folder.resolve("saved.html");
        Files.writeString(file, browser.value("window.kept").asText());
        browser.open(file.toUri().toString());
        browser.await(
                "document.querySelectorAll('.plot canvas').length >= 8 && document.body.innerText.includes('It does not update.')");
        requireNoComplaint();
    }

    private static Path report() throws Exception {
        double[] batches = IntStream.range(0, 60).asDoubleStream().toArray();
        double[] share = DoubleStream.of(batches)
                .map(batch -> batch > 20 && batch < 28 ? Double.NaN : 0.5 + 0.4 * Math.sin(batch / 9))
                .toArray();
        List<Column<String>> columns = List.of(
                Column.text("corrections", name -> name),
                Column.percent("tokens masked", 2, name -> 0.125),
                Column.number("ESS ratio", 3, name -> Double.NaN));
        Report report = Report.of("Replay of run a </script>", List.of("60 steps were decided again"))
                .concluding(Conclusion.of("What would none have masked?", "none masks as much", Health.NONE)
                        .resting("tokens masked", "+0.00 (-0.01 to 0.01) points")
                        .sure("95 % interval over 60 steps"))
                .shownBy("./millrace view --run-dir runs/a")
                .madeBy(new ReportOrigin(
                        "millrace replay", "abc", "a machine", 2, new ReportOrigin.Software("a JDK", null), "now", -1))
                .with(Section.of("").with(Table.of("Means", columns, List.of("recorded", "none"))))
                .with(Section.of("Over batches")
                        .with(List.of(
                                Chart.of(
                                                "masked",
                                                Axis.of("batch"),
                                                Axis.share("share"),
                                                List.of(
                                                        Series.line("recorded", batches, share),
                                                        Series.reference("goal", batches, batches)))
                                        .marked(List.of(new Chart.Mark(30, "killed"))),
                                Chart.of(
                                        "lag",
                                        Axis.of("rate").in("tokens/s").logarithmic(),
                                        Axis.of("records").logarithmic(),
                                        List.of(
                                                Series.points(
                                                        "recorded", new double[] {10, 1000}, new double[] {2, 50}),
                                                Series.line("none", new double[] {20, 200}, new double[] {3, 9}))))))
                .with(Section.of("Configuration").listing("a: 1").forDetails());
        return Files.writeString(folder.resolve("report.html"), ReportPage.of(report));
    }

    @Test
    void shouldShowAReportThatIsAFileOfItsOwn() throws Exception {
        String address = report().toUri().toString();
        for (int width : List.of(1400, 360)) {
            browser.window(width, 900, width == 360 ? "dark" : "light");
            browser.open(address);
            browser.await("document.querySelectorAll('.plot canvas').length === 2");
            requireFits(width);
        }
        assertThat(browser.value("document.querySelector('.verdict').innerText").asText())
                .contains("What would none have masked?", "none masks as much", "+0.00 (-0.01 to 0.01) points")
                .contains("How sure: 95 % interval over 60 steps.");
        assertThat(has("./millrace view --run-dir runs/a")).isTrue();
        assertThat(browser.value("document.title").asText()).startsWith("Replay of run a </script>");
        assertThat(browser.value("document.querySelectorAll('table.report td')[0].innerText")
                        .asText())
                .isEqualTo("12.50 %");
        browser.value("document.querySelector('.plot').focus()");
        browser.press("Home");
        browser.await("document.querySelector('.readout .where').textContent === 'batch 0'");
        browser.value("document.querySelector('details summary').click()");
        browser.await("document.querySelector('.listing pre').textContent === 'a: 1'");
        requireNoComplaint();
    }

    @Test
    void shouldListTheReportsOfARunAndOpenThemAsPages() throws Exception {
        Path file = folder.resolve("reports/what-if/report.html");
        Files.createDirectories(file.getParent());
        Files.writeString(
                file,
                ReportPage.of(Report.of("What if of the recorded run", List.of())
                        .shownBy("./millrace view --archive " + RecordedArchive.FOLDER)
                        .concluding(Conclusion.of("What would none have masked?", "none masks nothing", Health.OK))
                        .with(Section.of("Configuration").listing("a: 1"))));
        requireShown("reports", "document.querySelectorAll('table.reports tbody tr').length === 1");
        assertThat(has("this run")).isTrue();
        browser.value("document.querySelector('table.reports tbody a').click()");
        browser.await(
                "document.querySelector('.verdict') && document.querySelector('.listing pre').textContent === 'a: 1'");
        assertThat(has("none masks nothing")).isTrue();
        requireFits(360);
        browser.open(server.address() + "#/reports");
        browser.await("document.querySelectorAll('table.reports tbody tr').length === 1");
        assertThat(has(RecordedArchive.NAME)).as("the run that it is of").isTrue();
        requireNoComplaint();
    }
}
