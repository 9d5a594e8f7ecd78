package dev.millrace.view.http;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.runtime.config.ConfigBinder;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.config.MillraceConfig;
import dev.millrace.runtime.train.RunDirectory;
import dev.millrace.view.index.EvaluationIndex;
import dev.millrace.view.index.RunIndex;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** The course of a run from steps.csv in its folder, without a broker. */
public final class CourseAnswer {
    private static final int MOST = 1000;
    /** More than the last line. */
    private static final long LAST_BYTES = 1 << 16;
    /** Names in steps.csv. */
    static final List<String> COLUMNS = List.of(
            "step",
            "reward",
            "staleness_mean",
            "ess_ratio",
            "second_moment",
            "approx_kl_behavior",
            "entropy",
            "grad_norm",
            "trained_share",
            "tokens_trained",
            "response_tokens_mean",
            "started_at_ms",
            "finished_at_ms");

    private CourseAnswer() {}

    /** Columns with a number per step, thinned; empty without the table. */
    public static Optional<ObjectNode> of(Path folder) {
        Path file = folder.resolve("steps.csv");
        if (!Files.isRegularFile(file)) {
            return Optional.empty();
        }
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        try (BufferedReader in = Files.newBufferedReader(file)) {
            String first = in.readLine();
            List<String> header = first == null ? List.of() : Arrays.asList(first.split(",", -1));
            List<String[]> rows = new ArrayList<>();
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                rows.add(line.split(",", -1));
            }
            int every = Math.max(1, (rows.size() + MOST - 1) / MOST);
            HeldOutCourse heldOut = HeldOutCourse.of(folder);
            int versionAt = header.indexOf("version");
            ArrayNode held = json.putArray(HeldOutCourse.NAME);
            for (int r = 0; r < rows.size(); r++) {
                if (isKept(r, rows.size(), every)) {
                    Optional<Double> version = versionAt < 0 ? Optional.empty() : number(rows.get(r), versionAt);
                    version.flatMap(heldOut::at).ifPresentOrElse(held::add, held::addNull);
                }
            }
            json.put("steps", rows.size()).put("every", every);
            double tokens = 0;
            ArrayNode trained = json.putArray("tokens");
            int tokensAt = header.indexOf("tokens_trained");
            for (int r = 0; r < rows.size(); r++) {
                tokens += tokensAt < 0 ? 0 : number(rows.get(r), tokensAt).orElse(0.0);
                if (isKept(r, rows.size(), every)) {
                    trained.add(tokens);
                }
            }
            for (String name : COLUMNS) {
                int at = header.indexOf(name);
                ArrayNode values = json.putArray(name);
                for (int r = 0; r < rows.size() && at >= 0; r++) {
                    if (isKept(r, rows.size(), every)) {
                        number(rows.get(r), at).ifPresentOrElse(values::add, values::addNull);
                    }
                }
            }
        } catch (IOException e) {
            return Optional.empty();
        }
        try {
            settings(json.putObject("settings"), ConfigTree.read(RunDirectory.config(folder)));
        } catch (ConfigException e) {
            json.put("problem", e.getMessage());
        }
        return Optional.of(json);
    }

    /** Number of steps, newest reward, start and end times; empty without a step. */
    static Optional<ObjectNode> ends(Path folder) {
        Path file = folder.resolve("steps.csv");
        try (RandomAccessFile bytes = new RandomAccessFile(file.toFile(), "r");
                BufferedReader in = Files.newBufferedReader(file)) {
            List<String> header = Arrays.asList(String.valueOf(in.readLine()).split(",", -1));
            String first = in.readLine();
            if (first == null) {
                return Optional.empty();
            }
            byte[] end = new byte[(int) Math.min(LAST_BYTES, bytes.length())];
            bytes.seek(bytes.length() - end.length);
            bytes.readFully(end);
            List<String> lines = new String(end, StandardCharsets.UTF_8).lines().toList();
            String last = lines.get(lines.size() - 1);
            ObjectNode json = JsonNodeFactory.instance.objectNode();
            put(json, "steps", last, header.indexOf("step"));
            put(json, "reward", last, header.indexOf("reward"));
            put(json, "started_ms", first, header.indexOf("started_at_ms"));
            put(json, "finished_ms", last, header.indexOf("finished_at_ms"));
            return Optional.of(json);
        } catch (IOException e) {
            return Optional.empty();
        }
    }

    private static void put(ObjectNode json, String name, String line, int at) {
        if (at >= 0) {
            number(line.split(",", -1), at).ifPresent(value -> json.put(name, value));
        }
    }

    /** From the index, for a run without a folder. */
    public static ObjectNode of(RunIndex index, int epoch, MillraceConfig config) {
        ObjectNode json = JsonNodeFactory.instance.objectNode();
        JsonNode answer = RunFacts.parsed(StepsAnswer.of(index, epoch, -1));
        json.put("steps", answer.path("count").asLong())
                .put("every", answer.path("every").asLong());
        Map<String, String> fields = Map.of(
                "ess_ratio", "ess", "started_at_ms", "started_ms", "finished_at_ms", "finished_ms", "step", "batch");
        for (String name : COLUMNS) {
            ArrayNode values = json.putArray(name);
            for (JsonNode step : answer.path("steps")) {
                JsonNode value = step.path(fields.getOrDefault(name, name));
                value = value.isMissingNode() ? step.path("metrics").path(name) : value;
                long trainable = step.path("tokens_trainable").asLong();
                if (name.equals("trained_share") && trainable > 0) {
                    values.add((double) step.path("tokens_trained").asLong() / trainable);
                } else if (value.isNumber()) {
                    values.add(value.asDouble() + (name.equals("step") ? 1 : 0));
                } else {
                    values.addNull();
                }
            }
        }
        ArrayNode trained = json.putArray("tokens");
        index.read(
                "SELECT tokens FROM (SELECT batch, sum(json_extract(json, '$.tokens_trained')) OVER (ORDER BY batch) AS tokens,"
                        + " row_number() OVER (ORDER BY batch DESC) - 1 AS back FROM step WHERE epoch = ?) WHERE "
                        + StepsAnswer.CHOSEN
                        + " ORDER BY batch",
                List.of(epoch, Math.max(1, answer.path("every").asLong())),
                row -> trained.add(row.getLong(1)));
        HeldOutCourse heldOut = HeldOutCourse.of(index, epoch);
        ArrayNode held = json.putArray(HeldOutCourse.NAME);
        for (JsonNode step : answer.path("steps")) {
            heldOut.at(step.path("version").asDouble()).ifPresentOrElse(held::add, held::addNull);
        }
        settings(json.putObject("settings"), ConfigBinder.unbind(config));
        return json;
    }

    private static boolean isKept(int row, int rows, int every) {
        return (rows - 1 - row) % every == 0;
    }

    private static Optional<Double> number(String[] row, int at) {
        try {
            return at >= row.length || row[at].isEmpty() ? Optional.empty() : Optional.of(Double.valueOf(row[at]));
        } catch (NumberFormatException e) {
            return Optional.empty();
        }
    }

    private static void settings(ObjectNode json, JsonNode config) {
        for (String key : List.of(
                "/task/kind",
                "/algorithm/variant",
                "/algorithm/weights/kind",
                "/algorithm/objective/kind",
                "/admission/eta",
                "/admission/batch_sequences",
                "/learner/step/optimizer/learning_rate",
                "/goal/mean_reward",
                "/run/seed",
                "/run/id")) {
            if (config.at(key).isValueNode()) {
                json.put(key.substring(1).replace('/', '.'), config.at(key).asText());
            }
        }
    }

    /** Held-out reward next to the steps: at each version that of the newest evaluation. */
    static final class HeldOutCourse {
        static final String NAME = "held_out_reward";

        private final TreeMap<Long, Double> rewards = new TreeMap<>();

        private HeldOutCourse() {}

        /** From the table in the folder; without one, nothing. */
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
                        throw new IOException("a line of " + file + " is not an evaluation: '" + line + "'", e);
                    }
                }
            }
            return course;
        }

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

        /** Empty before the first evaluation. */
        Optional<Double> at(double version) {
            return Optional.ofNullable(rewards.floorEntry((long) version)).map(Map.Entry::getValue);
        }
    }

    /** Steps of an epoch from the training log. */
    public static final class StepsAnswer {
        /** More than the columns of a screen; longer runs are thinned. */
        static final int MOST = 2000;
        /** Newest steps that are never thinned. */
        private static final int NEWEST = 60;
        /** Thins steps numbered from the newest; takes the stride. */
        static final String CHOSEN = "(back % ? = 0 OR back < " + NEWEST + ")";

        private StepsAnswer() {}

        /**
         * Steps oldest first, their stride, and the number indexed.
         *
         * @param after only steps on later batches; -1 for all
         */
        public static String of(RunIndex index, int epoch, long after) {
            long all = all(index, epoch, -1);
            long count = after < 0 ? all : all(index, epoch, after);
            long every = Math.max(1, (count + MOST - 1) / MOST);
            // by the key's own index, and not over what a step holds
            return json(
                    index,
                    all,
                    count,
                    every,
                    List.of(epoch, epoch, after, every),
                    "SELECT json FROM step WHERE epoch = ? AND batch IN"
                            + " (SELECT batch FROM (SELECT batch, row_number() OVER (ORDER BY batch DESC) - 1 AS back FROM step"
                            + " WHERE epoch = ? AND batch > ?) WHERE " + CHOSEN + ") ORDER BY batch");
        }

        public static String newest(RunIndex index, int epoch) {
            long all = all(index, epoch, -1);
            return json(
                    index,
                    all,
                    Math.min(all, NEWEST),
                    1,
                    List.of(epoch, NEWEST),
                    "SELECT json FROM (SELECT json, batch FROM step WHERE epoch = ? ORDER BY batch DESC LIMIT ?) ORDER BY batch");
        }

        private static long all(RunIndex index, int epoch, long after) {
            return index.numbers("SELECT count(*) FROM step WHERE epoch = ? AND batch > ?", epoch, after)
                    .get(0);
        }

        private static String json(RunIndex index, long all, long count, long every, List<?> arguments, String sql) {
            List<String> steps = new ArrayList<>();
            index.read(sql, arguments, row -> steps.add(row.getString(1)));
            return "{\"all\":" + all + ",\"count\":" + count + ",\"every\":" + every + ",\"steps\":["
                    + String.join(",", steps) + "]}";
        }
    }
}
