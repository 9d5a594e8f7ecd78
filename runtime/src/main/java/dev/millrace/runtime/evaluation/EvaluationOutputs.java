package dev.millrace.runtime.evaluation;

import dev.millrace.log.Evaluations;
import dev.millrace.log.LogConnection;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.MetricsConfig;
import dev.millrace.runtime.metrics.EventFiles;
import dev.millrace.runtime.metrics.Reading;
import dev.millrace.runtime.metrics.ReadingMeters;
import dev.millrace.schemas.VersionEvaluation;
import io.micrometer.core.instrument.MeterRegistry;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Where the numbers of evaluations go beside their topic: the gauges of the newest one, which a collector gets too, and TensorBoard's
 * files if they are wanted. Used by one thread.
 *
 * <p>The files are taken with the first evaluation, when an evaluator that was taken over has let go of them. Where they cannot be, an
 * alarm says so, and the next evaluation tries again.
 */
final class EvaluationOutputs implements AutoCloseable {
    private final LogConnection connection;
    private final String dataSha256;
    private final String directory;
    private final ReadingMeters meters;
    private @Nullable EventFiles files;

    /** @param dataSha256 identity of the prompts whose evaluations are shown */
    EvaluationOutputs(MetricsConfig config, LogConnection connection, MeterRegistry registry, String dataSha256) {
        this.connection = connection;
        this.dataSha256 = dataSha256;
        this.directory = config.tensorboard().directory();
        this.meters = new ReadingMeters(registry);
    }

    /** All so far; those on other prompts are passed over. */
    void show(Evaluations evaluations) {
        if (evaluations
                .last()
                .filter(last -> last.getDataSha256().equals(dataSha256))
                .isEmpty()) {
            return;
        }
        EventFiles open = files();
        List<Reading> newest = List.of();
        @Nullable EvaluationStanding standing = null;
        for (VersionEvaluation each : evaluations.onSamePrompts()) {
            standing = standing == null ? EvaluationStanding.first(each) : standing.then(each);
            newest = EvaluationReadings.of(each, standing);
            if (open != null) {
                open.write(each.getVersion(), each.getFinishedAtMs() / 1e3, newest);
            }
        }
        meters.show(newest);
    }

    private @Nullable EventFiles files() {
        if (files == null && !directory.isEmpty()) {
            Path root = Path.of(directory);
            Path folder = EventFiles.heldOut(root, connection.run(), dataSha256);
            try {
                files = EventFiles.openHeldOut(root, connection.run(), dataSha256, connection.alarms());
                connection.alarms().lower(EventFiles.ALARM, folder.toString());
            } catch (RefusedRequestException e) {
                EventFiles.unwritten(
                        connection.alarms(),
                        folder,
                        "the evaluations so far are not in TensorBoard's files: " + e.getMessage(),
                        "the next evaluation writes what is missing, once the folder is free");
            }
        }
        return files;
    }

    @Override
    public void close() {
        meters.close();
        if (files != null) {
            files.close();
        }
    }
}
