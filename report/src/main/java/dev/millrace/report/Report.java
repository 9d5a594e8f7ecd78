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
 * A report of a replay, experiment, load test or run.
 *
 * @param conclusion null if nothing was asked
 * @param verdict sentences, most important first
 * @param view command that shows its run; null if none
 * @param origin null if unknown
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
    public static final int FORMAT = 1;

    static final ObjectMapper JSON = JsonMapper.builder()
            .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
            .build();

    public Report {
        verdict = List.copyOf(verdict);
        sections = List.copyOf(sections);
    }

    public static Report of(String title, List<String> verdict) {
        return new Report(FORMAT, title, null, verdict, null, null, List.of());
    }

    public Report madeBy(ReportOrigin here) {
        return new Report(format, title, conclusion, verdict, view, here, sections);
    }

    public Report concluding(Conclusion found) {
        return new Report(format, title, found, verdict, view, origin, sections);
    }

    /** @param command that shows its run, such as {@code ./millrace view --run-dir runs/a} */
    public Report shownBy(String command) {
        return new Report(format, title, conclusion, verdict, command, origin, sections);
    }

    /** Appends another report. */
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

    public Report with(Section section) {
        return new Report(format, title, conclusion, verdict, view, origin, Section.added(sections, List.of(section)));
    }

    /** Names in snake case, null for absent values. */
    public String json() {
        try {
            return JSON.writerWithDefaultPrettyPrinter().writeValueAsString(this) + "\n";
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("a report cannot be written as JSON: " + e.getMessage(), e);
        }
    }

    public ObjectNode tree() {
        return JSON.valueToTree(this);
    }

    /** Series names in order of appearance, which fixes their colours. */
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
