package dev.millrace.view.browser;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.millrace.view.RecordedArchive;
import dev.millrace.view.follow.ViewedRuns;
import dev.millrace.view.http.ViewServer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

/** Each page of a recorded run in a real browser: it shows what it should, fits a narrow window, and complains of nothing. */
class BrowserTest {
    private static final String RUN = "#/" + RecordedArchive.NAME + "/";

    // the browser may still write when it is told to end
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
        server = ViewServer.open(0, runs);
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

    /** Nothing sticks out: what is wider than the window scrolls in a box of its own. */
    private static void requireFits(int width) throws Exception {
        assertThat(browser.value("document.documentElement.scrollWidth").asInt())
                .as("width of the page in a window of " + width)
                .isLessThanOrEqualTo(width);
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
        assertThat(has("Effective sample size")).isTrue();
        assertThat(has("rollout_correction")).as("the table of stages").isTrue();
        requireFits(1400);
        show("now", 360, "dark", "document.querySelectorAll('.plot canvas').length >= 8");
        requireFits(360);
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
                "document.querySelectorAll('.plot canvas').length >= 8 && document.body.innerText.includes('It does not go on.')");
        requireNoComplaint();
    }
}
