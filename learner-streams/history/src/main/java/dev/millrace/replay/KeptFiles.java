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
 * Keeps what alternatives make of a run as Avro container files, which every Avro library reads: for each alternative a folder
 * with {@code batches.avro}, a LearnerBatch a step, and {@code trajectories.avro}, the trajectories of each batch, in the order of
 * its entries, batch after batch.
 *
 * <p>Files have {@value #UNFINISHED} behind their names until all of them are whole; then all are renamed. So a replay that was
 * interrupted leaves nothing that looks like a result, and one that is made again replaces what it was for alternatives of the same
 * names; folders of others stay. One block of
 * each file is in memory. Confined to one thread, {@link #steps()} aside.
 */
public final class KeptFiles implements KeptBatch.Keeper, AutoCloseable {
    /** Ends the names of files that are not whole. */
    public static final String UNFINISHED = ".unfinished";

    private static final String BATCHES = "batches.avro";
    private static final String TRAJECTORIES = "trajectories.avro";
    private static final int ZSTD_LEVEL = 3;
    private static final int BLOCK_BYTES = 1 << 20;

    private final Path folder;
    private final List<Writing> writings = new ArrayList<>();
    private volatile long steps;

    /** The files of one alternative. */
    private record Writing(
            Path folder, DataFileWriter<LearnerBatch> batches, DataFileWriter<Trajectory> trajectories) {}

    /**
     * Begins them; files of these names from before are deleted.
     *
     * @param folder for the alternatives' folders
     * @param alternatives their names; what a file system may not like in one becomes {@code _}
     * @throws ArchiveException if two folders would be called alike, or nothing can be written
     */
    public KeptFiles(Path folder, List<String> alternatives) {
        this.folder = folder;
        List<String> names = alternatives.stream().map(KeptFiles::folderOf).toList();
        if (new HashSet<>(names).size() < names.size()) {
            throw new ArchiveException("two alternatives would be kept in one folder: " + alternatives + " become "
                    + names + "; give one of the files another name");
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

    /** The folder of an alternative. */
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

    /** Steps that were taken in so far; from any thread. */
    public long steps() {
        return steps;
    }

    /** What else lies in the folder: alternatives of other replays, by name. */
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

    /** All steps were taken in: the files get their names. */
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
        return new ArchiveException("cannot keep what the alternatives decide in " + folder + ": " + e.getMessage(), e);
    }

    /** What was not finished keeps the name that says so. */
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
