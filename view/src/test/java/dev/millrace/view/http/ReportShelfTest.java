package dev.millrace.view.http;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.report.Conclusion;
import dev.millrace.report.Conclusion.Health;
import dev.millrace.report.Report;
import dev.millrace.report.ReportPage;
import dev.millrace.report.Section;
import dev.millrace.view.RecordedArchive;
import dev.millrace.view.follow.RunSource;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReportShelfTest {
    @TempDir
    private Path folder;

    private List<RunSource> runs;
    private ReportShelf shelf;

    @BeforeEach
    void make() throws Exception {
        Path run = Files.createDirectories(folder.resolve("runs/a"));
        runs = List.of(new RunSource.Folder(run), new RunSource.Archive(RecordedArchive.FOLDER));
        shelf = new ReportShelf(List.of(folder.resolve("reports"), folder.resolve("nowhere")));
    }

    private Path write(String place, Report report) throws Exception {
        Path file = folder.resolve(place);
        Files.createDirectories(file.getParent());
        return Files.writeString(file, ReportPage.of(report));
    }

    private Map<String, JsonNode> listed() {
        Map<String, JsonNode> listed = new HashMap<>();
        shelf.list(runs)
                .path("reports")
                .forEach(report -> listed.put(report.path("title").asText(), report));
        return listed;
    }

    @Test
    void shouldListReportsOfARunByItsFolderOrByTheCommandThatShowsIt() throws Exception {
        write("runs/a/doctor/report.html", Report.of("In its folder", List.of("first sentence", "second")));
        write(
                "reports/what-if/report.html",
                Report.of("Of its archive", List.of())
                        .shownBy("./millrace view --archive " + RecordedArchive.FOLDER)
                        .concluding(Conclusion.of("What would none have masked?", "nothing", Health.LOOK)));
        write("reports/deep/er/load/lag-law.html", Report.of("Of no run </script>", List.of()));
        write("runs/a/broker/page.html", Report.of("Among the broker's files", List.of()));
        Files.writeString(folder.resolve("reports/notes.html"), "<p>no report</p>");

        Map<String, JsonNode> listed = listed();
        assertThat(listed).containsOnlyKeys("In its folder", "Of its archive", "Of no run </script>");
        assertThat(listed.get("In its folder").path("run").asText()).isEqualTo("a");
        assertThat(listed.get("In its folder").path("answer").asText()).isEqualTo("first sentence");
        JsonNode whatIf = listed.get("Of its archive");
        assertThat(whatIf.path("run").asText()).isEqualTo(RecordedArchive.NAME);
        assertThat(whatIf.path("asked").asText()).isEqualTo("What would none have masked?");
        assertThat(whatIf.path("health").asText()).isEqualTo("LOOK");
        assertThat(listed.get("Of no run </script>").path("run").isNull()).isTrue();
    }

    @Test
    void shouldGiveAReportOutAsItWasWrittenAndNoOtherFile() throws Exception {
        Report report =
                Report.of("One", List.of("a < b")).with(Section.of("More").listing("x: 1"));
        Path file = write("reports/one/report.html", report);
        Path secret = Files.writeString(folder.resolve("secret.html"), ReportPage.of(report));
        String id = listed().get("One").path("id").asText();
        assertThat(shelf.report(runs, id)).contains(report.tree());
        assertThat(shelf.report(runs, secret.toString())).isEmpty();
        assertThat(shelf.report(
                        runs, folder.resolve("reports/one/../../secret.html").toString()))
                .isEmpty();

        Files.writeString(file, ReportPage.of(Report.of("Another, which is longer", List.of())));
        assertThat(listed()).as("a page that has changed is read again").containsOnlyKeys("Another, which is longer");
    }
}
