package dev.millrace.schemas;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.schemas.run.RunSchemas;
import dev.millrace.schemas.run.RunTopics;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.io.JsonEncoder;

/**
 * Versions of each schema that were ever written, with the bytes of one record each: files
 * {@code history/<Record>/v<n>.avsc}, {@code .hex} (bytes, wire-format header included, schema id 1) and
 * {@code .json} (the values in Avro's JSON encoding).
 */
final class SchemaHistory {
    static final ObjectMapper JSON = new ObjectMapper();
    private static final Path ROOT = Path.of("src/test/resources/history");

    private SchemaHistory() {}

    /** One version of one record. */
    record Version(String record, int number, Schema schema, byte[] bytes, JsonNode values) {
        @Override
        public String toString() {
            return record + " v" + number;
        }
    }

    /** The schemas that are written now, one per record. */
    static List<Schema> current() {
        return RunSchemas.byTopic(new RunTopics("x.")).values().stream()
                .distinct()
                .sorted(Comparator.comparing(Schema::getName))
                .toList();
    }

    /** All versions of a record, oldest first. */
    static List<Version> of(String record) {
        List<Version> versions = new ArrayList<>();
        for (int n = 1; Files.exists(file(record, n, "avsc")); n++) {
            try {
                Schema schema = new Schema.Parser().parse(Files.readString(file(record, n, "avsc")));
                byte[] bytes = HexFormat.of()
                        .parseHex(Files.readString(file(record, n, "hex")).replaceAll("\\s", ""));
                versions.add(new Version(
                        record,
                        n,
                        schema,
                        bytes,
                        JSON.readTree(file(record, n, "json").toFile())));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
        return versions;
    }

    static Path file(String record, int number, String suffix) {
        return ROOT.resolve(record).resolve("v" + number + "." + suffix);
    }

    /** The values in bytes without header, read as a version of the record. */
    static JsonNode values(byte[] body, Schema writer, Schema reader) throws IOException {
        BinaryDecoder decoder = DecoderFactory.get().binaryDecoder(body, null);
        GenericRecord record = new GenericDatumReader<GenericRecord>(writer, reader).read(null, decoder);
        if (!decoder.isEnd()) {
            throw new IOException("bytes follow the record");
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        JsonEncoder encoder = EncoderFactory.get().jsonEncoder(reader, out);
        new GenericDatumWriter<GenericRecord>(reader).write(record, encoder);
        encoder.flush();
        return JSON.readTree(out.toString(StandardCharsets.UTF_8));
    }
}
