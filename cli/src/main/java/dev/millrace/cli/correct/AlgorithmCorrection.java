package dev.millrace.cli.correct;

import com.fasterxml.jackson.core.JsonEncoding;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.util.MinimalPrettyPrinter;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.algorithm.Algorithm;
import dev.millrace.corrections.algorithm.NamedAlgorithms;
import dev.millrace.corrections.stage.AbsentInputException;
import dev.millrace.corrections.stage.Decision;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.stage.StageOutcome;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.VersionSpan;
import dev.millrace.report.WholeFile;
import dev.millrace.runtime.RefusedRequestException;
import dev.millrace.runtime.config.ConfigException;
import dev.millrace.runtime.config.ConfigTree;
import dev.millrace.runtime.report.NamedCorrections;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Applies an algorithm's stages to a file of sequences; training uses the same stages. */
final class AlgorithmCorrection {
    /** Assumed if a file has none: every token is then of one version. */
    private static final Set<StageInput> MADE_UP = Set.of(StageInput.VERSIONS);

    private final Algorithm algorithm;

    private AlgorithmCorrection(Algorithm algorithm) {
        this.algorithm = algorithm;
        for (StageInput input : algorithm.inputs()) {
            if (!FactsSchema.canHold(input)) {
                throw new ConfigException("a stage of the algorithm reads " + input.text()
                        + ", which a file of sequences cannot hold; leave that stage out");
            }
        }
    }

    /**
     * Creates the algorithm of {@code --algorithm}.
     *
     * @param named a named algorithm, or a YAML file with keys of {@code algorithm}
     * @param settings keys of {@code algorithm} and their values, which override it
     * @throws ConfigException if there is no such algorithm, or its parts contradict each other
     */
    static AlgorithmCorrection of(String named, Map<String, String> settings) {
        ObjectNode tree = ConfigTree.empty();
        settings.forEach((key, value) -> ConfigTree.set(tree, key + "=" + value));
        Path file = Path.of(named);
        try {
            Algorithm start = Files.isRegularFile(file)
                    ? NamedCorrections.read(named, ConfigTree.read(file), Algorithm.defaults())
                    : NamedAlgorithms.of(named);
            return new AlgorithmCorrection(NamedCorrections.read(named, tree, start));
        } catch (IllegalArgumentException e) {
            throw new ConfigException("--algorithm " + named + ": " + e.getMessage(), e);
        }
    }

    /** Result for a file. */
    record Corrected(FactsFile file, Decision decision, int badLines, Map<String, Double> metrics) {}

    /**
     * Applies the stages to the sequences of a file.
     *
     * @param version the version at which the step starts; empty: the newest that sampled a token
     * @param bad receives the number of a bad line and the error
     */
    Corrected correct(Path in, OptionalLong version, BiConsumer<Integer, String> bad) throws IOException {
        Set<StageInput> needed = new TreeSet<>(algorithm.inputs());
        needed.removeAll(MADE_UP);
        List<FactsLine> lines = new ArrayList<>();
        int badLines = SequenceFile.eachLine(in, bad, new FactsSchema(needed)::read, FactsLine::id, lines);
        if (lines.isEmpty()) {
            throw new RefusedRequestException(in + " has no line to correct");
        }
        FactsFile file = new FactsFile(List.copyOf(lines));
        try {
            StageFacts facts = file.facts(version);
            if (facts.tokens().trainedTokens() == 0) {
                throw new RefusedRequestException(
                        in + " has no trained token: every mask is 0, so there is nothing to correct");
            }
            Decision decision = algorithm.decide(facts);
            return new Corrected(file, decision, badLines, metrics(decision));
        } catch (AbsentInputException e) {
            throw new RefusedRequestException(in + ": " + e.getMessage(), e);
        } catch (IllegalArgumentException e) {
            throw new RefusedRequestException(in + " does not fit the algorithm: " + e.getMessage(), e);
        }
    }

    private static Map<String, Double> metrics(Decision decision) {
        Map<String, Double> metrics = new LinkedHashMap<>();
        for (StageOutcome outcome : decision.outcomes()) {
            String prefix = outcome.stage() + ".";
            metrics.put(prefix + "tokens_seen", (double) outcome.tokensSeen());
            metrics.put(prefix + "tokens_acted", (double) outcome.tokensActed());
            metrics.put(prefix + "sequences_seen", (double) outcome.sequencesSeen());
            metrics.put(prefix + "sequences_acted", (double) outcome.sequencesActed());
            outcome.values().forEach((name, value) -> metrics.put(prefix + name, value));
        }
        decision.essRatio().ifPresent(ess -> metrics.put("ess_ratio", ess));
        decision.secondMoment().ifPresent(moment -> metrics.put("second_moment", moment));
        metrics.put("step_scale", decision.stepScale());
        return metrics;
    }

    void write(Path out, Corrected corrected) throws IOException {
        WholeFile.write(out, beside -> {
            try (JsonGenerator json = new JsonFactory().createGenerator(beside.toFile(), JsonEncoding.UTF8)) {
                json.setPrettyPrinter(new MinimalPrettyPrinter("\n"));
                for (int s = 0; s < corrected.file().lines().size(); s++) {
                    write(json, corrected, s);
                }
                json.writeRaw('\n');
            }
        });
    }

    private void write(JsonGenerator json, Corrected corrected, int s) throws IOException {
        Decision decision = corrected.decision();
        TokenBatch left = decision.left();
        FactsLine line = corrected.file().lines().get(s);
        json.writeStartObject();
        json.writeStringField("id", line.id());
        json.writeArrayFieldStart("mask");
        int trained = 0;
        for (int t = left.start(s); t < left.end(s); t++) {
            json.writeNumber(left.trained(t));
            trained += line.mask()[t - left.start(s)];
        }
        json.writeEndArray();
        json.writeNumberField("masked_tokens", trained - left.trainedTokens(s));
        @Nullable String maskedBy = decision.maskedBy()[s];
        if (maskedBy != null) {
            json.writeStringField("masked_by", maskedBy);
        }
        json.writeNumberField("advantage", decision.advantages()[s]);
        if (decision.tokenAdvantages().isPresent()) {
            write(json, "advantages", decision.perToken(), left, s);
        }
        if (algorithm.objective().weightsCompare().isPresent()) {
            write(json, "weights", decision.weights(), left, s);
        }
        json.writeEndObject();
    }

    private static void write(JsonGenerator json, String field, float[] values, TokenBatch layout, int s)
            throws IOException {
        json.writeArrayFieldStart(field);
        for (int t = layout.start(s); t < layout.end(s); t++) {
            json.writeNumber(values[t]);
        }
        json.writeEndArray();
    }

    void report(Corrected corrected, Consumer<String> to) {
        corrected.metrics().forEach((name, value) -> to.accept(String.format(Locale.ROOT, "%-56s %.9g", name, value)));
        to.accept(algorithm
                .objective()
                .weightsCompare()
                .map(ratio -> "weights compare " + ratio.target() + " with " + ratio.sampler() + ": " + ratio.target()
                        + "_log_probs - " + ratio.sampler() + "_log_probs")
                .orElse("no weights: the objective corrects by its own ratio"));
        if (!corrected.file().hasVersions()) {
            to.accept("no versions in the file: every token counts as sampled by the version at step start");
        }
        TokenBatch left = corrected.decision().left();
        to.accept(left.sequenceCount() + " sequences, " + left.trainedTokens() + " tokens left to train on; "
                + corrected.badLines() + " lines left out");
    }

    /**
     * The sequences of a file as the facts of one batch. An input that some line lacks is absent.
     *
     * @param lines the good lines, in file order; sequence s of the batch is {@code lines.get(s)}
     */
    record FactsFile(List<FactsLine> lines) {

        /** @param version the version at which the step starts; empty: the newest that sampled a token */
        StageFacts facts(OptionalLong version) {
            TokenBatch tokens = layout();
            StageFacts.Builder facts = StageFacts.of(
                    tokens, lines.stream().mapToDouble(FactsLine::reward).toArray());
            for (StageInput input : FactsSchema.VECTORS.keySet()) {
                if (lines.stream().allMatch(line -> line.values().vectors().containsKey(input))) {
                    facts.vector(input, packed(tokens, input));
                }
            }
            versions(tokens, facts, version);
            if (allHave(StageInput.TURNS)) {
                facts.turns(integers(tokens, StageInput.TURNS));
            }
            if (allHave(StageInput.FORCED_TOKENS)) {
                int[] forced = integers(tokens, StageInput.FORCED_TOKENS);
                boolean[] flags = new boolean[forced.length];
                for (int t = 0; t < forced.length; t++) {
                    flags[t] = forced[t] == 1;
                }
                facts.forcedTokens(flags);
            }
            if (lines.stream().allMatch(line -> line.values().numbers().containsKey(StageInput.AGES))) {
                facts.agesMs(lines.stream()
                        .mapToLong(line -> Math.round(number(line, StageInput.AGES)))
                        .toArray());
            }
            if (lines.stream().allMatch(line -> line.values().numbers().containsKey(StageInput.GREEDY_REWARDS))) {
                facts.greedyRewards(lines.stream()
                        .mapToDouble(line -> number(line, StageInput.GREEDY_REWARDS))
                        .toArray());
            }
            if (lines.stream().allMatch(line -> line.values().turnRewards() != null)) {
                facts.turnRewards(lines.stream()
                        .map(line -> Objects.requireNonNull(line.values().turnRewards()).stream()
                                .mapToDouble(Double::doubleValue)
                                .toArray())
                        .toArray(double[][]::new));
            }
            if (lines.stream().allMatch(line -> line.values().components() != null)) {
                facts.rewardComponents(lines.stream()
                        .map(line -> Objects.requireNonNull(line.values().components()))
                        .toList());
            }
            return facts.build();
        }

        boolean hasVersions() {
            return allHave(StageInput.VERSIONS);
        }

        private boolean allHave(StageInput input) {
            return lines.stream().allMatch(line -> line.values().integers().containsKey(input));
        }

        private static double number(FactsLine line, StageInput input) {
            return Objects.requireNonNull(line.values().numbers().get(input));
        }

        private TokenBatch layout() {
            int[] offsets = SequenceFile.offsets(lines.size(), s -> lines.get(s).mask().length);
            int[] groups = new int[lines.size()];
            Map<String, Integer> indexOf = new HashMap<>();
            for (int s = 0; s < lines.size(); s++) {
                FactsLine line = lines.get(s);
                String group = line.group().isEmpty() ? "\n" + line.id() : line.group(); // not a valid group name
                groups[s] = indexOf.computeIfAbsent(group, unseen -> indexOf.size());
            }
            byte[] mask = new byte[offsets[lines.size()]];
            for (int s = 0; s < lines.size(); s++) {
                System.arraycopy(lines.get(s).mask(), 0, mask, offsets[s], offsets[s + 1] - offsets[s]);
            }
            return new TokenBatch(offsets, mask, groups);
        }

        private float[] packed(TokenBatch tokens, StageInput input) {
            float[] packed = new float[tokens.tokenCount()];
            for (int s = 0; s < lines.size(); s++) {
                System.arraycopy(
                        Objects.requireNonNull(lines.get(s).values().vectors().get(input)),
                        0,
                        packed,
                        tokens.start(s),
                        tokens.length(s));
            }
            return packed;
        }

        private int[] integers(TokenBatch tokens, StageInput input) {
            int[] packed = new int[tokens.tokenCount()];
            for (int s = 0; s < lines.size(); s++) {
                long[] values =
                        Objects.requireNonNull(lines.get(s).values().integers().get(input));
                for (int t = 0; t < values.length; t++) {
                    packed[tokens.start(s) + t] = Math.toIntExact(values[t]);
                }
            }
            return packed;
        }

        /** Without versions every token has the version of the step, so nothing is stale. */
        private void versions(TokenBatch tokens, StageFacts.Builder facts, OptionalLong version) {
            List<List<VersionSpan>> spans = new ArrayList<>();
            long newest = 0;
            for (FactsLine line : lines) {
                long[] versions = hasVersions()
                        ? Objects.requireNonNull(line.values().integers().get(StageInput.VERSIONS))
                        : new long[line.mask().length];
                newest = Math.max(newest, Arrays.stream(versions).max().orElse(0));
                List<VersionSpan> ofLine = new ArrayList<>();
                for (int start = 0, end; start < versions.length; start = end) {
                    end = start + 1;
                    while (end < versions.length && versions[end] == versions[start]) {
                        end++;
                    }
                    ofLine.add(new VersionSpan(versions[start], start, end));
                }
                spans.add(ofLine);
            }
            facts.versions(version.orElse(newest), new BatchVersions(tokens, spans));
        }
    }
}
