package dev.millrace.cli.correct;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.Main;
import dev.millrace.replay.archive.ArchivedRun;
import dev.millrace.replay.archive.RecordCursor;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.serde.AvroSerde;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import org.apache.avro.specific.SpecificRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.conf.PlainParquetConfiguration;
import org.apache.parquet.example.data.Group;
import org.apache.parquet.example.data.simple.SimpleGroup;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.example.ExampleParquetWriter;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.parquet.io.LocalOutputFile;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.MessageTypeParser;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

/** Files of other writers, which {@code make_parquet.py} made; and of parquet-java for what these no longer write. */
class ParquetRecordsTest {
    private static final Path FILES = Path.of("src/test/resources/records");

    @TempDir
    private Path folder;

    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    private int imported(Path file, Path archive) {
        err.getBuffer().setLength(0);
        CommandLine command = Main.commandLine().setOut(new PrintWriter(out)).setErr(new PrintWriter(err));
        return command.execute(
                "import", "--records", file.toString(), "--archive", archive.toString(), "--run", "theirs");
    }

    /** Every record, with the file's name left out. */
    private static List<SpecificRecord> records(Path archive, String file) throws IOException {
        List<SpecificRecord> all = new ArrayList<>();
        try (ArchivedRun run = new ArchivedRun(archive)) {
            run.verify();
            var trajectories = AvroSerde.of(Trajectory.class, run.registry()).deserializer();
            var batches = AvroSerde.of(LearnerBatch.class, run.registry()).deserializer();
            read(run, run.topics().trajectories()).forEach(value -> {
                Trajectory trajectory = trajectories.deserialize("", value);
                LogCoordinates line = trajectory.getScoreSource();
                assertThat(line.getTopic()).isEqualTo(file);
                all.add(Trajectory.newBuilder(trajectory)
                        .setScoreSource(new LogCoordinates("", 0, line.getOffset()))
                        .build());
            });
            read(run, run.topics().batches()).forEach(value -> all.add(batches.deserialize("", value)));
        }
        return all;
    }

    private static List<byte[]> read(ArchivedRun run, String topic) {
        List<byte[]> values = new ArrayList<>();
        try (RecordCursor cursor = run.read(new TopicPartition(topic, 0), 0)) {
            for (var next = cursor.next(); next.isPresent(); next = cursor.next()) {
                values.add(next.get().value());
            }
        }
        return values;
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"pyarrow-1-snappy", "pyarrow-2-zstd", "pyarrow-gzip", "pyarrow-lz4", "group", "duckdb", "halves"
            })
    void shouldMakeTheSameArchiveAsOfJsonLines(String name) throws IOException {
        String lines = name.equals("halves") ? "halves.jsonl" : "sequences.jsonl";

        assertThat(imported(FILES.resolve(lines), folder.resolve("lines")))
                .as(err.toString())
                .isZero();
        assertThat(imported(FILES.resolve(name + ".parquet"), folder.resolve("parquet")))
                .as(err.toString())
                .isZero();

        assertThat(records(folder.resolve("parquet"), name + ".parquet"))
                .hasSize(24 + 3)
                .isEqualTo(records(folder.resolve("lines"), lines));
    }

    private Path written(String columns, Group... rows) throws IOException {
        MessageType schema = MessageTypeParser.parseMessageType("message sequence {" + columns + "}");
        Path file = Files.createTempFile(folder, "rows", ".parquet");
        Files.delete(file);
        try (ParquetWriter<Group> writer = ExampleParquetWriter.builder(new LocalOutputFile(file))
                .withConf(new PlainParquetConfiguration())
                .withType(schema)
                .withWriterVersion(ParquetProperties.WriterVersion.PARQUET_1_0)
                .withCompressionCodec(CompressionCodecName.UNCOMPRESSED)
                .build()) {
            for (Group row : rows) {
                writer.write(row);
            }
        }
        return file;
    }

    private static final String OLD_LISTS = """
            required int64 step; required double reward; optional binary id (UTF8);
            repeated int32 mask;
            optional group behavior_log_probs (LIST) { repeated float array; }
            optional group proximal_log_probs (LIST) { repeated group bag { optional double array_element; } }
            """;

    private static Group row(String columns, int first) {
        Group row = new SimpleGroup(MessageTypeParser.parseMessageType("message sequence {" + columns + "}"))
                .append("step", 2L)
                .append("reward", 0.5)
                .append("mask", first)
                .append("mask", 0);
        row.addGroup("behavior_log_probs").append("array", -1f).append("array", -0.25f);
        Group proximal = row.addGroup("proximal_log_probs");
        proximal.addGroup("bag").append("array_element", -0.75);
        proximal.addGroup("bag");
        return row;
    }

    @Test
    void shouldReadListsAsTheyWereWrittenBefore() throws IOException {
        Path file = written(OLD_LISTS, row(OLD_LISTS, 1));

        try (ParquetRows rows = new ParquetRows(file)) {
            ObjectNode row = rows.next();
            assertThat(row).isNotNull();
            assertThat(row.toString())
                    .isEqualTo("{\"mask\":[1,0],\"step\":2,\"reward\":0.5,\"behavior_log_probs\":[-1.0,-0.25],"
                            + "\"proximal_log_probs\":[-0.75,null]}");
            assertThat(rows.number()).isEqualTo(1);
            assertThat(rows.next()).isNull();
        }
    }

    @Test
    void shouldTellBadRowsByTheirNumbers() throws IOException {
        Path file = written(OLD_LISTS, row(OLD_LISTS, 1), row(OLD_LISTS, 2), row(OLD_LISTS, 1), row(OLD_LISTS, -1));

        assertThat(imported(file, folder.resolve("archive"))).isEqualTo(1);

        assertThat(err.toString().lines())
                .containsExactly(
                        file + ":2: mask[0] must be 0 or 1: 2",
                        file + ":4: mask[0] must be 0 or 1: -1",
                        "2 lines or rows are bad, and no archive was made; fix or remove them");
        assertThat(folder.resolve("archive")).doesNotExist();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "optional int64 when (TIMESTAMP(MICROS,true))",
                "optional int32 price (DECIMAL(9,2))",
                "optional binary raw",
                "optional int96 old",
                "optional group nested (LIST) { repeated group list { optional group element (LIST) { repeated group list { optional int32 element; } } } }"
            })
    void shouldRefuseAColumnThatNoFieldCanBe(String column) throws IOException {
        Path file = written(column + (column.endsWith("}") ? "" : ";"));

        assertThat(imported(file, folder.resolve("archive"))).isEqualTo(1);

        assertThat(err.toString())
                .startsWith("millrace: " + file + ": the column ")
                .contains(
                        "and a field is a number, a text, a list of numbers, or numbers by name; leave it out or cast it")
                .doesNotContain("Exception");
    }

    @Test
    void shouldRefuseWhatIsNoParquet() throws IOException {
        Path cut = folder.resolve("cut.parquet");
        byte[] whole = Files.readAllBytes(FILES.resolve("duckdb.parquet"));
        Files.write(cut, Arrays.copyOf(whole, whole.length / 2));
        Path lines = Files.copy(FILES.resolve("sequences.jsonl"), folder.resolve("lines.parquet"));

        for (Path file : List.of(cut, lines)) {
            assertThat(imported(file, folder.resolve("archive"))).isEqualTo(1);
            assertThat(err.toString())
                    .startsWith("millrace: " + file + " cannot be read as Parquet: it is not a Parquet file.")
                    .contains("or give JSON lines");
        }
    }

    /** With any byte changed, the command ends with a sentence, or reads a valid file of records. */
    @Test
    void shouldEndOnAnyByteThatWasChanged() throws IOException {
        SplittableRandom random = new SplittableRandom(4);
        byte[] whole = Files.readAllBytes(FILES.resolve("pyarrow-2-zstd.parquet"));
        int refused = 0;
        for (int i = 0; i < 60; i++) {
            byte[] spoilt = whole.clone();
            spoilt[random.nextInt(spoilt.length)] = (byte) random.nextInt();
            Path file = Files.write(folder.resolve("spoilt.parquet"), spoilt);
            int status = imported(file, folder.resolve("archive" + i));
            assertThat(status).as(err.toString()).isIn(0, 1);
            assertThat(err.toString()).doesNotContain("\tat ");
            refused += status;
        }
        assertThat(refused).isGreaterThan(15);
    }
}
