package dev.millrace.cli.correct;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
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
import java.math.BigInteger;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
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
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Reads files of records and writes an archive, or only checks them. Holds one step at a time. Single-use, confined
 * to one thread.
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

    /** A line and its position. */
    private record Member(RecordLine line, Path file, int number) {
        String place() {
            return file + ":" + number;
        }
    }

    /**
     * @param archive receives the records
     * @param algorithm recorded for the batches, by whether the records have old log-probs; called once
     * @param bad receives position and error of each bad line
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

    /** Files of the patterns, in pattern order. */
    public static List<Path> files(List<String> patterns) {
        return patterns.stream()
                .flatMap(pattern -> RecordFiles.of(pattern).stream())
                .toList();
    }

    /**
     * Reads all files in order.
     *
     * @return the result without bad lines; empty if no line was valid
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

    /** Number of bad lines. */
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
            boolean hasOld = line.facts().values().vectors().containsKey(StageInput.OLD);
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
                    + "; the lines of a step must be contiguous, and steps ascend, over all files");
        }
        if (next < step) {
            throw new BadLineException("step " + next + " comes after step " + step
                    + "; steps must ascend over all files in the order of their names");
        }
        flush();
        begun.add(next);
        step = next;
    }

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
            Objects.requireNonNull(steps).step(step, trajectories, known, advantages, figures(), assembledAtMs);
        } catch (IllegalArgumentException e) {
            throw new RefusedRequestException(
                    "step " + step + ", from " + members.get(0).place() + " on: " + e.getMessage()
                            + "; name another --algorithm, or none",
                    e);
        }
        members.clear();
    }

    /** From the recorder's file next to the step's lines; empty without one. */
    private Map<String, Double> figures() {
        Path file = members.get(0).file().resolveSibling(step + ".figures.json");
        Map<String, Double> figures = new LinkedHashMap<>();
        if (!Files.isRegularFile(file)) {
            return figures;
        }
        try (BoundedLines line = new BoundedLines(file)) {
            LineFields.parsed(String.valueOf(line.next())).properties().forEach(figure -> {
                double value = figure.getValue().isNumber() ? figure.getValue().doubleValue() : Double.NaN;
                if (Double.isFinite(value)) {
                    figures.put(figure.getKey(), value);
                } else {
                    refuse(file, figure.getKey() + " must be a finite number: " + figure.getValue());
                }
            });
        } catch (BadLineException | IOException e) {
            refuse(file, String.valueOf(e.getMessage()));
        }
        return figures;
    }

    private void refuse(Path file, String why) {
        bad.accept(file.toString(), why);
        badLines++;
    }

    /** Files of a pattern, sorted by name with numbers compared as numbers: 2.jsonl is before 10.jsonl. */
    static final class RecordFiles {
        private static final Pattern PARTS = Pattern.compile("\\d+|\\D+");

        private RecordFiles() {}

        /**
         * @param pattern a file, or a folder and a pattern of names in it such as {@code dump/*.jsonl}
         * @throws RefusedRequestException if it names none
         */
        static List<Path> of(String pattern) {
            if (Files.exists(Path.of(pattern)) && !Files.isDirectory(Path.of(pattern))) {
                return List.of(Path.of(pattern)); // including pipes
            }
            int slash = pattern.lastIndexOf('/');
            Path folder = Path.of(slash < 0 ? "." : slash == 0 ? "/" : pattern.substring(0, slash));
            String names = pattern.substring(slash + 1);
            List<Path> files = new ArrayList<>();
            try (DirectoryStream<Path> there = Files.newDirectoryStream(folder, names)) {
                there.forEach(file -> {
                    if (Files.isRegularFile(file)) {
                        files.add(file);
                    }
                });
            } catch (IOException | java.util.regex.PatternSyntaxException e) {
                throw new RefusedRequestException(
                        "--records " + pattern + ": cannot look into " + folder + ": " + e.getMessage()
                                + "; give a file, or a folder and a pattern of names, in quotes, such as 'dump/*.jsonl'",
                        e);
            }
            if (files.isEmpty()) {
                throw new RefusedRequestException(
                        "--records " + pattern
                                + " names no file; give a file, or a folder and a pattern of names, in quotes, such as 'dump/*.jsonl'");
            }
            files.sort(Comparator.comparing(file -> file.getFileName().toString(), RecordFiles::compare));
            return files;
        }

        static int compare(String one, String other) {
            Matcher ofOne = PARTS.matcher(one);
            Matcher ofOther = PARTS.matcher(other);
            while (ofOne.find()) {
                if (!ofOther.find()) {
                    return 1;
                }
                String a = ofOne.group();
                String b = ofOther.group();
                boolean areNumbers = Character.isDigit(a.charAt(0)) && Character.isDigit(b.charAt(0));
                int compared = areNumbers ? new BigInteger(a).compareTo(new BigInteger(b)) : a.compareTo(b);
                if (compared != 0) {
                    return compared;
                }
            }
            return ofOther.find() ? -1 : one.compareTo(other);
        }
    }

    /** Format of a line; see the package. */
    static final class RecordSchema {
        private static final String STEP = "step";
        private static final String VERSION = "version";
        private static final String PROMPT_TOKENS = "prompt_tokens";
        private static final String RESPONSE_TOKENS = "response_tokens";
        private static final String TEMPERATURE = "temperature";
        private static final String FINISH_REASON = "finish_reason";
        private static final String ADVANTAGE = "advantage";
        private static final String ADVANTAGES = "advantages";
        private static final List<String> OWN = List.of(
                STEP, VERSION, PROMPT_TOKENS, RESPONSE_TOKENS, TEMPERATURE, FINISH_REASON, ADVANTAGE, ADVANTAGES);
        private static final int[] NO_TOKENS = {};

        private final FactsSchema facts = new FactsSchema(Set.of(), OWN);

        /**
         * Validates a line and extracts its fields.
         *
         * @param place used as id of a line without one
         */
        RecordLine read(int number, String place, ObjectNode line) throws BadLineException {
            ObjectNode own = line.objectNode();
            OWN.forEach(field -> {
                if (line.has(field)) {
                    own.set(field, line.remove(field));
                }
            });
            if (!line.has("id")) {
                line.put("id", place);
            }
            FactsLine of = facts.read(number, line);
            requireVector(
                    of,
                    StageInput.BEHAVIOR,
                    "by the engine that sampled; verl calls them rollout_log_probs, TRL sampling_per_token_logps");
            requireVector(
                    of,
                    StageInput.PROXIMAL,
                    "by the trainer's engine at the weights from which the step started; verl and TRL call them old log-probs");
            if (of.mask().length == 0) {
                throw new BadLineException("mask is empty; a sequence has at least one response token");
            }
            if (of.values().integers().containsKey(StageInput.FORCED_TOKENS)) {
                throw new BadLineException(
                        "forced cannot be kept in an archive; mask these tokens with 0 if they are not to be trained on");
            }
            requireTurns(of);
            long step = whole(own.path(STEP), STEP);
            return new RecordLine(
                    of,
                    step,
                    versions(own, of, step),
                    own.has(VERSION) || of.values().integers().containsKey(StageInput.VERSIONS),
                    new RecordLine.Sampled(
                            tokens(own, PROMPT_TOKENS, -1),
                            tokens(own, RESPONSE_TOKENS, of.mask().length),
                            temperature(own),
                            finishReason(own)),
                    advantages(own, of.mask()));
        }

        private static void requireVector(FactsLine of, StageInput input, String what) throws BadLineException {
            if (!of.values().vectors().containsKey(input)) {
                throw new BadLineException(
                        FactsSchema.VECTORS.get(input) + " is missing: the log-prob of each token " + what);
            }
        }

        private static long whole(JsonNode value, String field) throws BadLineException {
            if (value.isMissingNode()) {
                throw new BadLineException(field + " is missing");
            }
            if (!value.isIntegralNumber() || !value.canConvertToLong() || value.longValue() < 0) {
                throw new BadLineException(field + " must be a whole number from 0: " + value);
            }
            return value.longValue();
        }

        private static long[] versions(ObjectNode own, FactsLine of, long step) throws BadLineException {
            long[] perToken = of.values().integers().get(StageInput.VERSIONS);
            if (perToken != null && own.has(VERSION)) {
                throw new BadLineException("version and versions exclude each other; give one of them");
            }
            if (perToken == null) {
                perToken = new long[of.mask().length];
                Arrays.fill(perToken, own.has(VERSION) ? whole(own.get(VERSION), VERSION) : step);
            }
            for (int t = 0; t < perToken.length; t++) {
                if (perToken[t] > step) {
                    throw new BadLineException(
                            "token " + t + " is of version " + perToken[t] + " and was trained on in step "
                                    + step + ", which started at version " + step
                                    + ": a token cannot come from a later version; number steps by the version that"
                                    + " they start from");
                }
            }
            return perToken;
        }

        private static int[] tokens(ObjectNode own, String field, int length) throws BadLineException {
            if (!own.has(field)) {
                return NO_TOKENS;
            }
            JsonNode list = LineFields.list(own, field);
            if (length >= 0 && list.size() != length) {
                throw new BadLineException(field + " has " + list.size() + " elements, mask has " + length);
            }
            int[] tokens = new int[list.size()];
            for (int t = 0; t < tokens.length; t++) {
                JsonNode value = list.get(t);
                if (!value.isIntegralNumber() || !value.canConvertToInt() || value.intValue() < 0) {
                    throw new BadLineException(field + "[" + t + "] must be a token id from 0: " + value);
                }
                tokens[t] = value.intValue();
            }
            return tokens;
        }

        private static double temperature(ObjectNode own) throws BadLineException {
            JsonNode value = own.path(TEMPERATURE);
            if (value.isMissingNode()) {
                return 1.0;
            }
            if (!value.isNumber() || !Double.isFinite(value.doubleValue()) || value.doubleValue() <= 0) {
                throw new BadLineException("temperature must be a finite number above 0: " + value);
            }
            return value.doubleValue();
        }

        private static String finishReason(ObjectNode own) throws BadLineException {
            JsonNode value = own.path(FINISH_REASON);
            if (!value.isMissingNode() && !value.isTextual()) {
                throw new BadLineException("finish_reason must be a text: " + value);
            }
            return value.asText("");
        }

        private static double @Nullable [] advantages(ObjectNode own, byte[] mask) throws BadLineException {
            if (own.has(ADVANTAGE) && own.has(ADVANTAGES)) {
                throw new BadLineException("advantage and advantages exclude each other; give one of them");
            }
            double[] perToken = new double[mask.length];
            if (own.has(ADVANTAGE)) {
                JsonNode one = own.get(ADVANTAGE);
                if (!one.isNumber() || !Double.isFinite(one.doubleValue())) {
                    throw new BadLineException("advantage must be a finite number: " + one);
                }
                Arrays.fill(perToken, one.doubleValue());
                return perToken;
            }
            if (own.has(ADVANTAGES)) {
                float[] values = LineFields.numbers(LineFields.list(own, ADVANTAGES), ADVANTAGES, mask, false);
                for (int t = 0; t < perToken.length; t++) {
                    perToken[t] = values[t];
                }
                return perToken;
            }
            return null;
        }

        private static void requireTurns(FactsLine of) throws BadLineException {
            List<Double> rewards = of.values().turnRewards();
            if (rewards == null) {
                return;
            }
            long[] turnOf = of.values().integers().get(StageInput.TURNS);
            if (turnOf == null) {
                throw new BadLineException(
                        "turn_rewards has " + rewards.size() + " elements, and the line has no turns");
            }
            long turns = Arrays.stream(turnOf).max().orElse(-1) + 1;
            if (rewards.size() != turns) {
                throw new BadLineException("turn_rewards has " + rewards.size() + " elements, and turns has " + turns
                        + " turns of the policy");
            }
        }
    }
}
