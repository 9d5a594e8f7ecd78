package dev.millrace.cli.records;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.millrace.cli.sequences.BadLineException;
import dev.millrace.cli.sequences.FactsLine;
import dev.millrace.cli.sequences.FactsSchema;
import dev.millrace.cli.sequences.LineFields;
import dev.millrace.corrections.stage.StageInput;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** What a line must look like; see the package. */
final class RecordSchema {
    private static final String STEP = "step";
    private static final String VERSION = "version";
    private static final String PROMPT_TOKENS = "prompt_tokens";
    private static final String RESPONSE_TOKENS = "response_tokens";
    private static final String TEMPERATURE = "temperature";
    private static final String FINISH_REASON = "finish_reason";
    private static final String ADVANTAGE = "advantage";
    private static final String ADVANTAGES = "advantages";
    private static final List<String> OWN =
            List.of(STEP, VERSION, PROMPT_TOKENS, RESPONSE_TOKENS, TEMPERATURE, FINISH_REASON, ADVANTAGE, ADVANTAGES);
    private static final int[] NO_TOKENS = {};

    private final FactsSchema facts = new FactsSchema(Set.of(), OWN);

    /**
     * Checks a line, and takes fields out of it.
     *
     * @param place stands for the id of a line that has none
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
        if (of.integers().containsKey(StageInput.FORCED_TOKENS)) {
            throw new BadLineException(
                    "forced cannot be kept in an archive; mask these tokens with 0 if they are not to be trained on");
        }
        requireTurns(of);
        long step = whole(own.path(STEP), STEP);
        return new RecordLine(
                of,
                step,
                versions(own, of, step),
                own.has(VERSION) || of.integers().containsKey(StageInput.VERSIONS),
                tokens(own, PROMPT_TOKENS, -1),
                tokens(own, RESPONSE_TOKENS, of.mask().length),
                temperature(own),
                finishReason(own),
                advantages(own, of.mask()));
    }

    private static void requireVector(FactsLine of, StageInput input, String what) throws BadLineException {
        if (!of.vectors().containsKey(input)) {
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
        long[] perToken = of.integers().get(StageInput.VERSIONS);
        if (perToken != null && own.has(VERSION)) {
            throw new BadLineException("version and versions say the same thing; give one of them");
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
                                + ": nothing is sampled by a version that is still to be made; number steps by the version that they start from");
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
            throw new BadLineException("advantage and advantages say the same thing; give one of them");
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
        List<Double> rewards = of.turnRewards();
        if (rewards == null) {
            return;
        }
        long[] turnOf = of.integers().get(StageInput.TURNS);
        if (turnOf == null) {
            throw new BadLineException("turn_rewards has " + rewards.size() + " elements, and the line has no turns");
        }
        long turns = Arrays.stream(turnOf).max().orElse(-1) + 1;
        if (rewards.size() != turns) {
            throw new BadLineException("turn_rewards has " + rewards.size() + " elements, and turns has " + turns
                    + " turns of the policy");
        }
    }
}
