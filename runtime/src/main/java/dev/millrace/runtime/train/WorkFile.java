package dev.millrace.runtime.train;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.report.StepWork;
import dev.millrace.runtime.report.StepWork.Reading;
import io.micrometer.core.instrument.MeterRegistry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;

/** {@code work.json} of a run's folder: what a step costs the process, for other processes. Used by one thread. */
public final class WorkFile {
    private static final ObjectMapper JSON = JsonMapper.builder()
            .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
            .build();
    private static final String NAME = "work.json";
    /** As many as {@code lap} reads. */
    private static final long WINDOW_STEPS = 200;

    private final RunDirectory directory;
    private final MeterRegistry meters;
    private final Deque<Reading> readings = new ArrayDeque<>();

    WorkFile(RunDirectory directory, MeterRegistry meters) {
        this.directory = directory;
        this.meters = meters;
    }

    /**
     * Writes the means over the last steps, from the second call with a new step on: what came before the first step is
     * the start's.
     */
    void update(long steps) {
        Reading last = readings.isEmpty() ? Reading.NONE : readings.getLast();
        if (steps <= last.steps()) {
            return;
        }
        readings.addLast(last.next(steps, meters));
        while (readings.size() > 2 && steps - readings.getFirst().steps() > WINDOW_STEPS) {
            readings.removeFirst();
        }
        if (readings.size() > 1) {
            StepWork work = StepWork.between(readings.getFirst(), readings.getLast());
            directory.write(directory.path().resolve(NAME), json(work).toPrettyString() + "\n");
        }
    }

    public static ObjectNode json(StepWork work) {
        return JSON.valueToTree(work);
    }

    /** Work of the last steps of the run's last process; empty without a file. */
    public static Optional<StepWork> read(Path runDirectory) {
        Path file = runDirectory.resolve(NAME);
        try {
            return Files.exists(file) ? Optional.of(JSON.readValue(file.toFile(), StepWork.class)) : Optional.empty();
        } catch (IOException e) {
            throw new RefusedRequestException("cannot read " + file + ": " + RunDirectory.reason(e), e);
        }
    }
}
