package dev.millrace.view.http;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.view.index.EvaluationIndex;
import dev.millrace.view.index.RunIndex;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** The reward on held-out prompts beside the steps of a run: at each version that of the newest one evaluated so far. */
final class HeldOutCourse {
    static final String NAME = "held_out_reward";

    private final TreeMap<Long, Double> rewards = new TreeMap<>();

    private HeldOutCourse() {}

    /** By the table that the run leaves in its folder; without one there is nothing at any version. */
    static HeldOutCourse of(Path folder) throws IOException {
        HeldOutCourse course = new HeldOutCourse();
        Path file = folder.resolve("evaluations.csv");
        if (Files.isRegularFile(file)) {
            List<String> lines = Files.readAllLines(file);
            for (String line : lines.subList(Math.min(1, lines.size()), lines.size())) {
                String[] fields = line.split(",", -1);
                try {
                    course.rewards.put(Long.valueOf(fields[0]), Double.valueOf(fields[1]));
                } catch (NumberFormatException | ArrayIndexOutOfBoundsException e) {
                    throw new IOException("a line of " + file + " is no evaluation: '" + line + "'", e);
                }
            }
        }
        return course;
    }

    /** By a run's index. */
    static HeldOutCourse of(RunIndex index, int epoch) {
        HeldOutCourse course = new HeldOutCourse();
        EvaluationIndex.read(index, epoch, row -> {
            JsonNode evaluation = RunFacts.parsed(row.getString(1));
            course.rewards.put(
                    evaluation.path("version").asLong(),
                    evaluation.path("reward").asDouble());
        });
        return course;
    }

    /** What is known by then; empty before the first evaluation. */
    Optional<Double> at(double version) {
        return Optional.ofNullable(rewards.floorEntry((long) version)).map(Map.Entry::getValue);
    }
}
