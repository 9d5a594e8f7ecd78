package dev.millrace.runtime.train;

import dev.millrace.log.LogConnection;
import dev.millrace.runtime.config.MetricsConfig;
import dev.millrace.runtime.metrics.EventFiles;
import dev.millrace.runtime.metrics.Reading;
import dev.millrace.runtime.metrics.ReadingMeters;
import dev.millrace.runtime.metrics.StepReadings;
import dev.millrace.runtime.report.StepRow;
import io.micrometer.core.instrument.MeterRegistry;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/** Exports each step in addition to steps.csv: gauges of the newest one, and TensorBoard files if configured. */
public final class StepOutputs implements AutoCloseable {
    private final ReadingMeters meters;
    private final Optional<EventFiles> files;

    private StepOutputs(ReadingMeters meters, Optional<EventFiles> files) {
        this.meters = meters;
        this.files = files;
    }

    /**
     * Creates the configured outputs.
     *
     * @throws dev.millrace.runtime.RefusedRequestException if TensorBoard's files cannot be written
     */
    public static StepOutputs open(MetricsConfig config, LogConnection connection, MeterRegistry registry) {
        String directory = config.tensorboard().directory();
        return new StepOutputs(
                new ReadingMeters(registry),
                directory.isEmpty()
                        ? Optional.empty()
                        : Optional.of(EventFiles.open(
                                EventFiles.ofRun(Path.of(directory), connection.run()), connection.alarms())));
    }

    public boolean writesFiles() {
        return files.isPresent();
    }

    /** Takes the next step; each once and in order. */
    public void show(StepRow step) {
        List<Reading> readings = StepReadings.of(step);
        meters.show(readings);
        files.ifPresent(all -> all.write(step.step(), step.finishedAtMs() / 1e3, readings));
    }

    @Override
    public void close() {
        meters.close();
        files.ifPresent(EventFiles::close);
    }
}
