package dev.millrace.replay.archive;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MapperFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.IntNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import dev.millrace.schemas.run.EpochLineage;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What an archive holds; its file {@code index.json}, written last, so that a folder with one is complete.
 *
 * @param format of the archive
 * @param runId the run's id
 * @param epoch its epoch
 * @param policyId the policy that it trains
 * @param lineage where the epoch comes from; null for a run's first
 * @param topicPrefix what its topics' names began with
 * @param isWhole whether all that the log held of the topics was exported, rather than a range
 * @param held what it holds if it was exported for some batches; null if not
 * @param origin of a run that was never on a log of ours: what its records were made from, in a sentence; null if it was
 * @param configuration the run's configuration as YAML; empty if it was not known
 * @param schemas by the ids that stand in the records
 * @param files one for each partition
 */
record ArchiveIndex(
        int format,
        String runId,
        int epoch,
        String policyId,
        @Nullable EpochLineage lineage,
        String topicPrefix,
        boolean isWhole,
        @Nullable HeldRange held,
        @Nullable String origin,
        String configuration,
        Map<Integer, String> schemas,
        List<PartitionFile> files) {

    static final int FORMAT = 1;
    private static final String NAME = "index.json";
    private static final int MOST_BYTES = 1 << 28;
    private static final ObjectMapper JSON = JsonMapper.builder(JsonFactory.builder()
                    .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
                    .streamReadConstraints(StreamReadConstraints.builder()
                            .maxNestingDepth(16)
                            .maxNumberLength(32)
                            .build())
                    .build())
            .enable(SerializationFeature.INDENT_OUTPUT)
            .enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
            .disable(DeserializationFeature.ACCEPT_FLOAT_AS_INT)
            .disable(MapperFeature.ALLOW_COERCION_OF_SCALARS)
            .build();

    /**
     * The file of one partition.
     *
     * @param file its name in the folder
     * @param topic the topic's name without the prefix
     * @param partition the partition's number
     * @param from the first offset that was exported, whether a record lies there or not
     * @param end the offset behind the last
     * @param records how many there are
     * @param sha256 of the file's bytes, in hexadecimal
     * @param blocks offset of a record and the position in the file from which it is found, about one for each MiB
     */
    record PartitionFile(
            String file,
            String topic,
            int partition,
            long from,
            long end,
            long records,
            String sha256,
            List<long[]> blocks) {

        /** What it must be called. */
        static String name(String topic, int partition) {
            return topic + "-" + partition + ".avro";
        }
    }

    void write(Path folder) {
        Path whole = folder.resolve(NAME + ".new");
        try {
            Files.writeString(whole, JSON.writeValueAsString(this));
            Files.move(whole, folder.resolve(NAME), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw new ArchiveException("cannot write " + folder.resolve(NAME) + ": " + e.getMessage(), e);
        }
    }

    /** @throws ArchiveException if the folder holds no archive, or one whose index is not as {@link #write} writes it */
    static ArchiveIndex read(Path folder) {
        Path file = in(folder);
        try {
            if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS) && Files.exists(file)) {
                throw new ArchiveException(
                        file + " is no file; give the folder that 'millrace export' wrote to the end");
            }
            byte[] text;
            try (InputStream in = Files.newInputStream(file)) {
                text = in.readNBytes(MOST_BYTES + 1);
            }
            if (text.length > MOST_BYTES) {
                throw new ArchiveException(file + " has more than " + MOST_BYTES
                        + " bytes, which no index has; give the folder that 'millrace export' wrote to the end");
            }
            ArchiveIndex index = parse(file, text);
            IndexCheck.require(folder, index);
            return index;
        } catch (NoSuchFileException e) {
            throw new ArchiveException(
                    folder + " holds no archive (it has no " + NAME
                            + "); give the folder that 'millrace export' wrote to the end",
                    e);
        } catch (IOException e) {
            throw new ArchiveException("cannot read " + file + ": " + e.getMessage(), e);
        }
    }

    private static ArchiveIndex parse(Path file, byte[] text) throws IOException {
        try {
            JsonNode tree = JSON.readTree(text);
            JsonNode format = tree == null ? MissingNode.getInstance() : tree.path("format");
            if (format.isIntegralNumber() && !format.equals(IntNode.valueOf(FORMAT))) {
                throw new ArchiveException(file + " is of format " + format + ", this version reads format " + FORMAT);
            }
            ArchiveIndex index = JSON.treeToValue(tree, ArchiveIndex.class);
            if (index == null) {
                throw new ArchiveException(file + " is no index of an archive: it is empty");
            }
            return index;
        } catch (JsonProcessingException e) {
            throw new ArchiveException(file + " is no index of an archive: " + e.getOriginalMessage(), e);
        }
    }

    /** Where it is in a folder. */
    static Path in(Path folder) {
        return folder.resolve(NAME);
    }

    /** True if there is one in the folder. */
    static boolean isIn(Path folder) {
        return Files.exists(folder.resolve(NAME));
    }
}
