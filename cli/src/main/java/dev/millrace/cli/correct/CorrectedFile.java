package dev.millrace.cli.correct;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.util.MinimalPrettyPrinter;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.rollout.RolloutCorrectionResult;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;

/** Writes the corrected sequences, all of them or none: under another name first, which then takes the real one. */
final class CorrectedFile {
    private final JsonFactory json = new JsonFactory();
    private final Path path;

    CorrectedFile(Path path) {
        this.path = path;
    }

    void write(List<SequenceLine> lines, TokenBatch batch, RolloutCorrectionResult result) throws IOException {
        Path folder = path.toAbsolutePath().getParent();
        Path unfinished = Files.createTempFile(folder, path.getFileName().toString(), ".part");
        try {
            try (Writer writer = Files.newBufferedWriter(unfinished, StandardCharsets.UTF_8);
                    JsonGenerator out = json.createGenerator(writer)) {
                out.setPrettyPrinter(new MinimalPrettyPrinter("\n"));
                for (int s = 0; s < lines.size(); s++) {
                    write(out, lines.get(s), batch, result, s);
                }
                out.writeRaw('\n');
            }
            Files.move(unfinished, path, StandardCopyOption.REPLACE_EXISTING);
        } finally {
            Files.deleteIfExists(unfinished);
        }
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
                out.writeNumber(weights[t]);
            }
            out.writeEndArray();
        }
        out.writeEndObject();
    }
}
