package dev.millrace.replay.archive;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.file.CodecFactory;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.commons.codec.digest.DigestUtils;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Archives that were not exported by Millrace. */
@Timeout(300)
class UntrustedArchiveTest {
    private static final String FILE = "rollouts-0.avro";

    @TempDir
    private Path directory;

    private Path folder;

    @BeforeEach
    void write() throws IOException {
        folder = Files.createDirectory(directory.resolve("archive"));
        MadeArchive.write(folder);
    }

    private void change(String what, String to) throws IOException {
        String index = MadeArchive.index(folder);
        assertThat(index).contains(what);
        int at = index.indexOf(what);
        MadeArchive.index(folder, index.substring(0, at) + to + index.substring(at + what.length()));
    }

    private void refused(String sentence) {
        assertThatThrownBy(() -> MadeArchive.readAll(folder))
                .isInstanceOf(ArchiveException.class)
                .hasMessageContaining(sentence);
    }

    @Test
    void shouldReadOneThatIsInOrder() {
        assertThat(MadeArchive.readAll(folder)).isEqualTo(MadeArchive.RECORDS);
    }

    @Test
    void shouldReadOneOfBeforeThereWereEpochs() throws IOException {
        change("\"lineage\" : null,", "");
        assertThat(MadeArchive.readAll(folder)).isEqualTo(MadeArchive.RECORDS);
    }

    @ParameterizedTest
    @CsvSource({
        "/etc/passwd",
        "../secret",
        "a/../../secret",
        "..",
        "''",
        "rollouts-0.avro/",
        "./rollouts-0.avro",
        "rollouts-1.avro",
        "rollouts-00.avro",
        "/dev/zero"
    })
    void shouldOpenNoFileButThatOfThePartition(String name) throws IOException {
        change("\"" + FILE + "\"", "\"" + name + "\"");
        refused("the file of rollouts-0 must be called rollouts-0.avro, in its folder: '" + name + "'");
    }

    @Test
    void shouldFollowNoLinkAndOpenNoDevice() throws Exception {
        Path file = folder.resolve(FILE);
        Path elsewhere = directory.resolve("elsewhere");
        Files.move(file, elsewhere);
        Files.createSymbolicLink(file, elsewhere);
        refused("rollouts-0.avro, which the archive's index names, is a link");
        Files.delete(file);
        Files.createSymbolicLink(file, Path.of("/dev/zero"));
        refused("is a link");
        Files.delete(file);
        Files.createDirectory(file);
        refused("is a folder");
        Files.delete(file);
        if (new ProcessBuilder("mkfifo", file.toString()).start().waitFor() == 0) {
            refused("is a device or pipe");
            Files.delete(file);
        }
        refused("cannot read");
        Files.delete(ArchiveIndex.in(folder));
        Files.createSymbolicLink(ArchiveIndex.in(folder), Path.of("/dev/zero"));
        refused("index.json is not a file");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "\"end\" : 6 | \"end\" : -5 | has the offsets from 0 up to -5",
                "\"end\" : 6 | \"end\" : 4611686018427387904 | has the offsets from 0 up to 4611686018427387904",
                "\"end\" : 6 | \"end\" : 18446744073709551622 | is not an archive index",
                "\"end\" : 6 | \"end\" : 6.5 | is not an archive index",
                "\"end\" : 6 | \"end\" : \"6\" | is not an archive index",
                "\"end\" : 6 | \"end\" : null | is not an archive index",
                "\"end\" : 6 | \"ende\" : 6 | is not an archive index",
                "\"end\" : 6, | '' | is not an archive index",
                "\"lineage\" : null | \"lineage\" : {\"beganAt\":{\"made.run-0\":-1},\"ancestors\":[]} | its epoch began at offset -1 of",
                "\"lineage\" : null | \"lineage\" : {\"beganAt\":{},\"ancestors\":[{\"epoch\":0,\"version\":1,\"weightsSha256\":\"\"}]} | epoch 0 continued from version 1 of epoch 0",
                "\"lineage\" : null | \"lineage\" : {\"beganAt\":null,\"ancestors\":[null]} | is not an archive index",
                "\"end\" : 6 | \"end\" : 4 | a record of offset 4 follows one of 1",
                "\"from\" : 0 | \"from\" : -1 | has the offsets from -1 up to 6",
                "\"from\" : 0 | \"from\" : 7 | has the offsets from 7 up to 6",
                "\"records\" : 3 | \"records\" : 7 | has 7 records at 6 offsets",
                "\"records\" : 3 | \"records\" : -3 | has -3 records at 6 offsets",
                "\"records\" : 3 | \"records\" : 2 | says it has 3 records, and the index expects 2 more",
                "\"records\" : 3 | \"records\" : 4 | it has 3 records, and the index says 4",
                "\"records\" : 3 | \"records\" : 0 | has 1 blocks and 0 records",
                "\"partition\" : 0 | \"partition\" : -1 | is of partition -1; partitions are from 0 to 99999",
                "\"partition\" : 0 | \"partition\" : 2147483647 | is of partition 2147483647",
                "\"topic\" : \"rollouts\" | \"topic\" : \"../rollouts\" | no run has a topic of that name",
                "\"topic\" : \"rollouts\" | \"topic\" : \"run\" | no run has a topic of that name",
                "\"topic\" : \"rollouts\" | \"topic\" : \"__consumer_offsets\" | no run has a topic of that name",
                "\"topic\" : \"rollouts\" | \"topic\" : null | it has no topic of file rollouts-0.avro",
                "\"file\" : \"rollouts-0.avro\" | \"file\" : null | it has no name of a file",
                "\"epoch\" : 0 | \"epoch\" : -1 | epoch must be at least 0",
                "\"runId\" : \"run-1\" | \"runId\" : null | run id",
                "\"topicPrefix\" : \"made.\" | \"topicPrefix\" : null | topic prefix must be",
                "\"topicPrefix\" : \"made.\" | \"topicPrefix\" : \"made\" | its millrace.topic is made.outcomes,"
                        + " expected madeoutcomes",
                "\"configuration\" : \"run: {}\" | \"configuration\" : null | it has no configuration",
                "\"1\" : \"\\\"string\\\"\" | \"1\" : null | it has no schema under the id 1",
                "\"1\" : \"\\\"string\\\"\" | \"1\" : \"{\" | schema 1 is invalid",
                "\"1\" : \"\\\"string\\\"\" | \"-1\" : \"\\\"string\\\"\" | has an id below 0",
                "\"held\" : null | \"held\" : {\"firstBatch\":3,\"lastBatch\":1,\"fromVersion\":0,\"toVersion\":0,\"startVersion\":0,\"oldestWeights\":-1,\"newestWeights\":-1,\"optimizerVersion\":-1,\"store\":\"\"} | not a range of batches",
                "\"format\" : 1 | \"format\" : 2 | is of format 2",
                "\"format\" : 1 | \"format\" : 1, \"format\" : 1 | Duplicate field",
                "\"isWhole\" : true | \"isWhole\" : 1 | is not an archive index"
            })
    void shouldRefuseAnIndexThatNobodyWrote(String what, String to, String sentence) throws IOException {
        change(what, to);
        refused(sentence);
    }

    @Test
    void shouldRefuseListsThatAreNone() throws IOException {
        String index = MadeArchive.index(folder);
        MadeArchive.index(folder, index.replaceFirst("(?s)\"files\" : \\[.*\\]", "\"files\" : [null]"));
        refused("null is among them");
        MadeArchive.index(folder, index.replaceFirst("(?s)\"files\" : \\[.*\\]", "\"files\" : null"));
        refused("it has no files");
        MadeArchive.index(folder, index.replaceFirst("(?s)\"blocks\" : \\[ \\[.*?\\] \\]", "\"blocks\" : null"));
        refused("it has no blocks of file rollouts-0.avro");
        MadeArchive.index(folder, index.replaceFirst("(?s)\"blocks\" : \\[ \\[.*?\\] \\]", "\"blocks\" : [null]"));
        refused("a block of file rollouts-0.avro must be an offset and a position");
        MadeArchive.index(folder, index.replaceFirst("(?s)\"blocks\" : \\[ \\[.*?\\] \\]", "\"blocks\" : [[0]]"));
        refused("a block of file rollouts-0.avro must be an offset and a position");
        MadeArchive.index(
                folder, index.replaceFirst("(?s)\"blocks\" : \\[ \\[.*?\\] \\]", "\"blocks\" : [[0, 99999999]]"));
        refused("has a block of offset 0 at byte 99999999");
        MadeArchive.index(folder, index.replaceFirst("(?s)\"blocks\" : \\[ \\[.*?\\] \\]", "\"blocks\" : [[0, 17]]"));
        refused("and the index says at 17");
        for (String none : List.of("", "null", "[]", "{}", "3", "{\"format\" : 1}", index + "{}")) {
            MadeArchive.index(folder, none);
            refused("index.json is no");
        }
        MadeArchive.index(
                folder,
                index.replace("\"rollouts-1.avro\"", "\"rollouts-2.avro\"")
                        .replace("\"partition\" : 1", "\"partition\" : 2"));
        Files.move(folder.resolve("rollouts-1.avro"), folder.resolve("rollouts-2.avro"));
        refused("partitions are counted from 0");
    }

    /** With the matching hash: a forger of a file can compute its hash. */
    @Test
    void shouldRefuseFilesWhoseLengthsCannotBeTrue() throws Exception {
        byte[] file = Files.readAllBytes(folder.resolve(FILE));
        String text = new String(file, java.nio.charset.StandardCharsets.ISO_8859_1);
        int block = (int) MadeArchive.write(folder).files().get(0).blocks().get(0)[1];
        hashed(with(file, block, (byte) 0x7f));
        refused("records, and the index expects 3 more");
        hashed(with(file, block, (byte) 0x01));
        refused("a block at byte " + (block + 1) + " says it has -1 records");
        hashed(with(file, block + 1, (byte) 0xff, (byte) 0xff, (byte) 0xff, (byte) 0xff, (byte) 0x0f));
        refused("says it has -2147483648 bytes");
        hashed(with(file, block + 1, (byte) 0xfe, (byte) 0xff, (byte) 0xff, (byte) 0xff, (byte) 0x07));
        refused("it is truncated");
        hashed(with(file, file.length - 1, (byte) ~file[file.length - 1]));
        refused("a block does not end at its declared end");
        hashed(with(file, 4, (byte) 0x7e));
        refused("is not a valid archive file");
        hashed(new byte[0]);
        refused("and bytes ascend");
        int topic = text.indexOf("made.rollouts");
        hashed(with(file, topic, (byte) 'M'));
        refused("its millrace.topic is Made.rollouts, expected made.rollouts");
    }

    @Test
    void shouldRefuseRecordsOfAnotherForm() throws Exception {
        Schema other = Schema.create(Schema.Type.LONG);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (DataFileWriter<Long> writer = new DataFileWriter<>(new GenericDatumWriter<Long>(other))) {
            writer.setCodec(CodecFactory.zstandardCodec(3));
            writer.setMeta("millrace.topic", "made.rollouts");
            writer.setMeta("millrace.partition", 0);
            writer.create(other, out);
        }
        hashed(out.toByteArray());
        change("\"records\" : 3", "\"records\" : 0");
        MadeArchive.index(
                folder,
                MadeArchive.index(folder).replaceFirst("(?s)\"blocks\" : \\[ \\[.*?\\] \\]", "\"blocks\" : []"));
        refused("its records are not those of an archive");
    }

    private static byte[] with(byte[] file, int at, byte... bytes) {
        byte[] changed = file.clone();
        System.arraycopy(bytes, 0, changed, at, bytes.length);
        return changed;
    }

    private void hashed(byte[] file) throws Exception {
        String before = MadeArchive.index(folder);
        String old = DigestUtils.sha256Hex(Files.readAllBytes(folder.resolve(FILE)));
        Files.write(folder.resolve(FILE), file);
        assertThat(before).contains(old);
        MadeArchive.index(folder, before.replace(old, DigestUtils.sha256Hex(file)));
    }
}
