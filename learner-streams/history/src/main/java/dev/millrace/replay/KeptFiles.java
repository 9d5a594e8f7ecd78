package dev.millrace.replay;

import dev.millrace.replay.archive.ArchiveException;
import dev.millrace.schemas.LearnerBatch;
import dev.millrace.schemas.Trajectory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.avro.AvroRuntimeException;
import org.apache.avro.file.CodecFactory;
import org.apache.avro.file.DataFileWriter;
import org.apache.avro.specific.SpecificDatumWriter;
import org.apache.avro.specific.SpecificRecordBase;

/**
 * Writes alternatives of a run as Avro container files: per alternative a folder with {@code batches.avro} and {@code
 * trajectories.avro}, in batch and entry order.
 *
 * <p>Files end in {@value #UNFINISHED} until all are whole. A repeated replay replaces alternatives of the same names.
 * Holds one block per file. Confined to one thread, except {@link #steps()}.
 */
public final class KeptFiles implements KeptBatch.Keeper, AutoCloseable {
    public static final String UNFINISHED = ".unfinished";

    private static final String BATCHES = "batches.avro";
    private static final String TRAJECTORIES = "trajectories.avro";
    private static final int ZSTD_LEVEL = 3;
    private static final int BLOCK_BYTES = 1 << 20;

    private final Path folder;
    private final List<Writing> writings = new ArrayList<>();
    private volatile long steps;

    private record Writing(
            Path folder, DataFileWriter<LearnerBatch> batches, DataFileWriter<Trajectory> trajectories) {}

    /**
     * Deletes earlier files of these names.
     *
     * @param alternatives names; unsafe characters become {@code _}
     * @throws ArchiveException if two folders would share a name, or writing fails
     */
    public KeptFiles(Path folder, List<String> alternatives) {
        this.folder = folder;
        List<String> names = alternatives.stream().map(KeptFiles::folderOf).toList();
        if (new HashSet<>(names).size() < names.size()) {
            throw new ArchiveException("two alternatives map to one folder: " + alternatives + " become " + names
                    + "; give one of the files another name");
        }
        try {
            for (String name : names) {
                Path own = Files.createDirectories(folder.resolve(name));
                writings.add(new Writing(
                        own,
                        begin(own, BATCHES, LearnerBatch.class, LearnerBatch.SCHEMA$),
                        begin(own, TRAJECTORIES, Trajectory.class, Trajectory.SCHEMA$)));
            }
        } catch (IOException e) {
            throw unwritable(e);
        }
    }

    public static String folderOf(String alternative) {
        String plain = alternative.replaceAll("[^A-Za-z0-9._-]", "_");
        return plain.startsWith(".") ? "_" + plain : plain; // neither hidden nor a way out of the folder
    }

    private static <T extends SpecificRecordBase> DataFileWriter<T> begin(
            Path folder, String name, Class<T> type, org.apache.avro.Schema schema) throws IOException {
        Files.deleteIfExists(folder.resolve(name));
        DataFileWriter<T> writer = new DataFileWriter<>(new SpecificDatumWriter<>(type));
        writer.setCodec(CodecFactory.zstandardCodec(ZSTD_LEVEL));
        writer.setSyncInterval(BLOCK_BYTES);
        return writer.create(schema, folder.resolve(name + UNFINISHED).toFile());
    }

    @Override
    public void keep(List<KeptBatch> ofAlternatives) {
        try {
            for (int a = 0; a < writings.size(); a++) {
                writings.get(a).batches().append(ofAlternatives.get(a).batch());
                for (Trajectory trajectory : ofAlternatives.get(a).trajectories()) {
                    writings.get(a).trajectories().append(trajectory);
                }
            }
            long written = steps;
            steps = written + 1; // by one thread, for others to read
        } catch (IOException | AvroRuntimeException e) {
            throw unwritable(e);
        }
    }

    public long steps() {
        return steps;
    }

    /** Other alternatives in the folder. */
    public List<String> others() {
        Set<Path> own =
                writings.stream().map(writing -> writing.folder().getFileName()).collect(Collectors.toSet());
        try (Stream<Path> all = Files.list(folder)) {
            return all.map(Path::getFileName)
                    .filter(name -> !own.contains(name))
                    .map(Path::toString)
                    .sorted()
                    .toList();
        } catch (IOException e) {
            throw unwritable(e);
        }
    }

    public void finish() {
        try {
            close();
            for (Writing writing : writings) {
                for (String name : List.of(BATCHES, TRAJECTORIES)) {
                    Files.move(
                            writing.folder().resolve(name + UNFINISHED),
                            writing.folder().resolve(name),
                            StandardCopyOption.REPLACE_EXISTING);
                }
            }
        } catch (IOException e) {
            throw unwritable(e);
        }
    }

    private ArchiveException unwritable(Exception e) {
        return new ArchiveException(
                "cannot write the decisions of the alternatives to " + folder + ": " + e.getMessage(), e);
    }

    @Override
    public void close() {
        try {
            for (Writing writing : writings) {
                writing.batches().close();
                writing.trajectories().close();
            }
        } catch (IOException e) {
            throw unwritable(e);
        }
    }
}
