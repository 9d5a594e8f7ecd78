package dev.millrace.cli.records;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.sequences.BadLineException;
import dev.millrace.cli.sequences.BoundedLines;
import dev.millrace.cli.sequences.LineFields;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.replay.archive.BuiltArchive;
import dev.millrace.replay.archive.RecordedElsewhere;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.schemas.LogCoordinates;
import dev.millrace.schemas.Trajectory;
import dev.millrace.schemas.run.RunIdentity;
import dev.millrace.schemas.run.RunTopics;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Reads files of records and makes an archive of them, or only looks whether one could be made. Holds one step at a time. Used
 * once, by one thread.
 */
public final class RecordsImport {
    private final RunIdentity run;
    private final RunTopics topics;
    private final RecordSchema schema = new RecordSchema();
    private final BuiltArchive archive;
    private final Function<Boolean, Algorithm> algorithm;
    private @Nullable RecordedElsewhere steps;
    private final BiConsumer<String, String> bad;
    private final Set<String> ids = new HashSet<>();
    private final Set<Long> begun = new HashSet<>();
    private final List<Member> members = new ArrayList<>();
    private boolean haveOld;
    private long badLines;
    private long step = -1;
    private long groups;

    /** A line, and where it stands. */
    private record Member(RecordLine line, Path file, int number) {
        String place() {
            return file + ":" + number;
        }
    }

    /**
     * @param archive takes what is read
     * @param algorithm by which the batches are said to be decided; asked once whether the records have old log-probs
     * @param bad is told the place of each bad line, and what is wrong with it
     */
    public RecordsImport(
            BuiltArchive archive,
            RunIdentity run,
            RunTopics topics,
            Function<Boolean, Algorithm> algorithm,
            BiConsumer<String, String> bad) {
        this.run = run;
        this.topics = topics;
        this.bad = bad;
        this.archive = archive;
        this.algorithm = algorithm;
    }

    /** The files that patterns name, those of the first pattern first. */
    public static List<Path> files(List<String> patterns) {
        return patterns.stream()
                .flatMap(pattern -> RecordFiles.of(pattern).stream())
                .toList();
    }

    /**
     * Reads all of them, in this order.
     *
     * @return what came of them; lines that were bad are in no step; empty if there was no good one
     */
    public Optional<RecordedElsewhere> read(List<Path> files) throws IOException {
        for (Path file : files) {
            if (ParquetRows.isOne(file)) {
                rows(file);
            } else {
                lines(file);
            }
        }
        flush();
        return Optional.ofNullable(steps);
    }

    private void lines(Path file) throws IOException {
        try (BoundedLines lines = new BoundedLines(file)) {
            for (String text = lines.next(); text != null; text = lines.next()) {
                if (!text.isBlank()) {
                    String line = text;
                    read(file, lines.number(), () -> LineFields.parsed(line));
                }
            }
        }
    }

    private void rows(Path file) throws IOException {
        try (ParquetRows rows = new ParquetRows(file)) {
            for (ObjectNode next = rows.next(); next != null; next = rows.next()) {
                ObjectNode row = next;
                read(file, rows.number(), () -> row);
            }
        }
    }

    /** The fields of a line. */
    @FunctionalInterface
    private interface Fields {
        ObjectNode read() throws BadLineException;
    }

    /** How many lines were bad. */
    public long badLines() {
        return badLines;
    }

    private void read(Path file, int number, Fields fields) {
        String place = file + ":" + number;
        try {
            RecordLine line = schema.read(number, file.getFileName() + ":" + number, fields.read());
            if (!ids.add(line.facts().id())) {
                throw new BadLineException("id " + line.facts().id() + " is there already");
            }
            boolean hasOld = line.facts().vectors().containsKey(StageInput.OLD);
            if (steps == null) {
                steps = new RecordedElsewhere(archive, run, topics, algorithm.apply(hasOld));
                haveOld = hasOld;
            } else if (hasOld != haveOld) {
                throw new BadLineException(
                        hasOld
                                ? "it has old_log_probs, and the lines before have none; give them to all or to none"
                                : "old_log_probs is missing, and the lines before have it; give it to all or to none");
            }
            if (line.step() != step) {
                begin(line.step());
            }
            members.add(new Member(line, file, number));
        } catch (BadLineException e) {
            bad.accept(place, e.getMessage());
            badLines++;
        }
    }

    private void begin(long next) throws BadLineException {
        if (begun.contains(next)) {
            throw new BadLineException("step " + next + " comes again after step " + step
                    + "; the lines of a step stand together, and steps in their order, over all files");
        }
        if (next < step) {
            throw new BadLineException("step " + next + " comes after step " + step
                    + "; steps come in their order, over all files in the order of their names");
        }
        flush();
        begun.add(next);
        step = next;
    }

    /** Makes the step that is complete. */
    private void flush() {
        if (members.isEmpty()) {
            return;
        }
        Map<String, List<Member>> byGroup = new LinkedHashMap<>();
        members.forEach(member -> byGroup.computeIfAbsent(member.line().group(), unseen -> new ArrayList<>())
                .add(member));
        long assembledAtMs = members.stream()
                .mapToLong(member -> member.line().ageMs())
                .max()
                .orElse(0);
        List<Trajectory> trajectories = new ArrayList<>(members.size());
        List<double @Nullable []> advantages = new ArrayList<>(members.size());
        Set<StageInput> known = EnumSet.allOf(StageInput.class);
        for (List<Member> group : byGroup.values()) {
            long ordinal = groups++;
            for (int i = 0; i < group.size(); i++) {
                Member member = group.get(i);
                RecordLine line = member.line();
                trajectories.add(line.trajectory(
                        run,
                        new LogCoordinates(member.file().getFileName().toString(), 0, (long) member.number()),
                        ordinal,
                        i,
                        group.size(),
                        assembledAtMs - line.ageMs()));
                advantages.add(line.advantages());
                known.retainAll(line.known());
            }
        }
        try {
            Objects.requireNonNull(steps).step(step, trajectories, known, advantages, assembledAtMs);
        } catch (IllegalArgumentException e) {
            throw new RefusedRequestException(
                    "step " + step + ", from " + members.get(0).place() + " on: " + e.getMessage()
                            + "; name another --algorithm, or none",
                    e);
        }
        members.clear();
    }
}
