package dev.millrace.workloads.page;

import dev.millrace.workloads.report.JsonFile;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;

/** A report as one HTML page that needs nothing but itself. */
final class Page {
    private Page() {}

    /** @param template a resource beside this class, which says where the report's data go */
    static String of(String template, Object report) throws IOException {
        return resource(template)
                .replace("__STYLE__", resource("style.css"))
                .replace("__CHARTS__", resource("charts.js"))
                .replace(
                        "__DATA__",
                        JsonFile.text(report)
                                .replace("</", "<\\/")); // in a script element nothing may look like its end
    }

    private static String resource(String name) throws IOException {
        try (InputStream in = Page.class.getResourceAsStream(name)) {
            if (in == null) {
                throw new IOException("this build lacks the report's " + name);
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
