package dev.millrace.cli.correct;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.cli.sequences.BadLineException;
import dev.millrace.cli.sequences.LineFields;
import dev.millrace.corrections.ratio.RatioKind;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What a line of the input must look like; see the package. */
final class LineSchema {
    private static final String SUFFIX = "_log_probs";
    private static final List<String> POLICIES = List.of("behavior", "old", "proximal", "current");

    private final Set<String> known = new LinkedHashSet<>(List.of("id", "mask"));
    private final RatioKind ratio;

    /** @param ratio whose two policies every line must have */
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
            throw new BadLineException(
                    policy + SUFFIX + " is missing; the ratio " + ratio.target() + "/" + ratio.sampler() + " needs it");
        }
    }
}
