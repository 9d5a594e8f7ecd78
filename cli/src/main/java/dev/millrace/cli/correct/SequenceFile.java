package dev.millrace.cli.correct;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.cli.correct.SequenceFile.SequenceLine;
import dev.millrace.corrections.TokenBatch;
import dev.millrace.corrections.ratio.LogRatio;
import dev.millrace.corrections.ratio.RatioKind;
import dev.millrace.runtime.RefusedRequestException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.IntUnaryOperator;

/**
 * Sequences of a file as one batch.
 *
 * @param lines the good lines, in file order; sequence s of the batch is {@code lines.get(s)}
 */
record SequenceFile(List<SequenceLine> lines, int badLines) {

    /**
     * Reads every line; reports and skips bad ones. Ignores blank lines.
     *
     * @param bad receives the number of a bad line and the error
     */
    static SequenceFile read(Path path, RatioKind ratio, BiConsumer<Integer, String> bad) throws IOException {
        LineSchema schema = new LineSchema(ratio);
        List<SequenceLine> lines = new ArrayList<>();
        return new SequenceFile(lines, eachLine(path, bad, schema::read, SequenceLine::id, lines));
    }

    /** Reads one line. */
    @FunctionalInterface
    interface LineReader<L> {
        L read(int number, String text) throws BadLineException;
    }

    /** Reads every line into {@code lines}; returns the number of bad ones. */
    static <L> int eachLine(
            Path path, BiConsumer<Integer, String> bad, LineReader<L> schema, Function<L, String> idOf, List<L> lines)
            throws IOException {
        Map<String, Integer> lineOfId = new HashMap<>();
        int badLines = 0;
        try (BoundedLines all = new BoundedLines(path)) {
            for (String text = all.next(); text != null; text = all.next()) {
                if (text.isBlank()) {
                    continue;
                }
                int number = all.number();
                try {
                    L line = schema.read(number, text);
                    Integer earlier = lineOfId.putIfAbsent(idOf.apply(line), number);
                    if (earlier != null) {
                        throw new BadLineException("id " + idOf.apply(line) + " is already on line " + earlier);
                    }
                    lines.add(line);
                } catch (BadLineException e) {
                    bad.accept(number, e.getMessage());
                    badLines++;
                }
            }
        }
        return badLines;
    }

    /** Offsets of the sequences in the batch; the last is the end. */
    static int[] offsets(int sequences, IntUnaryOperator length) {
        int[] offsets = new int[sequences + 1];
        for (int s = 0; s < sequences; s++) {
            long next = (long) offsets[s] + length.applyAsInt(s);
            if (next > Integer.MAX_VALUE) {
                throw new RefusedRequestException("the sequences up to number " + (s + 1) + " have " + next
                        + " tokens, and one batch has at most " + Integer.MAX_VALUE + "; split the file");
            }
            offsets[s + 1] = (int) next;
        }
        return offsets;
    }

    TokenBatch batch() {
        int[] offsets = offsets(lines.size(), s -> lines.get(s).mask().length);
        byte[] mask = new byte[offsets[lines.size()]];
        for (int s = 0; s < lines.size(); s++) {
            System.arraycopy(lines.get(s).mask(), 0, mask, offsets[s], offsets[s + 1] - offsets[s]);
        }
        return new TokenBatch(offsets, mask);
    }

    /** Ratio of the valid lines, packed as {@code batch}. */
    LogRatio ratio(TokenBatch batch, RatioKind kind) {
        return LogRatio.of(kind, packed(batch, kind.target()), packed(batch, kind.sampler()));
    }

    private float[] packed(TokenBatch batch, String policy) {
        float[] packed = new float[batch.tokenCount()];
        for (int s = 0; s < lines.size(); s++) {
            System.arraycopy(lines.get(s).logProbs().get(policy), 0, packed, batch.start(s), batch.length(s));
        }
        return packed;
    }

    /**
     * One validated input sequence.
     *
     * @param number line number in the file, from 1
     * @param logProbs the vectors of the line by policy, one element per token; 0 where the line has null
     */
    record SequenceLine(int number, String id, byte[] mask, Map<String, float[]> logProbs) {}

    /** Format of an input line; see the package. */
    static final class LineSchema {
        private static final String SUFFIX = "_log_probs";
        private static final List<String> POLICIES = List.of("behavior", "old", "proximal", "current");

        private final Set<String> known = new LinkedHashSet<>(List.of("id", "mask"));
        private final RatioKind ratio;

        /** @param ratio ratio; every line must have its two policies */
        LineSchema(RatioKind ratio) {
            this.ratio = ratio;
            POLICIES.forEach(policy -> known.add(policy + SUFFIX));
        }

        SequenceLine read(int number, String text) throws BadLineException {
            JsonNode line = LineFields.parsed(text);
            LineFields.requireKnown(line, known);
            String id = LineFields.id(line);
            byte[] mask = LineFields.mask(LineFields.list(line, "mask"));
            Map<String, float[]> logProbs = new HashMap<>();
            for (String policy : POLICIES) {
                if (line.has(policy + SUFFIX)) {
                    logProbs.put(
                            policy,
                            LineFields.numbers(LineFields.list(line, policy + SUFFIX), policy + SUFFIX, mask, true));
                }
            }
            requireVector(logProbs, ratio.target(), ratio);
            requireVector(logProbs, ratio.sampler(), ratio);
            return new SequenceLine(number, id, mask, logProbs);
        }

        private static void requireVector(Map<String, float[]> logProbs, String policy, RatioKind ratio)
                throws BadLineException {
            if (!logProbs.containsKey(policy)) {
                throw new BadLineException(policy + SUFFIX + " is missing; the ratio " + ratio.target() + "/"
                        + ratio.sampler() + " needs it");
            }
        }
    }
}
