package dev.millrace.report;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Everything that a replay, an experiment, a load test or a run says.
 *
 * @param format of this record as JSON
 * @param conclusion what was asked, and the answer; null where nothing in particular was
 * @param verdict what it comes to, in sentences, the most important first
 * @param view the command that shows the run it is about; null where it is about none
 * @param origin where it was made; null if nobody asked
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
public record Report(
        int format,
        String title,
        @Nullable Conclusion conclusion,
        List<String> verdict,
        @Nullable String view,
        @Nullable ReportOrigin origin,
        List<Section> sections) {
    /** What is written now. */
    public static final int FORMAT = 1;

    static final ObjectMapper JSON = JsonMapper.builder()
            .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
            .build();

    public Report {
        verdict = List.copyOf(verdict);
        sections = List.copyOf(sections);
    }

    /** A report with nothing but its verdict. */
    public static Report of(String title, List<String> verdict) {
        return new Report(FORMAT, title, null, verdict, null, null, List.of());
    }

    /** The same with its origin. */
    public Report madeBy(ReportOrigin here) {
        return new Report(format, title, conclusion, verdict, view, here, sections);
    }

    /** The same with what it comes to in a line. */
    public Report concluding(Conclusion found) {
        return new Report(format, title, found, verdict, view, origin, sections);
    }

    /** The same with the command that shows the run it is about, such as {@code ./millrace view --run-dir runs/a}. */
    public Report shownBy(String command) {
        return new Report(format, title, conclusion, verdict, command, origin, sections);
    }

    /** The same, and what another says below it. */
    public Report and(Report other) {
        return new Report(
                format,
                title,
                conclusion != null ? conclusion : other.conclusion,
                Section.added(verdict, other.verdict),
                view != null ? view : other.view,
                origin,
                Section.added(sections, other.sections));
    }

    /** The same with another section. */
    public Report with(Section section) {
        return new Report(format, title, conclusion, verdict, view, origin, Section.added(sections, List.of(section)));
    }

    /** The report as JSON, which is what the page draws; names in snake case, null where there is no value. */
    public String json() {
        try {
            return JSON.writerWithDefaultPrettyPrinter().writeValueAsString(this) + "\n";
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("a report cannot be written as JSON: " + e.getMessage(), e);
        }
    }

    /** The same as a tree, to be a part of another. */
    public ObjectNode tree() {
        return JSON.valueToTree(this);
    }

    /** Names of series in the order in which charts first show them: the same name has the same colour everywhere. */
    List<String> seriesNames() {
        return seriesNames(sections.stream()
                        .flatMap(section -> section.charts().stream())
                        .toList())
                .distinct()
                .toList();
    }

    static Stream<String> seriesNames(List<Chart> charts) {
        return charts.stream()
                .flatMap(chart -> chart.series().stream())
                .filter(series -> series.style() != Series.Style.REFERENCE)
                .map(Series::name);
    }
}
