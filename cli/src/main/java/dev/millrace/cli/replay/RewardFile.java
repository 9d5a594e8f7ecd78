package dev.millrace.cli.replay;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.correct.BadLineException;
import dev.millrace.cli.correct.BoundedLines;
import dev.millrace.cli.correct.LineFields;
import dev.millrace.replay.Verifier;
import dev.millrace.replay.Verifier.Verdict;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.schemas.Trajectory;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/** Rewards in a file, one JSON object per line: {@code {"rollout_id": "g/0", "reward": 1}}. */
final class RewardFile implements Verifier {
    private static final Set<String> KNOWN = Set.of("rollout_id", "reward", "reward_components");

    private final Path path;
    private final Map<String, Verdict> verdicts;

    private RewardFile(Path path, Map<String, Verdict> verdicts) {
        this.path = path;
        this.verdicts = verdicts;
    }

    /** Reads the file. */
    static RewardFile read(Path path) {
        Map<String, Verdict> verdicts = new HashMap<>();
        try (BoundedLines lines = new BoundedLines(path)) {
            for (String line = lines.next(); line != null; line = lines.next()) {
                if (!line.isBlank()) {
                    add(path, lines.number(), line, verdicts);
                }
            }
        } catch (IOException e) {
            throw new RefusedRequestException("--rewards " + path + " cannot be read: " + e, e);
        }
        return new RewardFile(path, verdicts);
    }

    private static void add(Path path, int number, String line, Map<String, Verdict> verdicts) {
        try {
            ObjectNode object = LineFields.parsed(line);
            if (verdicts.put(rolloutId(object), verdict(object)) != null) {
                throw new BadLineException("rollout " + rolloutId(object) + " has a reward already");
            }
        } catch (BadLineException e) {
            throw new RefusedRequestException("--rewards " + path + ": line " + number + ": " + e.getMessage(), e);
        }
    }

    @Override
    public Verdict verify(Trajectory rollout) {
        Verdict verdict = verdicts.get(rollout.getRolloutId());
        if (verdict == null) {
            throw new RefusedRequestException("--rewards " + path + " has no reward for rollout "
                    + rollout.getRolloutId() + "; give one for each rollout of the batches that are replayed");
        }
        return verdict;
    }

    private static String rolloutId(ObjectNode line) throws BadLineException {
        JsonNode id = line.path("rollout_id");
        if (!id.isTextual()) {
            throw new BadLineException("rollout_id must be a text: " + id);
        }
        return id.asText();
    }

    private static Verdict verdict(ObjectNode line) throws BadLineException {
        LineFields.requireKnown(line, KNOWN);
        Map<String, Double> components = new LinkedHashMap<>();
        JsonNode parts = line.path("reward_components");
        if (!parts.isMissingNode() && !parts.isObject()) {
            throw new BadLineException("reward_components must be numbers by name: " + parts);
        }
        for (Map.Entry<String, JsonNode> part : parts.properties()) {
            components.put(part.getKey(), finite(part.getValue(), "reward_components." + part.getKey()));
        }
        return new Verdict(finite(line.path("reward"), "reward"), components);
    }

    private static double finite(JsonNode value, String name) throws BadLineException {
        if (!value.isNumber() || !Double.isFinite(value.doubleValue())) {
            throw new BadLineException(name + " must be a finite number: " + (value.isMissingNode() ? "none" : value));
        }
        return value.doubleValue();
    }
}
