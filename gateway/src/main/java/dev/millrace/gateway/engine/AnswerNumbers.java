package dev.millrace.gateway.engine;

import com.fasterxml.jackson.databind.JsonNode;
import dev.millrace.gateway.engine.EngineApi.LabelSpan;
import dev.millrace.generator.sampling.TurnOrder;
import dev.millrace.schemas.rollout.VectorCheck;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Parses engine answers and refuses impossible ones. */
final class AnswerNumbers {
    private AnswerNumbers() {}

    static int[] tokens(JsonNode list, String field) {
        if (!list.isArray()) {
            throw EngineException.untrue("the engine's answer has no " + field
                    + "; it is too old to answer with token ids, or another program: " + shown(list));
        }
        int[] tokens = new int[list.size()];
        for (int i = 0; i < tokens.length; i++) {
            JsonNode token = list.get(i);
            if (!token.isIntegralNumber() || !token.canConvertToInt() || token.intValue() < 0) {
                throw EngineException.untrue(field + "[" + i + "] is no token id: " + shown(token));
            }
            tokens[i] = token.intValue();
        }
        return tokens;
    }

    /** In [{@link VectorCheck#LEAST_LOG_PROB}, 0]. */
    static float logProb(JsonNode value, int at) {
        if (!value.isNumber() || !(value.floatValue() <= 0 && value.floatValue() >= VectorCheck.LEAST_LOG_PROB)) {
            throw EngineException.untrue("the log-prob of token " + at + " of the answer must be a number in ["
                    + VectorCheck.LEAST_LOG_PROB + ", 0]: " + shown(value));
        }
        return value.floatValue();
    }

    /** Requires some tokens, not too many, each with a log-prob. */
    static void require(TurnOrder order, int[] tokens, float[] logProbs) {
        int most = order.sampling().getMaxTokens();
        if (tokens.length == 0 || tokens.length > most) {
            throw EngineException.untrue(
                    "the engine was asked for 1 to " + most + " tokens and answered with " + tokens.length);
        }
        if (logProbs.length != tokens.length) {
            throw EngineException.untrue(
                    "the engine answered with " + tokens.length + " tokens and " + logProbs.length + " log-probs");
        }
    }

    static void requirePrompt(JsonNode said, TurnOrder order) {
        if (said.isMissingNode() || said.isNull()) {
            return;
        }
        int[] has = tokens(said, "prompt_token_ids");
        if (!Arrays.equals(has, order.promptTokens())) {
            throw EngineException.untrue("the engine was given a prompt of " + order.promptTokens().length
                    + " tokens and says that it had another one of " + has.length
                    + "; a proxy in between rewrites token ids");
        }
    }

    static void requireCount(JsonNode said, TurnOrder order) {
        if (said.isNumber() && said.intValue() != order.promptTokens().length) {
            throw EngineException.untrue("the engine was given a prompt of " + order.promptTokens().length
                    + " tokens and counted " + said.intValue() + "; a proxy in between rewrites token ids");
        }
    }

    /** Version spans covering all tokens; empty if not given. */
    static List<LabelSpan> spans(JsonNode said, int length) {
        List<LabelSpan> spans = new ArrayList<>();
        int at = 0;
        for (JsonNode span : said) {
            int start = span.path("start").asInt(-1);
            int end = span.path("end").asInt(-1);
            if (start != at || end < start || !span.path("version").isValueNode()) {
                throw EngineException.untrue("weight_versions must name the version of each token in order: "
                        + shown(said) + " for " + length + " tokens");
            }
            if (end > start) {
                spans.add(new LabelSpan(span.get("version").asText(), start, end));
            }
            at = end;
        }
        if (!said.isMissingNode() && !said.isNull() && at != length) {
            throw EngineException.untrue("weight_versions must name the version of each token: " + shown(said) + " for "
                    + length + " tokens");
        }
        return spans;
    }

    static String shown(JsonNode value) {
        String text = value.toString();
        return text.length() <= 200 ? text : text.substring(0, 200) + "...";
    }
}
