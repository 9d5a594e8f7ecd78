package dev.millrace.experiments;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.experiments.Grid.RunKey;
import dev.millrace.experiments.StepPoint.Evaluation;
import dev.millrace.policy.decoder.RopeScaling;
import dev.millrace.report.WholeFile;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigBinder;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Finished runs, one file each under {@code runs/}, whole or absent. Thread-safe if no two threads write one run. */
public final class RunFiles {
    /** Unknown fields are refused: the experiments' decoders have plain positions. */
    static final ObjectMapper JSON = new ObjectMapper()
            .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
            .registerModule(new SimpleModule().addAbstractTypeMapping(RopeScaling.class, RopeScaling.None.class));

    /** A run's file, whose name is the key. */
    @JsonInclude(JsonInclude.Include.NON_NULL)
    private record Saved(
            StalenessSettings settings,
            ObjectNode algorithm,
            List<StepPoint> points,
            List<Evaluation> evaluations,
            @Nullable String refused) {}

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
        Saved run = JSON.readValue(file.toFile(), Saved.class);
        String algorithm = algorithm(key).toString();
        if (!run.settings().equals(settings) || !run.algorithm().toString().equals(algorithm)) {
            throw new RefusedRequestException(file + " was run under other settings, " + run.settings() + " and "
                    + run.algorithm() + ", than are asked for now, " + settings + " and " + algorithm
                    + "; give the same ones, or another --report");
        }
        return Optional.of(new GridRunResult(key, settings, run.points(), run.evaluations(), run.refused()));
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
        Saved run = new Saved(
                result.settings(), algorithm(result.key()), result.points(), result.evaluations(), result.refused());
        WholeFile.write(file(result.key()), beside -> JSON.writeValue(beside.toFile(), run));
    }

    private static ObjectNode algorithm(RunKey key) {
        return ConfigBinder.unbind(key.correction().algorithm());
    }

    private Path file(RunKey key) {
        return directory.resolve(key.name() + ".json");
    }
}
