package dev.millrace.cli.correct;

import dev.millrace.cli.sequences.FactsLine;
import dev.millrace.cli.sequences.FactsSchema;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.stage.StageFacts;
import dev.millrace.corrections.stage.StageInput;
import dev.millrace.corrections.staleness.BatchVersions;
import dev.millrace.corrections.staleness.VersionSpan;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;

/**
 * The sequences of a file as the facts of one batch. What some line lacks is not known of the batch.
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
            if (lines.stream().allMatch(line -> line.vectors().containsKey(input))) {
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
        if (lines.stream().allMatch(line -> line.numbers().containsKey(StageInput.AGES))) {
            facts.agesMs(lines.stream()
                    .mapToLong(line -> Math.round(number(line, StageInput.AGES)))
                    .toArray());
        }
        if (lines.stream().allMatch(line -> line.numbers().containsKey(StageInput.GREEDY_REWARDS))) {
            facts.greedyRewards(lines.stream()
                    .mapToDouble(line -> number(line, StageInput.GREEDY_REWARDS))
                    .toArray());
        }
        if (lines.stream().allMatch(line -> line.turnRewards() != null)) {
            facts.turnRewards(lines.stream()
                    .map(line -> Objects.requireNonNull(line.turnRewards()).stream()
                            .mapToDouble(Double::doubleValue)
                            .toArray())
                    .toArray(double[][]::new));
        }
        if (lines.stream().allMatch(line -> line.components() != null)) {
            facts.rewardComponents(lines.stream()
                    .map(line -> Objects.requireNonNull(line.components()))
                    .toList());
        }
        return facts.build();
    }

    /** Whether every line says which version sampled its tokens. */
    boolean hasVersions() {
        return allHave(StageInput.VERSIONS);
    }

    private boolean allHave(StageInput input) {
        return lines.stream().allMatch(line -> line.integers().containsKey(input));
    }

    private static double number(FactsLine line, StageInput input) {
        return Objects.requireNonNull(line.numbers().get(input));
    }

    private TokenBatch layout() {
        int[] offsets = SequenceFile.offsets(lines.size(), s -> lines.get(s).mask().length);
        int[] groups = new int[lines.size()];
        Map<String, Integer> indexOf = new HashMap<>();
        for (int s = 0; s < lines.size(); s++) {
            FactsLine line = lines.get(s);
            String group = line.group().isEmpty() ? "\n" + line.id() : line.group(); // no group has such a name
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
                    Objects.requireNonNull(lines.get(s).vectors().get(input)),
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
            long[] values = Objects.requireNonNull(lines.get(s).integers().get(input));
            for (int t = 0; t < values.length; t++) {
                packed[tokens.start(s) + t] = Math.toIntExact(values[t]);
            }
        }
        return packed;
    }

    /** Without versions every token is of the version at which the step starts: nothing is stale that nobody calls so. */
    private void versions(TokenBatch tokens, StageFacts.Builder facts, OptionalLong version) {
        List<List<VersionSpan>> spans = new ArrayList<>();
        long newest = 0;
        for (FactsLine line : lines) {
            long[] versions = hasVersions()
                    ? Objects.requireNonNull(line.integers().get(StageInput.VERSIONS))
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
