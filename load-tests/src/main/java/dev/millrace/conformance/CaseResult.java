package dev.millrace.conformance;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedWriter;
import java.io.Closeable;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

public sealed interface CaseResult {
    String name();

    String family();

    record Computed(String name, String family, ObjectNode output) implements CaseResult {}

    /** The input was refused; the reference may refuse it too. */
    record Refused(String name, String family, String message) implements CaseResult {}

    /** No answer: unknown family or option, malformed case, or our defect. */
    record Failed(String name, String family, String message) implements CaseResult {}

    /** Writes {@code {"results":[...]}}, one result per line. */
    public static final class ResultsFile implements Closeable {
        private final ObjectMapper json;
        private final BufferedWriter out;
        private String separator = "\n";

        public ResultsFile(Path path, ObjectMapper json) throws IOException {
            this.json = json;
            this.out = Files.newBufferedWriter(path, StandardCharsets.UTF_8);
            out.write("{\"results\":[");
        }

        public void add(CaseResult result) throws IOException {
            ObjectNode line = json.createObjectNode().put("name", result.name()).put("family", result.family());
            if (result instanceof CaseResult.Computed computed) {
                line.set("output", computed.output());
            } else if (result instanceof CaseResult.Refused refused) {
                line.putObject("error").put("message", refused.message());
            } else if (result instanceof CaseResult.Failed failed) {
                line.putObject("error").put("message", failed.message());
            }
            out.write(separator);
            out.write(json.writeValueAsString(line));
            separator = ",\n";
        }

        @Override
        public void close() throws IOException {
            try (out) {
                out.write("\n]}\n");
            }
        }
    }
}
