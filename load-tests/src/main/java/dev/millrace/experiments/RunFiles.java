package dev.millrace.experiments;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.module.SimpleModule;
import dev.millrace.experiments.Grid.RunKey;
import dev.millrace.policy.decoder.RopeScaling;
import dev.millrace.report.WholeFile;
import dev.millrace.runtime.RefusedRequestException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Finished runs, one file each under {@code runs/}, whole or absent. Thread-safe if no two threads write one run. */
public final class RunFiles {
    /** Unknown fields are refused: the experiments' decoders have plain positions. */
    private static final ObjectMapper JSON = new ObjectMapper()
            .registerModule(new SimpleModule().addAbstractTypeMapping(RopeScaling.class, RopeScaling.None.class));

    private final Path directory;
    private final StalenessSettings settings;

    private RunFiles(Path directory, StalenessSettings settings) {
        this.directory = directory;
        this.settings = settings;
    }

    /**
     * @param resume accepts existing runs
     * @throws RefusedRequestException if there are runs and {@code resume} is false
     */
    public static RunFiles open(Path report, StalenessSettings settings, boolean resume) throws IOException {
        Path directory = report.resolve("runs");
        if (!resume && Files.isDirectory(directory)) {
            throw new RefusedRequestException(report
                    + " holds the runs of an experiment already; give --resume to go on with it, or another --report");
        }
        Files.createDirectories(directory);
        return new RunFiles(directory, settings);
    }

    Optional<GridRunResult> read(RunKey key) throws IOException {
        Path file = file(key);
        if (!Files.exists(file)) {
            return Optional.empty();
        }
        GridRunResult result = JSON.readValue(file.toFile(), GridRunResult.class);
        if (!result.settings().equals(settings)) {
            throw new RefusedRequestException(file + " was run under other settings, " + result.settings()
                    + ", than are asked for now, " + settings + "; give the same ones, or another --report");
        }
        return Optional.of(result);
    }

    /**
     * Existing runs of a grid, in its order.
     *
     * @throws RefusedRequestException if a seed has runs but none on-policy to compare with
     */
    public List<GridRunResult> readAll(Grid grid) throws IOException {
        List<GridRunResult> all = new ArrayList<>();
        for (RunKey key : grid.runs()) {
            read(key).ifPresent(all::add);
        }
        if (all.isEmpty()) {
            throw new RefusedRequestException(directory + " has no run of this grid; run it without --no-runs first");
        }
        for (GridRunResult run : all) {
            if (all.stream()
                    .noneMatch(other -> other.key().lag() == 0
                            && other.key().seed() == run.key().seed())) {
                throw new RefusedRequestException(
                        directory + " has runs of seed " + run.key().seed() + " but none at lag 0 to hold them against;"
                                + " leave the seed out of --seeds, or run one");
            }
        }
        return all;
    }

    void write(GridRunResult result) throws IOException {
        WholeFile.write(file(result.key()), beside -> JSON.writeValue(beside.toFile(), result));
    }

    private Path file(RunKey key) {
        return directory.resolve(key.name() + ".json");
    }
}
