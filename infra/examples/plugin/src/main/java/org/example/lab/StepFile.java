package org.example.lab;

import dev.millrace.api.plugin.Meaning;
import dev.millrace.api.step.CompletedStep;
import dev.millrace.api.step.StepObserver;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.TreeMap;

/** Writes a line for each step: version, batch, and every number that the training log will have. */
public record StepFile(@Meaning("file that lines are added to") String path) implements StepObserver {

    @Override
    public void stepCompleted(CompletedStep step) {
        try {
            Files.writeString(
                    Path.of(path),
                    "version=" + step.version() + " batch=" + step.batchId() + " " + new TreeMap<>(step.numbers()) + "\n",
                    StandardOpenOption.CREATE,
                    StandardOpenOption.APPEND);
        } catch (IOException e) {
            throw new UncheckedIOException("the step cannot be noted in " + path, e);
        }
    }
}
