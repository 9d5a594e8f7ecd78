package dev.millrace.cli.replay;

import dev.millrace.replay.KeptFiles;
import dev.millrace.replay.ReplayedStep;
import dev.millrace.replay.StepFigures;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Every step under every alternative, a line each, written as the replay goes on. The file's name ends in
 * {@value KeptFiles#UNFINISHED} until all steps are in it.
 */
final class StepsCsv implements AutoCloseable {
    private final Path file;
    private final Path unfinished;
    private final BufferedWriter out;
    private final List<String> names;

    StepsCsv(Path file, List<String> names) throws IOException {
        this.file = file;
        this.unfinished = file.resolveSibling(file.getFileName() + KeptFiles.UNFINISHED);
        this.out = Files.newBufferedWriter(unfinished);
        this.names = names;
        out.write("batch,version,assembled_at_ms,reward,staleness_mean,as_recorded,corrections,tokens,sequences,"
                + Figure.ALL.stream().map(Figure::key).collect(Collectors.joining(",")) + ",diagnosis\n");
    }

    void write(ReplayedStep step) {
        try {
            for (int a = 0; a < names.size(); a++) {
                StepFigures figures = step.figures().get(a);
                StringBuilder line = new StringBuilder()
                        .append(step.batchId())
                        .append(',')
                        .append(step.version())
                        .append(',')
                        .append(step.assembledAtMs())
                        .append(',')
                        .append(step.reward())
                        .append(',')
                        .append(step.stalenessMean())
                        .append(',')
                        .append(step.isAsRecorded())
                        .append(',')
                        .append(names.get(a).replace(',', ';'))
                        .append(',')
                        .append(figures.tokens().of())
                        .append(',')
                        .append(figures.sequences().of());
                for (Figure figure : Figure.ALL) {
                    line.append(',').append(figure.of().applyAsDouble(figures));
                }
                out.append(line)
                        .append(',')
                        .append(step.diagnoses()
                                .get(a)
                                .map(diagnosis ->
                                        String.valueOf(diagnosis.cause().letter()))
                                .orElse(""))
                        .append('\n');
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** All steps were written: the file gets its name. */
    void finish() throws IOException {
        out.close();
        Files.move(unfinished, file, StandardCopyOption.REPLACE_EXISTING);
    }

    @Override
    public void close() throws IOException {
        out.close();
    }
}
