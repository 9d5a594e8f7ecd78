package dev.millrace.report;

import com.fasterxml.jackson.core.JsonProcessingException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** A report as one HTML page that holds its data and draws them without asking anybody. */
public final class ReportPage {
    private ReportPage() {}

    /** The whole page. */
    public static String of(Report report) {
        try {
            // a name that holds "</script>" must not end the script
            String data = Report.JSON.writeValueAsString(report).replace("<", "\\u003c");
            return resource("page.html")
                    .replace("/*STYLE*/", resource("page.css"))
                    .replace("/*SCRIPT*/", resource("page.js"))
                    .replace("/*DATA*/", data);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("a report cannot be written as JSON: " + e.getMessage(), e);
        }
    }

    private static String resource(String name) {
        try (InputStream in = ReportPage.class.getResourceAsStream(name)) {
            if (in == null) {
                throw new IllegalStateException("this build lacks " + name + " of the report's page");
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
