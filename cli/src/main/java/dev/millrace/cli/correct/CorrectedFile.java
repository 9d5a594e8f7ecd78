package dev.millrace.cli.correct;

import com.fasterxml.jackson.core.JsonEncoding;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.util.MinimalPrettyPrinter;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.rollout.RolloutCorrectionResult;
import dev.millrace.report.WholeFile;
import dev.millrace.runtime.RefusedRequestException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** Writes the corrected sequences, all of them or none. */
final class CorrectedFile {
    private final JsonFactory json = new JsonFactory();
    private final Path path;

    CorrectedFile(Path path) {
        this.path = path;
    }

    /** @throws RefusedRequestException naming sequence and token of a weight that is not finite; nothing is written then */
    void write(List<SequenceLine> lines, TokenBatch batch, RolloutCorrectionResult result) throws IOException {
        WholeFile.write(path, beside -> {
            try (JsonGenerator out = json.createGenerator(beside.toFile(), JsonEncoding.UTF8)) {
                out.setPrettyPrinter(new MinimalPrettyPrinter("\n"));
                for (int s = 0; s < lines.size(); s++) {
                    write(out, lines.get(s), batch, result, s);
                }
                out.writeRaw('\n');
            }
        });
    }

    private static void write(
            JsonGenerator out, SequenceLine line, TokenBatch batch, RolloutCorrectionResult result, int s)
            throws IOException {
        int left = 0;
        out.writeStartObject();
        out.writeStringField("id", line.id());
        out.writeArrayFieldStart("mask");
        for (int t = batch.start(s); t < batch.end(s); t++) {
            out.writeNumber(result.mask()[t]);
            left += result.mask()[t];
        }
        out.writeEndArray();
        out.writeNumberField("rejected_tokens", batch.trainedTokens(s) - left);
        if (result.weights().isPresent()) {
            float[] weights = result.weights().get();
            out.writeArrayFieldStart("weights");
            for (int t = batch.start(s); t < batch.end(s); t++) {
                out.writeNumber(finite(weights[t], line, t - batch.start(s)));
            }
            out.writeEndArray();
        }
        out.writeEndObject();
    }

    /** JSON has no number for it, and a text in its place would be read as something else. */
    private static float finite(float weight, SequenceLine line, int token) {
        if (!Float.isFinite(weight)) {
            throw new RefusedRequestException(
                    "the weight of token " + token + " of " + line.id() + " is not finite: " + weight);
        }
        return weight;
    }
}
