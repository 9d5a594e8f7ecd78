package dev.millrace.replay.archive;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import dev.millrace.schemas.run.EpochLineage;
import java.io.IOException;
import java.nio.file.Files;
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
        String configuration,
        Map<Integer, String> schemas,
        List<PartitionFile> files) {

    static final int FORMAT = 1;
    private static final String NAME = "index.json";
    private static final ObjectMapper JSON = new ObjectMapper()
            .enable(SerializationFeature.INDENT_OUTPUT)
            .enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);

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
            List<long[]> blocks) {}

    void write(Path folder) {
        Path whole = folder.resolve(NAME + ".new");
        try {
            Files.writeString(whole, JSON.writeValueAsString(this));
            Files.move(whole, folder.resolve(NAME), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw new ArchiveException("cannot write " + folder.resolve(NAME) + ": " + e.getMessage(), e);
        }
    }

    static ArchiveIndex read(Path folder) {
        Path file = folder.resolve(NAME);
        try {
            ArchiveIndex index = JSON.readValue(Files.readString(file), ArchiveIndex.class);
            if (index.format() != FORMAT) {
                throw new ArchiveException(
                        file + " is of format " + index.format() + ", this version reads format " + FORMAT);
            }
            return index;
        } catch (NoSuchFileException e) {
            throw new ArchiveException(
                    folder + " holds no archive (it has no " + NAME
                            + "); give the folder that 'millrace export' wrote to the end",
                    e);
        } catch (JsonProcessingException e) {
            throw new ArchiveException(file + " is no index of an archive: " + e.getOriginalMessage(), e);
        } catch (IOException e) {
            throw new ArchiveException("cannot read " + file + ": " + e.getMessage(), e);
        }
    }

    /** True if there is one in the folder. */
    static boolean isIn(Path folder) {
        return Files.exists(folder.resolve(NAME));
    }
}
