package dev.millrace.report;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Optional;

/** A report as one self-contained HTML file: the page of {@code ./millrace view} with the report in it. */
public final class ReportPage {
    private static final String PAGE = "page/index.html";
    /** A saved page has its answers or report before this. */
    private static final String PLACE = "<div id=\"page\">";

    private static final String BEGIN = "<script id=\"saved\" type=\"application/json\">";
    private static final String END = "</script>";

    private ReportPage() {}

    public static byte[] empty() {
        try (InputStream in = ReportPage.class.getResourceAsStream(PAGE)) {
            if (in == null) {
                throw new IllegalStateException("this build lacks " + PAGE + " of the report's page");
            }
            return in.readAllBytes();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public static String of(Report report) {
        String page = new String(empty(), StandardCharsets.UTF_8);
        int at = page.indexOf(PLACE); // the first: the script names it too
        if (at < 0) {
            throw new IllegalStateException("the page of this build has no place for a report: " + PLACE);
        }
        return page.substring(0, at) + BEGIN + saved(report) + END + page.substring(at);
    }

    /** Extracts the report from a page of this or an earlier version; empty for other files. */
    public static Optional<ObjectNode> reportIn(String page) {
        int begin = page.indexOf(BEGIN);
        int end = begin < 0 ? -1 : page.indexOf(END, begin);
        if (end < 0) {
            return Optional.empty();
        }
        try {
            return Report.JSON
                                    .readTree(page.substring(begin + BEGIN.length(), end))
                                    .at("/answers/report")
                            instanceof ObjectNode report
                    ? Optional.of(report)
                    : Optional.empty();
        } catch (JsonProcessingException e) {
            return Optional.empty(); // somebody else's, or one that was cut off
        }
    }

    private static String saved(Report report) {
        ObjectNode saved = Report.JSON.createObjectNode();
        saved.put("at", report.origin() == null ? "" : report.origin().startedAt());
        saved.put("hash", "");
        saved.putObject("answers").set("report", Report.JSON.valueToTree(report));
        try {
            // a name that holds "</script>" must not end the script
            return Report.JSON.writeValueAsString(saved).replace("<", "\\u003c");
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("a report cannot be written as JSON: " + e.getMessage(), e);
        }
    }
}
