package dev.millrace.runtime.train;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.millrace.log.Alarm;
import dev.millrace.runtime.RefusedRequestException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** {@code alarms.json} of a run's folder: the active alarms, for other processes. */
public final class AlarmFile {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String NAME = "alarms.json";

    private final RunDirectory directory;
    private List<Alarm> written = List.of();

    AlarmFile(RunDirectory directory) {
        this.directory = directory;
        write(written, directory);
    }

    /** Writes the file if the alarms have changed. */
    void update(List<Alarm> alarms) {
        if (!alarms.equals(written)) {
            write(alarms, directory);
            written = alarms;
        }
    }

    private static void write(List<Alarm> alarms, RunDirectory directory) {
        try {
            directory.write(
                    directory.path().resolve(NAME),
                    JSON.writerWithDefaultPrettyPrinter().writeValueAsString(alarms) + "\n");
        } catch (JsonProcessingException e) {
            throw new IllegalStateException("alarms cannot be written as JSON", e);
        }
    }

    /** Active alarms, or those when the run's last process ended; empty without a file. */
    public static List<Alarm> read(Path runDirectory) {
        Path file = runDirectory.resolve(NAME);
        try {
            return Files.exists(file) ? JSON.readValue(file.toFile(), new TypeReference<>() {}) : List.of();
        } catch (IOException e) {
            throw new RefusedRequestException("cannot read " + file + ": " + RunDirectory.reason(e), e);
        }
    }
}
